"""`torch-minify snippet`: what it saves is a dump that `torch-minify run` takes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from bot.cli import main
from bot.engine.inputs.take import take
from bot.engine.inputs.taken import Place

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

PROGRAM = """
import torch
import torch._inductor.config
from save_repro import save_repro

torch._inductor.config.cpp.inject_relu_bug_TESTING_ONLY = {bug!r}
healthy = torch.compile(lambda x: x.sin() * 2)
step = torch.compile(lambda x: torch.relu(x.cos() - {shift}) * 2)
with save_repro("out", check={check}):
    healthy(torch.arange(6.0))
    step(torch.arange(6.0))
print("went on")
"""


# In the compiler, and in what it made: so many threads that what is kept of each takes more than the whole stack.
DIES = {
    "compiler": "torch._inductor.lowering.lowerings[torch.ops.aten.relu.default] = lambda x: ctypes.string_at(0)",
    "compiled": "torch._inductor.config.cpp.threads = 10**9\ntorch._inductor.config.cpp.min_chunk_size = 0",
}
DYING = """
import ctypes
import torch
import torch._inductor.config
import torch._inductor.lowering
from save_repro import save_repro

with save_repro("out", check={check}):
    torch.compile(lambda x: x.sin() * 2)(torch.arange(6.0))
    {dies}
    torch.compile(lambda x: torch.relu(x.exp().cos()).sum() * 2)(torch.linspace(0, 1, 64))
"""


def ran(tmp_path: Path, capsys: pytest.CaptureFixture[str], program: str, cache: Path | None = None) -> subprocess.CompletedProcess[str]:
    assert main(["snippet"]) == 0
    (tmp_path / "save_repro.py").write_text(capsys.readouterr().out, encoding="utf-8")
    (tmp_path / "train.py").write_text(program, encoding="utf-8")
    env = {**os.environ, "TORCHINDUCTOR_CACHE_DIR": str(cache or Path(os.environ["TORCH_MINIFY_CACHE_DIR"], "snippet"))}
    if cache is None:  # what one test's compiler made of C++ headers the next need not, but each compiles its graphs
        env["TORCHINDUCTOR_FX_GRAPH_CACHE"] = "0"
    return subprocess.run([sys.executable, "train.py"], cwd=tmp_path, env=env, capture_output=True, text=True, timeout=240, check=False)


def saved(tmp_path: Path, capsys: pytest.CaptureFixture[str], bug: str, *, check: bool) -> subprocess.CompletedProcess[str]:
    return ran(tmp_path, capsys, PROGRAM.format(bug=bug, check=check, shift=0.25))


def test_a_graph_that_does_not_compile_is_saved_and_its_error_goes_through(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    done = saved(tmp_path, capsys, "compile_error", check=False)
    assert done.returncode == 1
    assert "CppCompileError" in done.stderr
    assert f"save_repro: it did not compile; saved: torch-minify run {tmp_path / 'out' / 'repro.py'}" in done.stderr
    found = take(Place(tmp_path / "out" / "repro.py", tmp_path))
    assert found.taken_as == "runnable"
    assert found.text is not None
    assert "aten.relu" in found.text
    (tmp_path / "taken.py").write_text(found.text, encoding="utf-8")
    again = subprocess.run([sys.executable, "taken.py"], cwd=tmp_path, capture_output=True, text=True, timeout=240, check=False)
    assert (again.returncode, "CppCompileError" in again.stderr) == (1, True), again.stderr[-2000:]
    assert "os.environ[" not in (tmp_path / "out" / "repro.py").read_text()


def test_a_graph_with_wrong_numbers_is_saved_with_its_inputs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    done = saved(tmp_path, capsys, "accuracy", check=True)
    assert (done.returncode, done.stdout) == (0, "went on\n"), done.stderr[-2000:]
    assert "its results differ from eager" in done.stderr
    found = take(Place(tmp_path / "out" / "repro.py", tmp_path))
    assert found.text is not None
    assert "aten.relu" in found.text, "the healthy graph came first"
    # the compiler is off only while the graph is written
    assert "_dynamo.config.disable" not in found.text + (tmp_path / "out" / "repro.py").read_text()
    assert f"save_dir={str((tmp_path / 'out').resolve())!r}" in found.text
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["repro.py", "storages"]


@pytest.mark.parametrize(("where", "check"), [("compiler", False), ("compiled", False), ("compiled", True)])
def test_the_graph_at_which_a_process_dies_is_there(tmp_path: Path, capsys: pytest.CaptureFixture[str], where: str, check: bool) -> None:
    dies = DIES[where].replace("\n", "\n    ")
    done = ran(tmp_path, capsys, DYING.format(dies=dies, check=check))
    assert done.returncode == -signal.SIGSEGV, done.stderr[-2000:]
    (left,) = (tmp_path / "out").glob("*.py")
    assert f"should this process die in a graph: torch-minify run {left}\n" in done.stderr
    assert done.stderr.count("save_repro: ") == 1, "once, not for each graph"
    found = take(Place(left, tmp_path))
    assert found.text is not None
    assert "aten.relu" in found.text
    assert (f"save_dir={str(left.with_suffix(''))!r}" in found.text) is check
    if where == "compiled":
        (tmp_path / "taken.py").write_text(found.text, encoding="utf-8")
        again = subprocess.run([sys.executable, "taken.py"], cwd=tmp_path, capture_output=True, text=True, timeout=240, check=False)
        assert again.returncode == -signal.SIGSEGV, again.stderr[-2000:]


def test_a_graph_that_an_earlier_run_compiled_is_seen(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Whoever adds the snippet has seen the process die: its graphs are in the compiler's cache."""
    program = DYING.format(dies=DIES["compiled"].replace("\n", "\n    "), check=False)
    alone = program.replace(f'save_repro("out", check={False})', "contextlib.nullcontext()").replace("import ctypes", "import contextlib")
    assert ran(tmp_path, capsys, alone, tmp_path / "cache").returncode == -signal.SIGSEGV
    done = ran(tmp_path, capsys, program, tmp_path / "cache")
    assert done.returncode == -signal.SIGSEGV, done.stderr[-2000:]
    assert len(list((tmp_path / "out").glob("*.py"))) == 1


def test_nothing_is_left_of_graphs_that_went_well(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    done = ran(tmp_path, capsys, DYING.format(dies="pass", check=True))
    assert done.returncode == 0, done.stderr[-2000:]
    assert list((tmp_path / "out").iterdir()) == []
