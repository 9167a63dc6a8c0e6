"""A program that says by itself that results are wrong: what of its script may not change, lest it says the same of something else."""

from __future__ import annotations

from collections.abc import Collection

from bot.engine.capture.hints import held
from bot.engine.state import Reproduction
from bot.failure.traceback import exceptions, plain
from bot.models.failure import Kind
from bot.reduce.source.kept import Keeps, keeper
from bot.reduce.source.verdicts import keeps_verdict


def keeps_of(reproduction: Reproduction, source: str, text: str, failing_lines: Collection[int]) -> Keeps:
    """What candidates made of `text` have to keep, for this `reproduction`: functions of the program `source` that the compiler calls,
    where numbers are wrong or the program says by itself what is, and the condition on which the program fails in `failing_lines`, be it
    in a function of its own that the compiler calls.

    Raises:
        SyntaxError: `text` is not Python.
    """
    judged = reproduction.failure.kind is Kind.ACCURACY or reproduction.capture.own_verdict
    functions: Keeps = keeper(text, held(reproduction.capture, source)) if judged else lambda _text: True
    if not (judged or _is_raised_by_program(reproduction)):
        return functions
    # an exit, or a signal, has no line, whatever else is known of the lines
    verdict = keeps_verdict(text, () if reproduction.capture.outcome.status in ("exit", "signal") else failing_lines)
    return lambda candidate: functions(candidate) and verdict(candidate)


def _is_raised_by_program(reproduction: Reproduction) -> bool:
    """Whether the last frame of the failure is one of the program's file: a backend, pass or lowering of its own refused something."""
    chain = exceptions(plain(reproduction.capture.outcome.text))
    frames = chain[-1].frames if chain and reproduction.failure.kind is Kind.EXCEPTION else ()
    return reproduction.source is not None and bool(frames) and frames[-1].is_of(reproduction.source.file.name)
