"""Turns an edited text into a candidate: removes what can no longer run and what is no longer used, and lays out the rest again."""

from __future__ import annotations

from dataclasses import dataclass

from bot.reduce.source.text.compiler_calls import entries
from bot.reduce.source.text.normal_form import legal, measure, normal, unmarked
from bot.reduce.source.text.repair import Missing, collected, missing, repaired, unused


@dataclass(frozen=True)
class Base:
    """The text that edits start from, in normal form with marks, and what is known about it."""

    text: str
    missing: Missing
    unused: frozenset[tuple[str, str]]
    entries: int  # mentions of a compiler's entry points

    @staticmethod
    def of(text: str) -> Base:
        """The base for `text`. Raises SyntaxError if it is not Python."""
        return Base(text, missing(text), unused(text), entries(text))


def finish(base: Base, edited: str | None) -> str | None:
    """The candidate (marks kept) for a text `edited` from `base`; None if it is not a program, is not smaller, or loses the compiler."""
    if edited is None or not legal(edited):
        return None
    fixed = repaired(edited, base.missing)
    if fixed is None:
        return None
    try:
        text = normal(collected(fixed, base.unused))
    except SyntaxError:
        return None
    smaller = legal(text) and measure(unmarked(text)) < measure(unmarked(base.text))
    return text if smaller and (entries(text) or not base.entries) else None
