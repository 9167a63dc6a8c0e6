"""The parts of a job in their order, with stand-ins for all that runs a program."""

from __future__ import annotations

import errno
import os
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from bot.engine import job
from bot.engine.capture.region import Capture
from bot.engine.explain import Explainer
from bot.engine.job import Job
from bot.engine.options import Ended, Options
from bot.engine.proof import Prover
from bot.engine.state import Explanation, Proof, Reproduction, SearchResult
from bot.engine.target import Target
from bot.engine.trail import Trail
from bot.failure.outcome import Outcome
from bot.machine import facts
from bot.models.failure import Kind, Phase, Signature, Stage
from bot.models.result import Result, Rule, VerificationFacts
from bot.oracle.budget import Budget
from bot.reduce.candidate import BudgetSpent
from bot.sandbox.sandbox import NoSandbox, Sandbox
from bot.workers.pool import PoolError

FAILURE = Signature(kind=Kind.EXCEPTION, phase=Phase.DYNAMO, exception=("KeyError",), message="no")
LEFT = "f()\n"


class IdlePool:
    """Nothing is asked of it."""

    memory = 0

    def __init__(self, *_: object, **__: object) -> None:
        pass

    def __enter__(self) -> IdlePool:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def start(self) -> None:
        pass


class ShortSearch:
    """Finds one line at once."""

    oracle = None

    def __init__(self, _options: object, _reproduction: object, trail: Trail, *_: object) -> None:
        self.trail = trail

    def begin(self) -> None:
        pass

    def run(self) -> SearchResult:
        return SearchResult(Stage.SOURCE, LEFT, Rule(), reference=FAILURE, fixed_point=True)


@pytest.fixture
def script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A program that fails and is reduced to one line, which is proven."""
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "fail.py"
    path.write_text("g()\nf()\n")
    capture = Capture(outcome=Outcome(status="raised", seconds=1.0), signature=FAILURE, regions=(), versions={}, log=tmp_path)
    seen = Reproduction(capture=capture, failure=FAILURE, source=None, original=path.read_text(), hang_after=60.0)

    def proof(_: Prover, found: SearchResult, runs: int) -> Proof:
        return Proof(found.final(), VerificationFacts(runs=runs, same=runs, eager="passes"))

    monkeypatch.setattr(job, "Pool", IdlePool)
    monkeypatch.setattr(job, "Search", ShortSearch)
    monkeypatch.setattr(job, "first_that_fails", lambda options, *_: (options, seen))
    monkeypatch.setattr(facts, "of_machine", lambda *_, **__: {})
    monkeypatch.setattr(Prover, "proof", proof)
    return path


def run(script: Path, **more: Any) -> Result:
    result = Job(replace(Options(Target(script, None, ()), sys.executable, script.parent / "out", sandbox=False), **more)).run()
    assert result is not None
    return result


@pytest.mark.parametrize(("layers", "said"), [(("landlock", "seccomp"), "sandbox: landlock, seccomp"), ((), "sandbox: none")])
def test_the_layers_that_are_on_are_said(
    script: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], layers: tuple[str, ...], said: str
) -> None:
    monkeypatch.setattr(Sandbox, "known_layers", layers)
    monkeypatch.setattr(Explainer, "of", lambda *_: Explanation())
    assert run(script).sandbox == layers
    lines = capsys.readouterr().err.splitlines()
    # nothing of the program has run yet
    assert lines[1].endswith(f" s] {said}")
    assert lines[0].endswith(f"a Python script of 2 lines, run with {sys.executable}")


def test_a_search_that_finds_no_beginning_took_time(script: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def begin(_: ShortSearch) -> None:
        time.sleep(0.2)
        raise BudgetSpent

    monkeypatch.setattr(ShortSearch, "begin", begin)
    result = run(script)
    assert (result.status, result.reason_code) == ("error", "budget")
    assert result.timing.search == result.reduction.seconds >= 0.2


def test_a_search_that_the_machine_ended_did_not_come_to_its_end(
    script: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def dies(search: ShortSearch) -> None:
        search.trail.accept(SearchResult(Stage.SOURCE, LEFT, Rule(), reference=FAILURE))
        raise PoolError("the worker's parent keeps dying")

    monkeypatch.setattr(ShortSearch, "run", dies)
    result = run(script)
    assert (result.status, result.reason_code, result.ended_by) == ("error", "machine_fault", "interrupted")
    assert "the worker's parent keeps dying; --resume goes on from here" in capsys.readouterr().out


def test_what_a_job_leaves_that_is_ended_is_not_said_to_be_out_of_time(script: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The result next to a confirmed repro is the last one if the engine is killed, or if the disk is full then."""
    written = script.parent / "out" / "result.json"
    left: list[Result] = []

    def confirmed(search: ShortSearch) -> SearchResult:
        search.trail.accept(SearchResult(Stage.SOURCE, LEFT, Rule(), reference=FAILURE))
        until = time.monotonic() + 60
        while not (found := Result.model_validate_json(written.read_text())).verification.same and time.monotonic() < until:
            time.sleep(0.01)
        left.append(found)
        return SearchResult(Stage.SOURCE, LEFT, Rule(), reference=FAILURE, fixed_point=True)

    monkeypatch.setattr(ShortSearch, "run", confirmed)
    monkeypatch.setattr(Prover, "confirms", lambda *_: True)
    monkeypatch.setattr(Budget, "sleep", lambda *_: None)
    assert run(script).status == "minimized"
    assert (left[0].ended_by, left[0].reason) == ("interrupted", "the job was ended after 1 of 3 fresh runs")


