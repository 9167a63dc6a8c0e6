"""How a job divides its time."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from bot.engine.capture.region import Capture
from bot.engine.evidence import verify
from bot.engine.options import Ended, Options
from bot.engine.state import Reproduction, SearchResult
from bot.engine.target import Target
from bot.engine.time_split import enough, first_run, keeping_for_proof, of_first_runs, reserve
from bot.failure.outcome import Outcome
from bot.models.failure import Kind, Phase, Signature, Stage
from bot.models.result import Rule
from bot.oracle.budget import Budget
from tests.clock import Clock


@pytest.fixture(autouse=True)
def two_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever this machine has."""
    monkeypatch.setattr(verify, "at_once", lambda _: 2)


def options(tmp_path: Path, budget: float, hang_after: float | None = None) -> Options:
    return Options(Target(tmp_path / "fail.py", None, ()), "python", tmp_path / "out", budget=budget, hang_after=hang_after)


def reproduction(tmp_path: Path, kind: Kind, seconds: float, hang_after: float = 60.0) -> Reproduction:
    capture = Capture(outcome=Outcome(status="raised", seconds=seconds), signature=None, regions=(), versions={}, log=tmp_path)
    return Reproduction(capture, Signature(kind=kind, phase=Phase.DYNAMO), None, None, hang_after)


@pytest.mark.parametrize("hang_after", [None, 5.0])
def test_a_machine_that_got_ready_too_late_says_nothing_of_the_program(tmp_path: Path, hang_after: float | None) -> None:
    clock = Clock()
    budget = Budget(60.0, 10.0, clock=clock)
    clock.now += 30.0
    assert of_first_runs(options(tmp_path, 60.0, hang_after), budget).remaining() == (30.0 if hang_after else 10.0)
    clock.now += 31.0
    with pytest.raises(Ended, match=r"^the machine took 61 s of a budget of .* to get ready, so the program was not run") as end:
        of_first_runs(options(tmp_path, 60.0, hang_after), budget)
    assert (end.value.status, end.value.code) == ("error", "budget")


@pytest.mark.parametrize(
    ("kind", "seconds", "budget", "reserve_"),
    [
        (Kind.EXCEPTION, 10.0, 600.0, 90.0),
        (Kind.EXCEPTION, 60.0, 600.0, 120.0),  # as long as two runs, one after the other
        (Kind.HANG, 75.0, 600.0, 225.0),  # three
        (Kind.HANG, 75.0, 120.0, 60.0),  # half of the budget is the search's
    ],
)
def test_the_time_that_is_kept_for_the_proof(tmp_path: Path, kind: Kind, seconds: float, budget: float, reserve_: float) -> None:
    assert reserve(options(tmp_path, budget), reproduction(tmp_path, kind, seconds)) == reserve_


def test_if_nothing_as_slow_as_the_program_can_be_proven_something_smaller_may(tmp_path: Path) -> None:
    """A network that compiles for 80 of 300 seconds, and one operation of it that takes ten."""
    given, slow = options(tmp_path, 300.0), reproduction(tmp_path, Kind.EXCEPTION, 80.0)
    assert reserve(given, slow, left=190.0) == 150.0
    assert reserve(given, slow, left=150.0) == 45.0
    assert reserve(given, slow, 10.0, left=100.0) == 45.0
    assert reserve(given, slow, 40.0, left=100.0) == 80.0
    hang = reproduction(tmp_path, Kind.HANG, 80.0, 60.0)
    assert reserve(given, hang, left=100.0) == reserve(given, hang) == 150.0


@pytest.mark.parametrize(("budget", "kept"), [(1800.0, 120.0), (200.0, 30.0), (40.0, 10.0), (10.0, 5.0)])
def test_what_is_kept_before_anything_is_known(tmp_path: Path, budget: float, kept: float) -> None:
    assert reserve(options(tmp_path, budget)) == kept


