"""The first eager control of a script that was made of a dump, in a process that has torch already.

Such a script is ours: it reads its files under their full paths, and has no arguments, no modules beside it and no children. So it does the
same wherever it is run, and need not wait for another interpreter to import torch. Scripts that people wrote are run as they run them.
"""

from __future__ import annotations

from collections.abc import Callable

from bot.engine.options import Options
from bot.failure.outcome import Outcome
from bot.inside.protocol import Question
from bot.oracle.budget import Budget
from bot.oracle.dispatch import dispatch
from bot.reduce.candidate import BudgetSpent
from bot.workers.pool import Pool, PoolError
from bot.workers.process import START

# Given the seconds that it may take, and the budget: how the control ended, if it passed; else None.
WarmControl = Callable[[float, Budget], Outcome | None]
# What is made into a script of graphs alone.
_OF_GRAPHS = ("runnable", "launcher", "debug_dir", "trace", "exported_program", "package")


def warm_control(pool: Pool, options: Options) -> WarmControl | None:
    """What asks the `pool` for the control of the program in `options`; None where that is no script of ours."""
    if options.taken is None or options.taken.taken_as not in _OF_GRAPHS or options.unusable:
        return None
    text = options.target.text

    def ask(seconds: float, budget: Budget) -> Outcome | None:
        try:
            outcome, _ = dispatch(pool, budget, Question(text, "control", seconds))
        except (BudgetSpent, PoolError):
            return None  # a process of its own says it in its own words
        if outcome.status != "ok" or not outcome.calls or outcome.raised:
            return None
        # what it took is compared with what a whole process takes
        return outcome.model_copy(update={"seconds": outcome.seconds + START})

    return ask
