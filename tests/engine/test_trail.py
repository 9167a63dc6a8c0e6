"""A warm worker that says SAME of what passes alone: the search goes back behind that step, and on."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pytest

from bot.engine import job
from bot.engine.evidence.confirmer import Confirmer, Slipped
from bot.engine.job import Job
from bot.engine.options import Ended, Options
from bot.engine.state import SearchResult
from bot.engine.target import Target
from bot.engine.trail import MOST_SLIPS, Trail
from bot.models.failure import Stage
from bot.models.result import Rule
from bot.oracle.budget import Budget
from bot.reduce.candidate import BudgetSpent
from bot.reduce.source.passes import values


def step(text: str) -> SearchResult:
    return SearchResult(Stage.SOURCE, text, Rule())


class Countdown:
    """Reduces "9" to "8", and so on, as far as nothing is rejected. That a step slipped is told two steps later."""

    def __init__(self, slips: Sequence[int] = (5,), *, steady: bool = True, confirms: bool = True) -> None:
        self.slips, self.steady, self.confirms = list(slips), steady, confirms
        self.begun: list[str] = []
        self.rejected: list[str] = []
        self.trail = Trail(self.offer, self.latest)
        self.trail.accept(step("9"))

    def offer(self, offered: SearchResult, position: int) -> None:
        if self.slips and int(offered.text) == self.slips[0] - 2:
            self.slips.pop(0)
            raise Slipped(position - 2)

    def latest(self, steps: Sequence[SearchResult]) -> int | None:
        alone = [index for index, one in enumerate(steps) if int(one.text) > 5]
        return alone[-1] if alone and self.confirms else None

    def reduce(self, begun: SearchResult) -> str:
        self.begun.append(begun.text)
        number = int(begun.text)
        while number > 0 and str(number - 1) not in self.rejected:
            number -= 1
            self.trail.accept(step(str(number)), steady=self.steady)
        return str(number)

    def run(self) -> str:
        return self.trail.past_slips(self.reduce, step("9"), self.rejected.append)


def test_the_search_goes_on_from_before_the_step_that_slipped() -> None:
    countdown = Countdown()
    assert countdown.run() == "6"
    assert (countdown.begun, countdown.rejected) == (["9", "6"], ["5"])
    assert [one.text for one in countdown.trail.slips_of(0.0)] == ["6"]


def test_a_slip_that_is_told_after_the_reduction_is_the_proofs_to_find() -> None:
    countdown = Countdown()
    countdown.trail.accept(step("3"))  # is told of "5"
    assert countdown.trail.best == step("3")


def test_what_shows_now_and_then_slips_nowhere() -> None:
    countdown = Countdown(steady=False)
    assert (countdown.run(), countdown.begun) == ("0", ["9"])


def test_where_no_fresh_run_confirms_the_proof_decides() -> None:
    countdown = Countdown(confirms=False)
    assert (countdown.run(), countdown.begun) == ("0", ["9", "3"])


def test_a_search_goes_back_only_so_often() -> None:
    countdown = Countdown([8, 7, 6, 5, 4], confirms=False)
    assert countdown.run() == "0"
    assert len(countdown.begun) == 1 + MOST_SLIPS


def test_a_confirmed_step_is_where_the_proof_may_go_back_to() -> None:
    trail = Trail()
    for text in "987":
        trail.accept(step(text))
    assert trail.confirmed is None
    assert len(trail.slips_of(0.0)) == len(trail) == 3
    trail.confirm(1)
    assert trail.confirmed == step("8")
    assert trail.slips_of(0.0) == [step("8"), step("7")]


def test_what_a_repro_shows_now_and_then_and_the_original_always_began_anywhere() -> None:
    """The run that confirmed a step may have been one of the lucky ones."""
    trail = Trail()
    for text in "987":
        trail.accept(step(text))
    trail.confirm(1)
    assert trail.slips_of(0.5) == [step("9"), step("8"), step("7")]
    assert trail.slips_of(1.0) == []
    trail.accept(step("6"), steady=False)
    assert trail.slips_of(0.5) == []
    assert trail.slips_of(0.0) == [step("8"), step("7"), step("6")]


def test_where_nothing_was_made_smaller_nothing_slipped() -> None:
    trail = Trail()
    trail.accept(step("9"))
    assert trail.slips_of(0.0) == trail.slips_of(0.5) == []


def test_what_is_noted_is_no_step() -> None:
    trail = Trail()
    trail.note(step("9"))
    assert (trail.best, len(trail)) == (step("9"), 0)


def raises(error: Exception) -> Callable[[], SearchResult]:
    def search() -> SearchResult:
        raise error

    return search


def test_a_fault_of_ours_ends_the_search_with_the_step_that_stands() -> None:
    trail, kept = Trail(), list[str]()
    trail.accept(step("9"))
    trail.accept(step("8"))
    found = trail.rescued(raises(TypeError("unhashable")), lambda: kept.append("traceback"))
    assert (found.text, found.fixed_point) == ("8", False)
    assert found.fault == "torch-minify itself failed while it searched on: TypeError: unhashable"
    assert kept == ["traceback"]


@pytest.mark.parametrize("error", [BudgetSpent(), Ended("error", "internal", "why"), OSError(28, "full")])
def test_what_ends_a_search_for_a_reason_is_no_fault(error: Exception) -> None:
    trail = Trail()
    trail.accept(step("9"))
    with pytest.raises(type(error)):
        trail.rescued(raises(error), lambda: None)


def test_a_fault_before_the_first_step_is_raised() -> None:
    trail = Trail()
    trail.note(step("9"))
    with pytest.raises(TypeError):
        trail.rescued(raises(TypeError()), lambda: None)


class InStep(Confirmer[SearchResult]):
    """Confirms each step before the search goes on."""

    last: SearchResult | None = None

    def offer(self, step: SearchResult, position: int) -> None:
        if step == self.last:  # it is not checked again
            return super().offer(step, position)
        done = threading.Event()
        check, told = self.check, self.on_confirmed

        def checked(one: SearchResult, budget: Budget) -> bool:
            fails = check(one, budget) or check(one, budget)
            if not fails:
                done.set()
            return fails

        def confirmed(one: SearchResult, at: int) -> None:
            told(one, at)
            self.last = one
            done.set()

        self.check, self.on_confirmed = checked, confirmed
        super().offer(step, position)
        assert done.wait(120)
        self.check, self.on_confirmed = check, told
        return None


# A worker is a process of boot.py; the repro alone is not. There, a lone relu passes.
PROGRAM = """
import torch


