"""Seconds that a test counts, and Ctrl-C."""

from __future__ import annotations

import pytest

from bot.oracle.budget import Budget
from bot.reduce.candidate import BudgetSpent
from tests.clock import Clock


def test_a_reserve_is_kept_from_the_search() -> None:
    clock = Clock()
    budget = Budget(10.0, reserve=4.0, clock=clock)
    clock.now = 5.0
    assert (budget.left(), budget.is_spent) == (1.0, False)
    budget.check()
    clock.now = 6.0
    assert budget.is_spent
    assert budget.should_continue(), "the reserve is for what still runs"
    assert budget.ended_by == "budget"
    with pytest.raises(BudgetSpent):
        budget.check()


def test_a_part_has_the_reserve_too_and_can_be_cancelled_alone() -> None:
    clock = Clock()
    whole = Budget(10.0, reserve=4.0, clock=clock)
    clock.now = 7.0
    part = whole.part()
    assert (part.left(), whole.left()) == (3.0, -1.0)
    part.cancel()
    assert (part.should_continue(), whole.should_continue()) == (False, True)


def test_cancelling_the_whole_cancels_its_parts() -> None:
    whole = Budget(10.0, clock=Clock())
    part = whole.part()
    whole.cancel()
    assert not part.should_continue()
    assert (part.ended_by, whole.ended_by) == ("interrupted", "interrupted")
    with pytest.raises(BudgetSpent):
        part.check()
