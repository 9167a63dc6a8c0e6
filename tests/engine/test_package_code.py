"""What is said of a package whose program passes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from bot.engine.evidence import verify
from bot.engine.options import Ended, Options
from bot.engine.package_code import beside_its_program, first_that_fails
from bot.engine.target import Target
from bot.failure.outcome import Outcome
from bot.oracle.budget import Budget

PASSES = Ended("not_reproduced", "passes", "the program passes here")
WRONG = 'Traceback (most recent call last):\n  File "/a/package.py", line 9, in <module>\nAssertionError: Tensor-likes are not close!\n'
FAILED = 'Traceback (most recent call last):\n  File "/a/package.py", line 8, in <module>\nRuntimeError: run_func_( failed\n'


@pytest.fixture
def said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    def of(outcome: Outcome, end: Ended = PASSES, otherwise: str = "import torch\n", *, spent: bool = False) -> str:
        def run(_: Any, script: Path, **__: Any) -> Outcome:
            assert script.read_text() == otherwise
            return outcome

        monkeypatch.setattr(verify, "run_fresh", run)
        options = Options(Target(tmp_path / "x.py", None, ()), "python", tmp_path, otherwise=otherwise)
        budget = Budget(60.0)
        if spent:
            budget.cancel()
        found = beside_its_program(end, options, None, budget)
        assert (found.status, found.code) == (end.status, end.code)
        return found.reason

    return of


@pytest.mark.parametrize(
    ("outcome", "words"),
    [
        (Outcome(status="ok"), "; the compiled code in the package gives what the program gives"),
        (Outcome(status="raised", text=WRONG), "; but the compiled code in the package gives other numbers than the program"),
        (Outcome(status="raised", text=FAILED), "; but the compiled code in the package fails (exception in run: RuntimeError: run_func_"),
        (Outcome(status="signal", signal="SIGSEGV"), "; but the compiled code in the package fails (crash in run: SIGSEGV)"),
        (Outcome(status="timeout"), "; the compiled code in the package did not end well here (timeout)"),
    ],
)
def test_what_the_compiled_code_shows(said: Any, outcome: Outcome, words: str) -> None:
    reason = said(outcome)
    assert reason.startswith(PASSES.reason + words)
    assert ("attach the script that made the package" in reason) is (outcome.status != "ok")


def test_nothing_is_said_that_was_not_seen(said: Any) -> None:
    assert said(Outcome(status="infra")) == PASSES.reason
    assert said(Outcome(status="timeout", cut=True)) == PASSES.reason
    assert said(Outcome(status="raised", text="OSError: [Errno 28] No space left on device")) == PASSES.reason
    assert said(Outcome(status="ok"), otherwise="") == PASSES.reason
    assert said(Outcome(status="ok"), spent=True) == PASSES.reason
    other = Ended("not_reproduced", "fails_in_eager", "it fails in eager as well")
    assert said(Outcome(status="ok"), other) == other.reason


@pytest.mark.parametrize(("passing", "asked"), [(0, 1), (1, 2), (2, 2)])
def test_a_program_that_compiles_is_packaged(tmp_path: Path, passing: int, asked: int) -> None:
    script = tmp_path / "program.py"
    script.write_text("compile\n")
    seen: list[str] = []

    def run(options: Options) -> Any:
        seen.append(options.target.text)
        if len(seen) <= passing:
            raise PASSES
        return f"failed with {options.target.name}"

    options = Options(Target(script, None, ()), "python", tmp_path, then="package\n")
    if passing == 2:
        with pytest.raises(Ended, match="the program passes here"):
            first_that_fails(options, run, None, Budget(60.0))
    else:
        found, reproduction = first_that_fails(options, run, None, Budget(60.0))
        assert reproduction == f"failed with {found.target.name}"
        assert found.target.name == ("program.py", "program_then.py")[passing]
    assert seen == ["compile\n", "package\n"][:asked]


def test_what_does_not_pass_is_not_packaged(tmp_path: Path) -> None:
    def run(_: Options) -> Any:
        raise Ended("not_reproduced", "fails_in_eager", "it fails in eager as well")

    options = Options(Target(tmp_path / "x.py", None, ()), "python", tmp_path, then="package\n")
    with pytest.raises(Ended, match="eager"):
        first_that_fails(options, run, None, Budget(60.0))