def picky(module, inputs):
    called = [node.target for node in module.graph.nodes if node.op == "call_function"]
    warm = b"boot.py" in open("/proc/self/cmdline", "rb").read()
    if torch.relu in called and (len(called) > 1 or warm):
        raise NotImplementedError("picky takes no relu")
    return module.forward


@torch.compile(backend=picky)
def f(x):
    x = torch.sin(torch.cos(x))
    return torch.relu(x).exp()


f(torch.ones(4, 6))
"""


@pytest.mark.slow
@pytest.mark.all
@pytest.mark.timeout(600)
def test_a_job_ends_with_what_fails_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("torch")
    script = tmp_path / "fail.py"
    script.write_text(PROGRAM)
    made: dict[type, object] = {SearchResult: lambda check, told, budget: InStep(check, told, budget, every=0.0, after=0.0)}
    monkeypatch.setattr(job, "Confirmer", made)
    result = Job(Options(Target(script, None, ()), sys.executable, tmp_path / "out", verify_runs=1)).run()
    assert result is not None
    assert "going back" in capsys.readouterr().err
    assert (result.status, result.ended_by, result.reduction.ops_after) == ("minimized", "fixed_point", 2)
    assert "torch.relu(" in (tmp_path / "out" / "repro.py").read_text()


@pytest.mark.slow
@pytest.mark.all
@pytest.mark.timeout(600)
def test_what_is_proven_counts_though_a_pass_of_ours_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("torch")

    def fails(_text: str) -> Iterator[str]:
        raise TypeError("unhashable type")

    monkeypatch.setattr(values, "ALL", [("value", fails)])
    script = tmp_path / "fail.py"
    script.write_text(PROGRAM.replace("boot.py", "none"))
    result = Job(Options(Target(script, None, ()), sys.executable, tmp_path / "out", stage=Stage.SOURCE, verify_runs=1)).run()
    assert result is not None
    assert (result.status, result.ended_by, result.reason_code) == ("minimized", "interrupted", None)
    assert result.reason == "torch-minify itself failed while it searched on: TypeError: unhashable type"
    assert "unhashable type" in (tmp_path / "out" / "original" / "torch-minify.log").read_text()
