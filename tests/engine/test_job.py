"""What a job makes of an earlier one, and of its time."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from bot.engine.capture.region import Capture
from bot.engine.capture.run import Target
from bot.engine.job import Job
from bot.engine.options import Options
from bot.failure.outcome import Outcome
from bot.models.failure import Kind, Phase, Signature
from bot.models.result import Result, VerificationFacts

FAILURE = Signature(kind=Kind.EXCEPTION, phase=Phase.DYNAMO, exception=("Unsupported",), message="no")
OTHER = FAILURE.model_copy(update={"message": "neither"})
ONCE = VerificationFacts(runs=1, same=1, eager="passes")


def job(tmp_path: Path, **options: Any) -> Job:
    (tmp_path / "fail.py").write_text("pass\n")
    return Job(Options(Target(tmp_path / "fail.py", None, ()), "python", tmp_path / "out", **options))


@pytest.mark.parametrize(
    ("failure", "verification", "status", "kept"),
    [
        (None, VerificationFacts(), "error", True),
        (FAILURE, VerificationFacts(), "error", True),
        (FAILURE, ONCE, "error", False),  # it has a result of its own
        (OTHER, VerificationFacts(), "error", False),
        (None, VerificationFacts(), "not_reproduced", False),
    ],
)
def test_a_resumed_run_that_proves_nothing_keeps_the_earlier_result(
    tmp_path: Path, failure: Signature | None, verification: VerificationFacts, status: Any, kept: bool
) -> None:
    resumed = job(tmp_path, resume=True)
    resumed.earlier = Result(status="error", ended_by="interrupted", signature=FAILURE, verification=ONCE)
    resumed.found.failure, resumed.found.verification = failure, verification
    found = resumed._kept(status, "budget", "why", None)
    assert (found is not None) is kept
    if found is not None:
        assert (found.verification, found.signature, found.ended_by, found.reason) == (ONCE, FAILURE, "budget", "why")


def test_a_result_that_was_through_stays_as_it_is(tmp_path: Path) -> None:
    resumed = job(tmp_path, resume=True)
    resumed.earlier = Result(status="minimized", signature=FAILURE, verification=ONCE)
    assert resumed._kept("error", "interrupted", "why", None) is resumed.earlier


@pytest.mark.parametrize(
    ("kind", "seconds", "budget", "reserve"),
    [
        (Kind.EXCEPTION, 10.0, 600.0, 90.0),
        (Kind.EXCEPTION, 60.0, 600.0, 120.0),  # as long as two runs, one after the other
        (Kind.HANG, 75.0, 600.0, 150.0),
        (Kind.HANG, 75.0, 120.0, 60.0),  # half of the budget is the search's
    ],
)
def test_the_time_that_is_kept_for_the_proof(tmp_path: Path, kind: Kind, seconds: float, budget: float, reserve: float) -> None:
    timed = job(tmp_path, budget=budget)
    outcome = Outcome(status="raised", seconds=seconds)
    timed.found.capture = Capture(outcome=outcome, signature=None, regions=(), versions={}, log=tmp_path)
    assert timed._reserve(FAILURE.model_copy(update={"kind": kind})) == reserve
