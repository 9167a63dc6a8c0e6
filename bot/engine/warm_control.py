"""The first eager control of a script that was made from a dump, in a process that already has torch.

Such a script is ours: it reads its files by their full paths, and has no arguments, no modules next to it and no children. So it does the
same wherever it runs, and need not wait for another interpreter to import torch. Scripts that people wrote are run as they run them.
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

# Takes the seconds that it may run and the budget, and returns how the control ended if it passed, else None.
WarmControl = Callable[[float, Budget], Outcome | None]
# The inputs that become a script of nothing but graphs.
_OF_GRAPHS = ("runnable", "launcher", "debug_dir", "trace", "exported_program", "package")


def warm_control(pool: Pool, options: Options) -> WarmControl | None:
    """A function that asks the `pool` for the control of the program in `options`; None if that is not a script of ours."""
    if options.taken is None or options.taken.taken_as not in _OF_GRAPHS or options.unusable:
        return None
    text = options.target.text

    def ask(seconds: float, budget: Budget) -> Outcome | None:
        try:
            outcome, _ = dispatch(pool, budget, Question(text, "control", seconds))
        except (BudgetSpent, PoolError):
            return None  # a separate process reports it in its own words
        if outcome.status != "ok" or not outcome.calls or outcome.raised:
            return None
        # its time is compared with that of a whole process
        return outcome.model_copy(update={"seconds": outcome.seconds + START})

    return ask
