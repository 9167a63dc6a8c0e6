"""How a job divides its budget.

The first runs (the capture and its control) may take a third and the proof a sixth, so the search has at least half. On a busy machine a
run that does not end is cut off only at two thirds, so that it has had its own time before it is called a hang. `--hang-after` takes
precedence over this.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from bot.engine.evidence import verify
from bot.engine.options import Ended, Options
from bot.engine.state import Reproduction, SearchResult
from bot.models.failure import Kind
from bot.oracle.budget import Budget
from bot.units import spoken
from bot.workers.process import START

# The budget's share for the first runs, by their own time and by the time that passes.
FIRST_SHARE, FIRST_MOST = 1 / 3, 2 / 3
# The budget's share in which an interpreter has to say what it needs, before anything is run.
ASK_SHARE = 0.1
# The budget's share in which a program that passed may be run again.
AGAIN_SHARE = 1 / 6
# The budget's share that is kept for verification and writing, and its bounds in seconds.
RESERVE_SHARE, RESERVE_LEAST, RESERVE_MOST = 0.15, 10.0, 120.0
# The budget's share in which the proof of a hang has to fit, and the least time, in seconds, after which its runs count as hanging.
PROOF_SHARE, LEAST_HANG = 1 / 6, 20.0
# Seconds of a run's own time. A run that got less cannot show that the program does not end.
LEAST_SAMPLED = 20.0
# The search for a hang begins only if this many queries fit into it: each takes as long as it is waited for.
LEAST_QUERIES = 3


def of_first_runs(options: Options, budget: Budget) -> Budget:
    """The part of the `budget` in which the first runs have to end, according to `options`. Raises Ended if it is over already."""
    first = budget.part(None if options.hang_after is not None else options.budget * FIRST_MOST)
    if first.remaining() <= 0:
        took = f"{budget.clock() - budget.started:.0f} s of a budget of {spoken(options.budget)}"
        said = f"the machine took {took} to get ready, so the program was not run"
        raise Ended("error", "budget", f"{said}; a longer --budget gives it more time")
    return first


def first_run(options: Options) -> float:
    """Seconds of its own time that the program may take before it is said not to end, according to `options`."""
    return options.budget * FIRST_SHARE if options.hang_after is None else options.hang_after + START


def hang_limit(options: Options, waited: float) -> float:
    """Seconds after which a candidate hangs, if the program itself did not end in `waited` seconds and `options` set no limit."""
    fits = options.budget * PROOF_SHARE / options.verify_runs - START
    return min(waited, max(LEAST_HANG, fits))


def reserve(options: Options, reproduction: Reproduction | None = None, confirmed: float = 0.0, left: float = math.inf) -> float:
    """Seconds of the budget in `options` to keep from the search.

    Once there is a `reproduction`, at least the time of the proof: its first run, then the rest in parallel. Each run is expected to take
    as long as the program did or, if that is more, as one proof with a single run and its controls did (`confirmed` seconds). If that is
    more than the seconds that are `left`, only something quicker can be proven, and the search gets the time to find it.
    """
    kept = min(RESERVE_MOST, max(RESERVE_LEAST, options.budget * RESERVE_SHARE))
    if reproduction is not None:
        proof = _proof(options, reproduction, max(confirmed, _once(reproduction)))
        kept = max(kept, proof if proof <= left else _proof(options, reproduction, confirmed))
    return min(options.budget / 2, kept)


def keeping_for_proof(
    confirms: Callable[[SearchResult, Budget], bool], budget: Budget, options: Options, reproduction: Reproduction
) -> Callable[[SearchResult, Budget], bool]:
    """Wraps `confirms`, which runs a step of the search alone: from the time that this took, the `budget` keeps what the proof will take.

    `options` say how often the proof runs a script, and the `reproduction` how it fails. A small script is not a measure of its proof on a
    machine where starting is slow, nor is the program, which runs without controls.
    """

    def timed(step: SearchResult, part: Budget) -> bool:
        began = budget.clock()
        same = confirms(step, part)
        if same:
            budget.reserve = max(budget.reserve, reserve(options, reproduction, budget.clock() - began, budget.remaining()))
        return same

    return timed


def _proof(options: Options, reproduction: Reproduction, once: float) -> float:
    """Seconds that the proof takes, if the program takes `once`."""
    if reproduction.failure.kind is Kind.HANG:
        return (reproduction.hang_after + START) * options.verify_runs
    width = verify.at_once(reproduction.failure)
    rounds = 1 if width > options.verify_runs else 1 + math.ceil((options.verify_runs - 1) / width)
    return once * rounds


def _once(reproduction: Reproduction) -> float:
    """Seconds that pass while the program runs once on this machine, as busy as it is."""
    outcome = reproduction.capture.outcome
    return max(outcome.seconds, outcome.elapsed)


def enough(options: Options, reproduction: Reproduction, budget: Budget) -> float | None:
    """The budget, in seconds, that would be enough, if what is left of `budget` is too little to search for a program as slow as that of
    the `reproduction`; None if it is enough. `options` say how often it has to be proven.

    Only the program's own time counts: a machine that is busy now may be free in a minute, and a search that is cut off loses nothing.
    """
    once = reproduction.capture.outcome.seconds
    query = reproduction.hang_after / 3 if reproduction.failure.kind is Kind.HANG else once
    spent, proof = options.budget - budget.remaining(), _proof(options, reproduction, once)
    # the first query is as cold as that run; the next ones are warm, and of something smaller, which is proven in little more than a start
    least = LEAST_QUERIES * query if reproduction.failure.kind is Kind.HANG else query
    if spent + least + min(proof, _proof(options, reproduction, START)) <= options.budget:
        return None
    return math.ceil(max(2 * (spent + proof), spent + proof + 2 * LEAST_QUERIES * query) / 60) * 60.0
