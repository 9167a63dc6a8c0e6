"""How a job divides its time."""

from __future__ import annotations

from pathlib import Path

import pytest

from bot.engine.capture.region import Capture
from bot.engine.job import reserve
from bot.engine.options import Options
from bot.engine.state import Reproduction
from bot.engine.target import Target
from bot.failure.outcome import Outcome
from bot.models.failure import Kind, Phase, Signature


@pytest.mark.parametrize(
    ("kind", "seconds", "budget", "reserve_"),
    [
        (Kind.EXCEPTION, 10.0, 600.0, 90.0),
        (Kind.EXCEPTION, 60.0, 600.0, 120.0),  # as long as two runs, one after the other
        (Kind.HANG, 75.0, 600.0, 150.0),
        (Kind.HANG, 75.0, 120.0, 60.0),  # half of the budget is the search's
    ],
)
def test_the_time_that_is_kept_for_the_proof(tmp_path: Path, kind: Kind, seconds: float, budget: float, reserve_: float) -> None:
    options = Options(Target(tmp_path / "fail.py", None, ()), "python", tmp_path / "out", budget=budget)
    capture = Capture(outcome=Outcome(status="raised", seconds=seconds), signature=None, regions=(), versions={}, log=tmp_path)
    failure = Signature(kind=kind, phase=Phase.DYNAMO)
    assert reserve(options, Reproduction(capture, failure, None, None, options.hang_after)) == reserve_


@pytest.mark.parametrize(("budget", "kept"), [(1800.0, 120.0), (200.0, 30.0), (40.0, 10.0), (10.0, 5.0)])
def test_what_is_kept_before_anything_is_known(tmp_path: Path, budget: float, kept: float) -> None:
    assert reserve(Options(Target(tmp_path / "fail.py", None, ()), "python", tmp_path / "out", budget=budget)) == kept