@pytest.mark.parametrize(("hang_after", "own", "most"), [(None, 200.0, 400.0), (60.0, 75.0, 600.0)])
def test_the_first_run_leaves_half_to_the_search(tmp_path: Path, hang_after: float | None, own: float, most: float) -> None:
    """By its own time; where the machine is busy it may take more before it is cut off."""
    asked = options(tmp_path, 600.0, hang_after)
    assert first_run(asked) == own
    assert of_first_runs(asked, Budget(600.0, clock=Clock())).remaining() == most


@pytest.mark.parametrize(
    ("kind", "seconds", "spent", "needed"),
    [
        (Kind.EXCEPTION, 5.0, 20.0, None),
        (Kind.EXCEPTION, 180.0, 200.0, None),  # a compile of three minutes in a budget of ten: what is found takes less
        (Kind.EXCEPTION, 180.0, 400.0, 1860.0),  # there is no time for one query
        (Kind.EXCEPTION, 60.0, 100.0, None),
        (Kind.EXCEPTION, 90.0, 200.0, None),  # time for one cold run beside the proof: those after it are warm
        (Kind.HANG, 75.0, 300.0, None),
        (Kind.HANG, 75.0, 360.0, 1200.0),
    ],
)
def test_a_program_that_is_too_slow_for_the_budget(tmp_path: Path, kind: Kind, seconds: float, spent: float, needed: float | None) -> None:
    clock = Clock()
    budget = Budget(600.0, clock=clock)
    clock.now = spent
    found = reproduction(tmp_path, kind, seconds)
    assert enough(options(tmp_path, 600.0), found, budget) == needed
    if needed is not None:  # and that one does
        budget = Budget(needed, clock=Clock())
        budget.clock.now = spent  # type: ignore[attr-defined]
        assert enough(options(tmp_path, needed), found, budget) is None


def test_a_busy_machine_needs_more_time_for_the_proof(tmp_path: Path) -> None:
    found = reproduction(tmp_path, Kind.EXCEPTION, 20.0)
    slow = found.capture.model_copy(update={"outcome": Outcome(status="raised", seconds=20.0, elapsed=100.0)})
    assert reserve(options(tmp_path, 600.0), found) == 90.0
    assert reserve(options(tmp_path, 600.0), replace(found, capture=slow)) == 200.0
    assert replace(found, capture=slow).limit == found.limit, "which is in its own time"


@pytest.mark.parametrize(("took", "same", "kept"), [(100.0, True, 200.0), (20.0, True, 90.0), (100.0, False, 90.0)])
def test_a_slow_confirmation_leaves_as_much_to_the_proof(tmp_path: Path, took: float, same: bool, kept: float) -> None:
    found, clock, given = reproduction(tmp_path, Kind.EXCEPTION, 20.0), Clock(), options(tmp_path, 600.0)
    budget = Budget(600.0, reserve(given, found), clock=clock)
    asked = SearchResult(Stage.SOURCE, "x = 1", Rule())

    def confirms(step: SearchResult, part: Budget) -> bool:
        assert (step, part) == (asked, budget)
        clock.now += took
        return same

    assert keeping_for_proof(confirms, budget, given, found)(asked, budget) is same
    assert budget.reserve == kept
    took = 1.0
    keeping_for_proof(confirms, budget, given, found)(asked, budget)
    assert budget.reserve == kept, "a quick one takes nothing back"


def test_a_busy_machine_does_not_make_a_program_too_slow(tmp_path: Path) -> None:
    clock = Clock()
    budget = Budget(240.0, clock=clock)
    clock.now = 157.0
    found = reproduction(tmp_path, Kind.EXCEPTION, 7.0)
    busy = found.capture.model_copy(update={"outcome": Outcome(status="raised", seconds=7.0, elapsed=155.0)})
    assert enough(options(tmp_path, 240.0), replace(found, capture=busy), budget) is None
