"""What fresh processes are asked, and what is made of their answers."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bot.engine import proof
from bot.engine.evidence import verify as fresh
from bot.engine.evidence.verify import Verification
from bot.engine.options import Ended
from bot.engine.proof import Prover
from bot.engine.state import SearchResult
from bot.engine.target import Launch
from bot.failure.outcome import Outcome
from bot.machine import interpreter
from bot.models.failure import Kind, Phase, Signature, Stage
from bot.models.result import Rule
from bot.oracle.budget import Budget
from bot.workers.process import START, Interrupted

FAILURE = Signature(kind=Kind.EXCEPTION, phase=Phase.DYNAMO, exception=("Unsupported",), message="no")
HANG = Signature(kind=Kind.HANG, phase=Phase.DYNAMO)


@pytest.fixture
def prover(tmp_path: Path) -> Callable[..., Prover]:
    return lambda failure=FAILURE: Prover("python", failure, 300.0, tmp_path, tmp_path, Budget(60.0))


def step(text: str = "pass") -> SearchResult:
    return SearchResult(Stage.SOURCE, text, Rule())


@pytest.mark.parametrize(("failure", "limit"), [(FAILURE, 300.0), (HANG, 60.0 + START)])
def test_a_hang_is_waited_for_no_longer_than_it_takes(
    prover: Callable[..., Prover], monkeypatch: pytest.MonkeyPatch, tmp_path: Path, failure: Signature, limit: float
) -> None:
    limits = []

    def run(*_: Any, timeout: float, **__: Any) -> Outcome:
        limits.append(timeout)
        return Outcome(status="ok")

    monkeypatch.setattr(fresh, "run_fresh", run)
    monkeypatch.setattr(fresh, "run_control_fresh", lambda *_, **__: Outcome(status="ok", calls=1))
    assert not prover(failure).confirms(step())
    assert limits == [limit]


def test_flaky_failures_are_run_more_often(prover: Callable[..., Prover], monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def verify(_: Launch, __: Path, ___: fresh.Expected, runs: int, **____: Any) -> Verification:
        asked.append(runs)
        return Verification(runs=runs, same=1, eager="passes", differences=(f"of {runs}",))

    monkeypatch.setattr(fresh, "verify", verify)
    found = prover().proof(step(), 3)
    assert asked == [3, proof.FLAKY_RUNS - 3]
    assert (found.text, found.facts.runs, found.facts.same, found.facts.eager) == ("pass", 10, 2, "passes")
    assert found.differences == ("of 3", "of 7")


def test_a_control_that_fails_once_fails(prover: Callable[..., Prover], monkeypatch: pytest.MonkeyPatch) -> None:
    """Where more runs are made for the rate, the control is run again as well."""
    for eager in (("passes", "fails"), ("fails", "passes")):
        left = list(eager)
        monkeypatch.setattr(
            fresh,
            "verify",
            lambda *given, left=left, **_: Verification(
                runs=given[3], same=2, differences=(f"eager control: {left[0]}",), eager=left.pop(0)
            ),
        )
        found = prover().proof(step(), 3)
        assert (found.facts.same, found.facts.runs, found.facts.eager, found.holds) == (4, 10, "fails", False)
        assert found.differences[-1] == "eager control: fails"


class Rates:
    """Fresh runs of steps that are named by how many of ten fail; those after so many calls are cut off."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, calls: int = 100) -> None:
        self.left = calls
        monkeypatch.setattr(fresh, "verify", self.verify)

    def verify(self, _: Launch, script: Path, __: fresh.Expected, runs: int, **___: Any) -> Verification:
        self.left -= 1
        if self.left < 0:
            raise Interrupted
        return Verification(runs=runs, same=int(script.read_text()) * runs // 10, eager="passes")


def test_going_back_takes_the_last_step_that_fails_more_often(prover: Callable[..., Prover], monkeypatch: pytest.MonkeyPatch) -> None:
    Rates(monkeypatch)
    now_and_then = prover().proof(step("5"), 10)
    back = prover().steadier([step("10"), step("10"), step("5")], now_and_then, 10)
    assert back is not None
    assert (back[0].text, back[1].rate) == ("10", 1.0)
    assert prover().steadier([step("5"), step("5")], now_and_then, 10) is None


def test_what_was_proven_stays_where_the_time_is_over_on_the_way_back(
    prover: Callable[..., Prover], monkeypatch: pytest.MonkeyPatch
) -> None:
    rates = Rates(monkeypatch)
    now_and_then, never = prover().proof(step("5"), 10), prover().proof(step("0"), 10)
    steps = [step("10"), step("5")]
    for calls in range(3):
        rates.left = calls
        assert prover().steadier(steps, now_and_then, 10) is None
    rates.left = 2  # both confirmations, and no proof
    with pytest.raises(Interrupted):
        prover().steadier(steps, never, 10)


def test_a_proof_keeps_what_the_first_run_that_was_the_same_shows(prover: Callable[..., Prover], monkeypatch: pytest.MonkeyPatch) -> None:
    other, shown = (FAILURE.model_copy(update=update) for update in ({"message": "yes"}, {"said": "no 2"}))
    signatures = (None, other, shown, FAILURE)
    monkeypatch.setattr(fresh, "verify", lambda *_, **__: Verification(runs=4, same=2, eager="passes", signatures=signatures))
    assert prover().proof(step(), 10).shown == shown
    monkeypatch.setattr(fresh, "verify", lambda *_, **__: Verification(runs=1, same=0, eager="passes", signatures=(other,)))
    assert prover().proof(step(), 1).shown is None


def test_a_proof_that_cannot_be_run_is_the_machine_s_fault(prover: Callable[..., Prover], monkeypatch: pytest.MonkeyPatch) -> None:
    """Not a failure that shows in two runs of three."""

    def verify(*_: Any, **__: Any) -> Verification:
        raise fresh.NotRun(Outcome(status="infra", text="cannot start python: no room"))

    monkeypatch.setattr(fresh, "verify", verify)
    with pytest.raises(Ended, match="could not be run: cannot start python: no room") as raised:
        prover().proof(step(), 3)
    assert (raised.value.status, raised.value.code) == ("error", "machine_fault")
    assert not prover().confirms(step())
    monkeypatch.setattr(interpreter, "facts_of", lambda *_: {"python": "3.13.1", "torch": "2.14.0"})
    assert prover().elsewhere("pass", Rule(), "/other").said == "could not be run: cannot start python: no room"


def test_the_latest_script_that_fails_alone(prover: Callable[..., Prover], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Prover, "confirms", lambda _, step, runs: int(step.text) < 5 + runs)
    steps = [step(str(number)) for number in range(9)]
    assert prover().latest(steps) == 5
    assert prover().latest(steps, 3) == 7
    assert prover().latest(steps[6:]) is None
    assert prover().latest([]) is None


def test_the_way_back_ends_with_the_time_for_it(prover: Callable[..., Prover], monkeypatch: pytest.MonkeyPatch) -> None:
    """With the last script that was confirmed until then: the proof still has its time."""
    asked: list[str] = []
    monkeypatch.setattr(Prover, "confirms", lambda _, step, runs: asked.append(step.text) is None and int(step.text) < 6)
    steps = [step(str(number)) for number in range(9)]
    assert prover().latest(steps, goes_on=lambda: len(asked) < 2) == 4
    assert asked == ["0", "4"]


@pytest.mark.parametrize(
    ("outcome", "alike"),
    [
        (
            Outcome(status="raised", text='Traceback (most recent call last):\n  File "repro.py", line 1, in <module>\nValueError: no\n'),
            True,
        ),
        (
            Outcome(status="raised", text='Traceback (most recent call last):\n  File "repro.py", line 1, in <module>\nValueError: yes\n'),
            False,
        ),
        (Outcome(status="ok"), False),
    ],
)
def test_a_script_of_another_form_has_to_fail_alike(
    prover: Callable[..., Prover], monkeypatch: pytest.MonkeyPatch, outcome: Outcome, alike: bool
) -> None:
    monkeypatch.setattr(fresh, "run_fresh", lambda *_, **__: outcome)
    failure = Signature(kind=Kind.EXCEPTION, phase=Phase.RUN, exception=("InductorError", "ValueError"), message="no")
    assert prover(failure).fails_alike("pass", Budget(60.0)) is alike


class TestElsewhere:
    def test_the_same_failure(self, prover: Callable[..., Prover], monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(interpreter, "facts_of", lambda *_: {"python": "3.13.1", "torch": "2.14.0", "cuda": None, "headers": True})
        monkeypatch.setattr(fresh, "verify", lambda *_, **__: Verification(runs=1, same=1, eager="passes"))
        found = prover().elsewhere("pass", Rule(), "/other")
        assert (found.python, found.same, found.said) == ("/other", True, None)
        assert found.versions == {"python": "3.13.1", "torch": "2.14.0"}

    @pytest.mark.parametrize(("signatures", "said"), [((None,), "passes"), ((HANG,), "run 1: x")])
    def test_another(
        self, prover: Callable[..., Prover], monkeypatch: pytest.MonkeyPatch, signatures: tuple[Signature | None, ...], said: str
    ) -> None:
        monkeypatch.setattr(interpreter, "facts_of", lambda *_: {"python": "3.13.1", "torch": "2.14.0"})
        monkeypatch.setattr(
            fresh, "verify", lambda *_, **__: Verification(runs=1, same=0, eager="passes", signatures=signatures, differences=("run 1: x",))
        )
        found = prover().elsewhere("pass", Rule(), "/other")
        assert (found.same, found.said) == (False, said)

    def test_an_interpreter_that_cannot_run_it(self, prover: Callable[..., Prover], monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(interpreter, "facts_of", lambda *_: {"python": "3.13.1", "error": "No module named 'torch'"})
        found = prover().elsewhere("pass", Rule(), "/other")
        assert (found.same, found.said) == (False, "could not be run: No module named 'torch'")


@pytest.mark.parametrize(("others", "steady"), [(0, True), (1, False), (2, False)])
def test_one_other_failure_in_each_run_is_kept(
    prover: Callable[..., Prover], monkeypatch: pytest.MonkeyPatch, others: int, steady: bool
) -> None:
    other = FAILURE.model_copy(update={"message": "something else"})
    seen = [(other, other, other), (other, None, other), (other, FAILURE.model_copy(update={"message": "a third"}), other)][others]
    monkeypatch.setattr(fresh, "verify", lambda *_, **__: Verification(runs=3, same=0, eager="passes", signatures=seen))
    assert prover().proof(step(), 3).instead == (other if steady else None)


def test_runs_that_come_after_others_are_numbered_from_there_on(prover: Callable[..., Prover], monkeypatch: pytest.MonkeyPatch) -> None:
    ended = iter([None, FAILURE, *[None] * 8])
    monkeypatch.setattr(fresh, "run_fresh", lambda *_, **__: Outcome(status="ok"))
    monkeypatch.setattr(fresh, "run_control_fresh", lambda *_, **__: Outcome(status="ok", calls=1))
    monkeypatch.setattr(fresh, "signature_of", lambda *_, **__: next(ended))
    found = prover().proof(step(), 3)
    assert (found.facts.runs, found.facts.same) == (10, 1)
    assert found.differences == tuple(f"run {number}: did not fail" for number in (1, *range(3, 11)))
