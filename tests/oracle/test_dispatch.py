"""One question to the pool: asked again where the machine was to blame, taken back where nobody needs it."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from bot.inside.protocol import Question
from bot.oracle.budget import Budget
from bot.oracle.dispatch import RETRIES, Cancelled, dispatch
from bot.reduce.candidate import BudgetSpent
from tests.clock import Clock
from tests.oracle.fakes import FAILS, PASSES, FakePool

QUESTION = Question("script", "run", 60.0)
INFRA: dict[str, Any] = {"status": "infra", "text": "a worker died"}


def test_an_answer_comes_with_all_that_was_sent() -> None:
    pool = FakePool(lambda _: {**FAILS, "guesses": [["a"]]})
    outcome, facts = dispatch(pool, Budget(60.0), QUESTION)  # type: ignore[arg-type]
    assert (outcome.status, facts["guesses"]) == ("raised", [["a"]])
    assert pool.asked == [QUESTION]


@pytest.mark.parametrize(
    "broken",
    [INFRA, {"status": "signal", "signal": "SIGKILL"}, {"status": "raised", "text": "OSError: [Errno 28] No space left on device"}],
)
def test_what_the_machine_broke_is_asked_again(broken: dict[str, Any]) -> None:
    answers = iter([broken, PASSES])
    pool = FakePool(lambda _: next(answers))
    outcome, _ = dispatch(pool, Budget(60.0), QUESTION)  # type: ignore[arg-type]
    assert outcome.status == "ok"
    assert pool.asked == [QUESTION] * 2


def test_a_machine_that_stays_broken_is_asked_so_often() -> None:
    pool = FakePool(lambda _: INFRA)
    outcome, _ = dispatch(pool, Budget(60.0), QUESTION)  # type: ignore[arg-type]
    assert outcome.status == "infra"
    assert len(pool.asked) == 1 + RETRIES


def test_a_failure_of_the_program_is_asked_once() -> None:
    pool = FakePool(lambda _: {"status": "memory"})
    dispatch(pool, Budget(60.0), QUESTION)  # type: ignore[arg-type]
    assert len(pool.asked) == 1


def test_a_question_that_nobody_needs_is_taken_back() -> None:
    pool = FakePool(lambda _: PASSES, lambda _: 60.0)
    looks = itertools.count()
    with pytest.raises(Cancelled):
        dispatch(pool, Budget(60.0), QUESTION, lambda: next(looks) > 0)  # type: ignore[arg-type]
    assert (pool.cancelled, next(looks)) == (1, 2)


def test_the_end_of_the_budget_takes_it_back() -> None:
    pool = FakePool(lambda _: PASSES, lambda _: 60.0)
    with pytest.raises(BudgetSpent):
        dispatch(pool, Budget(10.0, clock=Clock(tick=4.0)), QUESTION)  # type: ignore[arg-type]
    assert pool.cancelled == 1
