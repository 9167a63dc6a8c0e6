"""How a script is read and run, and how it ended."""

from __future__ import annotations

import gc
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from bot.inside import program


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setitem(sys.modules, "__main__", sys.modules["__main__"])
    monkeypatch.setattr(sys, "argv", sys.argv)
    monkeypatch.setattr(sys, "path", list(sys.path))

    def run(data: bytes) -> dict[str, Any]:
        path = tmp_path / "repro.py"
        path.write_bytes(data)
        return program.run_as_main(str(path), [])

    return run


@pytest.mark.parametrize("module", [False, True])
def test_garbage_is_collected_from_where_the_program_begins(run: Any, tmp_path: Path, module: bool) -> None:
    gc.disable()
    try:
        text = b"import gc\nassert gc.isenabled() and not gc.get_count()[1] and not gc.get_freeze_count()"
        if not module:
            assert run(text)["status"] == "ok"
        else:
            (tmp_path / "collecting.py").write_bytes(text)
            sys.path.insert(0, str(tmp_path))
            assert program.run_module("collecting", [], lambda *_: None)["status"] == "ok"
    finally:
        gc.enable()


@pytest.mark.parametrize(
    ("text", "encoding"),
    [
        ("# coding: latin-1\nassert len('é') == 1", "latin-1"),
        ("assert len('é') == 1", "utf-8-sig"),
        ("def f(x: int): ...\nassert f.__annotations__ == {'x': int}", "utf-8"),
        ("from __future__ import annotations\ndef f(x: int): ...\nassert f.__annotations__ == {'x': 'int'}", "utf-8"),
    ],
)
def test_a_script_is_read_and_compiled_as_python_does_it(run: Any, text: str, encoding: str) -> None:
    assert run(text.encode(encoding)) == {"status": "ok", "exit": 0, "text": ""}


@pytest.mark.parametrize(
    ("data", "error"),
    [
        ("x = 'é'".encode("latin-1"), "SyntaxError: (unicode error) 'utf-8' codec can't decode byte 0xe9"),
        (b"# coding: no-such-encoding\n", "SyntaxError: unknown encoding: no-such-encoding"),
        ("# coding: ascii\nx = 'é'".encode(), "SyntaxError"),
        ("x = 1".encode("utf-16"), "Error: "),
    ],
)
def test_a_script_that_cannot_be_read_raises_what_python_raises(run: Any, data: bytes, error: str) -> None:
    facts = run(data)
    assert facts["status"] == "raised"
    assert facts["text"].startswith("Traceback")
    assert error in facts["text"].splitlines()[-1]
    assert "During handling" not in facts["text"]


def test_where_the_program_has_python_look(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", ["/began", "/gone", ""])
    looked = program.LookedIn()
    sys.path[:] = ["lib", Path("/no/string"), "/began", ""]  # type: ignore[list-item]
    assert looked.note() == [str(tmp_path / "lib")]
    sys.path[:] = ["/began", "/later"]
    assert looked.note() == [str(tmp_path / "lib"), "/later"]


# Asks in a process of its own, as its executors are ended.
ASKS = "from bot.inside.program import threads_outlive\n{}\nimport os\nos._exit(threads_outlive(0.5))"


@pytest.mark.parametrize(
    ("threads", "outlive"),
    [
        ("", False),
        ("import threading\nthreading.Thread(target=threading.Event().wait).start()", True),
        ("import threading\nthreading.Thread(target=threading.Event().wait, daemon=True).start()", False),
        ("import concurrent.futures as c\np = c.ThreadPoolExecutor(1)\np.submit(int)", False),
    ],
)
def test_threads_that_python_would_wait_for(threads: str, outlive: bool) -> None:
    run = subprocess.run([sys.executable, "-c", ASKS.format(threads)], cwd=Path(__file__).parents[2], check=False)
    assert run.returncode == outlive
