"""Whether a program that did not end hangs, or is only slow."""

from __future__ import annotations

from bot.engine import time_split
from bot.engine.options import Ended, Options
from bot.failure.outcome import Outcome
from bot.failure.signature import shows_a_place, shows_one_place, waits_for_a_program
from bot.units import spoken
from bot.workers.process import HANG_RATIO, START
from bot.workers.toolchain import Maker


def longer(options: Options, compiled: Outcome, eager: Outcome) -> float | None:
    """More seconds for a program that is so slow in eager that it got too little time to be called a hang, if there are any.

    `options` are what the user asked for, `compiled` and `eager` its outcomes with and without the compiler.
    """
    named = options.hang_after
    if named is None or not _too_soon(compiled, eager, named):
        return None
    most = min(HANG_RATIO * (eager.seconds - START), options.budget / 3)
    return most + START if most > named else None


def began_cold(outcome: Outcome, made: Maker | None) -> bool:
    """Whether a run that did not end, with this `outcome`, waited for a C++ compiler while what every compile begins with was still being
    `made`: on a busy machine it had to make that itself."""
    late = outcome.status == "timeout" and not outcome.cut and waits_for_a_program(outcome)
    return late and made is not None and made.worked_within(outcome.elapsed)


def hang_after(options: Options, compiled: Outcome, eager: Outcome, own: float) -> float:
    """Seconds after which a run of the program hangs, given that it did not end within `own` seconds; `options`, `compiled` and `eager` as
    for `longer`. Raises Ended if it may only be slow.
    """
    waited, named = compiled.seconds, options.hang_after
    # on a busy machine much less than the time that passed
    still = f"still running after {waited:.0f} s of its own time"
    limit = waited if named is None else own - START
    if _too_soon(compiled, eager, limit):
        said = f"{still}, but without the compiler it takes {eager.seconds:.0f} s: no hang by that limit"
        raise Ended("error" if named is None else "not_reproduced", "budget", f"{said}; {_more_time(options)}")
    if named is not None:
        return limit
    if waited < time_split.LEAST_SAMPLED:
        raise Ended("error", "budget", f"{still}: too little to tell; {_more_time(options)}")
    if waits_for_a_program(compiled):
        said = f"{still}, waiting for a program that it started (a compiler, for one): it may only be slow"
        raise Ended("error", "budget", f"{said}; {_more_time(options)}, --hang-after says from when on it hangs")
    if not shows_one_place(compiled):
        where = "each time in another place: it may only be slow" if shows_a_place(compiled) else "and printed no stack when asked for one"
        said = f"{still}, {where}"
        raise Ended("error", "budget", f"{said}; {_more_time(options)}")
    return time_split.hang_limit(options, waited)


def _more_time(options: Options) -> str:
    if options.hang_after is not None:
        return "--hang-after sets a longer one"
    twice = 2 * options.budget
    return f"a run may take a third of the budget, so --budget {spoken(twice)} gives it {spoken(twice / 3)}"


def _too_soon(compiled: Outcome, eager: Outcome, limit: float) -> bool:
    """Whether a program that is so slow in eager got too little time to be called a hang."""
    return compiled.status == "timeout" and eager.seconds > limit / HANG_RATIO + START
