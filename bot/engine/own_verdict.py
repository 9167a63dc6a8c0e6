"""A program that itself says that results are wrong: what in its script must not change, or it would say so about something else."""

from __future__ import annotations

from collections.abc import Collection

from bot.engine.capture.hints import held
from bot.engine.state import Reproduction
from bot.failure.traceback import exceptions, plain
from bot.models.failure import Kind
from bot.reduce.source.fixed_sizes import fixes_no_size, is_of_a_size
from bot.reduce.source.kept import Keeps, branches_return, keeper, nothing_dead
from bot.reduce.source.results import keeps_results
from bot.reduce.source.shown import keeps_shown
from bot.reduce.source.verdicts import keeps_verdict


def keeps_of(reproduction: Reproduction, source: str, text: str, failing_lines: Collection[int]) -> Keeps:
    """What candidates made from `text` have to keep for this `reproduction`.

    If numbers are wrong or the program itself judges: functions of the program `source` that the compiler calls, and what the results of
    its operators depend on. What it measures and shows in its messages; the condition on which it fails in `failing_lines`, even in its
    own function that the compiler calls; the results of functions that control flow calls; results that are read, if an error is missing;
    and sizes that are computed, if one became a constant. Raises SyntaxError if `text` is not Python.
    """
    judged = reproduction.failure.kind is Kind.ACCURACY or reproduction.capture.own_verdict
    asked: list[Keeps] = [branches_return(text)]
    if judged:
        asked += [keeper(text, held(reproduction.capture, source)), keeps_results(text)]
    if judged or _is_raised_by_program(reproduction):
        asked.append(keeps_shown(text))
        # an exit or a signal has no line, whatever else is known of the lines
        asked.append(keeps_verdict(text, () if reproduction.capture.outcome.status in ("exit", "signal") else failing_lines))
    if reproduction.failure.kind is Kind.NO_RAISE or reproduction.eager_error:
        asked.append(nothing_dead(text))
    if is_of_a_size(reproduction.failure.message):
        asked.append(fixes_no_size(text))
    return lambda candidate: all(keeps(candidate) for keeps in asked)


def _is_raised_by_program(reproduction: Reproduction) -> bool:
    """Whether the last frame of the failure is in the program's file: its own backend, pass or lowering rejected something."""
    chain = exceptions(plain(reproduction.capture.outcome.text))
    frames = chain[-1].frames if chain and reproduction.failure.kind is Kind.EXCEPTION else ()
    return reproduction.source is not None and bool(frames) and frames[-1].is_of(reproduction.source.file.name)
