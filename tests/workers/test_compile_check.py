"""One function in a worker, and what is said where that does not work."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from bot.sandbox.sandbox import Sandbox
from bot.workers import compile_check, toolchain
from bot.workers.pool import PoolError

pytest.importorskip("torch")


def test_it_begins_with_the_header_that_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[tuple[object, bool]] = []

    def no_pool(*_: object, box: Sandbox) -> None:
        assert made == [(box, False)]
        raise PoolError("none")

    monkeypatch.setattr(toolchain, "make", lambda _python, box, *, anew: made.append((box, anew)))
    monkeypatch.setattr(compile_check, "Pool", no_pool)
    assert compile_check.compiles(sys.executable) == (False, "no worker: none")


@pytest.mark.slow
def test_a_worker_compiles() -> None:
    pytest.importorskip("torch")
    good, found = compile_check.compiles(sys.executable)
    assert good
    assert "slower" not in found


@pytest.mark.slow
def test_a_worker_loads_a_package(monkeypatch: pytest.MonkeyPatch) -> None:
    good, found = compile_check.loads(sys.executable, "cpu")
    assert good
    assert found.startswith("one package in ")
    monkeypatch.setattr(compile_check, "PACKAGE", "import os, signal\nprint({device!r})\nos.kill(os.getpid(), signal.SIGSEGV)\n")
    good, found = compile_check.loads(sys.executable, "cpu")
    assert not good
    assert found.startswith("a package of one relu cannot be made and loaded here: SIGSEGV: ")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("changed", "good", "found"),
    [
        ("import sys; sys.modules['torch'] = None", False, "no worker: ModuleNotFoundError"),
        ("import os; os.environ['CXX'] = 'no-such-compiler'", False, "a worker's compile ended in raised: "),
        (
            "from torch._inductor.cpu_vec_isa import VecISA\nVecISA.check_build = lambda isa, text, was=VecISA.check_build: was(isa, text)",
            True,
            "slower, without remember_instructions: ",
        ),
    ],
)
def test_what_a_worker_fails_in_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, changed: str, good: bool, found: str) -> None:
    pytest.importorskip("torch")
    (tmp_path / "sitecustomize.py").write_text(f"{changed}\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    works, said = compile_check.compiles(sys.executable)
    assert works is good
    assert found in said
