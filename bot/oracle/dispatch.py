"""Asks the pool one question: it is asked again if the machine broke it, and taken back if nobody needs it any more."""

from __future__ import annotations

import concurrent.futures
from collections.abc import Callable

from bot.failure.machine_faults import may_pass
from bot.failure.outcome import Outcome
from bot.inside.protocol import Facts, Question
from bot.oracle.budget import Budget
from bot.reduce.candidate import BudgetSpent
from bot.workers.fresh import FreshProcesses
from bot.workers.pool import Asked, Pool

# How often a question is asked again whose answer was not the candidate's fault.
RETRIES = 2
# Seconds between two checks of whether an answer is still needed.
_BETWEEN = 0.05


class Cancelled(Exception):
    """A speculative question whose answer nobody needs any more."""


def never() -> bool:
    """The `is_cancelled` of a question whose answer is always needed."""
    return False


def dispatch(
    pool: Pool | FreshProcesses, budget: Budget, question: Question, is_cancelled: Callable[[], bool] = never
) -> tuple[Outcome, Facts]:
    """What a worker of `pool` makes of `question`: its outcome, and all facts that it sent.

    Raises:
        Cancelled: `is_cancelled` returned True.
        BudgetSpent: `budget` is spent.
        PoolError: there is no worker.
    """
    outcome, facts = _wait(pool, budget, pool.submit(question), is_cancelled)
    for _ in range(RETRIES):
        if not may_pass(outcome):
            break
        outcome, facts = _wait(pool, budget, pool.submit(question), is_cancelled)
    return outcome, facts


def _wait(pool: Pool | FreshProcesses, budget: Budget, asked: Asked, is_cancelled: Callable[[], bool]) -> tuple[Outcome, Facts]:
    while True:
        try:
            return asked.future.result(timeout=_BETWEEN)
        except concurrent.futures.TimeoutError:
            if is_cancelled():
                pool.cancel(asked)
                raise Cancelled from None
            try:
                budget.check()
            except BudgetSpent:
                pool.cancel(asked)
                raise