def test_a_limit_on_files_is_said_in_words_that_name_it(script: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`File too large` alone does not say what is wrong with the machine."""

    def full(_: ShortSearch) -> None:
        raise OSError(errno.EFBIG, os.strerror(errno.EFBIG))

    monkeypatch.setattr(ShortSearch, "run", full)
    result = run(script)
    assert (result.status, result.reason_code, result.machine_fault) == ("error", "machine_fault", "the disk is full")
    assert result.reason == "nothing more can be written: [Errno 27] File too large"


def test_the_runs_of_a_program_that_is_refused_took_time(script: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def passes(*_: object) -> None:
        time.sleep(0.2)
        raise Ended("not_reproduced", "passes", "the program passes here")

    monkeypatch.setattr(job, "first_that_fails", passes)
    result = run(script)
    assert result.status == "not_reproduced"
    assert 0.2 <= result.timing.capture <= result.timing.total


@pytest.mark.parametrize("room", [1, 9], ids=["after the proof", "beside it"])
@pytest.mark.parametrize(
    "broken",
    [PoolError("the worker's parent keeps dying"), NoSandbox("the sandbox lacks seccomp here"), OSError(errno.ENOSPC, "no room")],
    ids=lambda error: type(error).__name__,
)
def test_what_is_proven_stays_proven_whatever_becomes_of_its_explanation(
    script: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], broken: Exception, room: int
) -> None:
    def breaks(*_: object) -> None:
        raise broken

    monkeypatch.setattr(Explainer, "of", breaks)
    monkeypatch.setattr(job, "at_once", lambda _: room)
    result = run(script)
    assert (result.status, result.ended_by, result.exit_status) == ("minimized", "fixed_point", 0)
    assert (result.machine_fault, result.reason_code) == (None, None)
    full = "nothing more can be written: " if isinstance(broken, OSError) else ""
    assert result.reason == f"what explains the repro was not found out: {full}{broken}"
    assert (result.files.repro, result.verification.same) == ("repro.py", 3)
    written = Result.model_validate_json((script.parent / "out" / "result.json").read_text())
    assert written.model_copy(update={"timing": result.timing}) == result
    assert capsys.readouterr().out.startswith("# exception in dynamo: KeyError: no\n")


@pytest.mark.parametrize(("same", "text", "status", "code"), [(1, LEFT, "flaky", "flaky"), (3, "g()\nf()\n", "reproduced", None)])
def test_a_fault_of_ours_after_the_proof_is_not_its_reason(
    script: Path, monkeypatch: pytest.MonkeyPatch, same: int, text: str, status: str, code: str | None
) -> None:
    """The search had come to its end, and how often the repro fails was counted."""

    def breaks(*_: object) -> None:
        raise RuntimeError("no such thing")

    def proof(_: Prover, found: SearchResult, runs: int) -> Proof:
        return Proof(found.final(), VerificationFacts(runs=runs, same=same, eager="passes"))

    monkeypatch.setattr(Explainer, "of", breaks)
    monkeypatch.setattr(Prover, "proof", proof)
    monkeypatch.setattr(job, "at_once", lambda _: 1)
    monkeypatch.setattr(ShortSearch, "run", lambda _: SearchResult(Stage.SOURCE, text, Rule(), reference=FAILURE, fixed_point=True))
    result = run(script)
    assert (result.status, result.reason_code, result.ended_by) == (status, code, "fixed_point")
    assert result.reason == "torch-minify itself failed: RuntimeError: no such thing"
