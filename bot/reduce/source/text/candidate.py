"""From an edited tree to a candidate: what can't run any more goes, what nobody uses any more goes, and it is laid out again."""

from __future__ import annotations

from dataclasses import dataclass

from bot.reduce.source.text.compiler_calls import entries
from bot.reduce.source.text.normal_form import legal, measure, normal, unmarked
from bot.reduce.source.text.repair import Missing, collected, missing, repaired, unused


@dataclass(frozen=True)
class Base:
    """The text that edits start from, in normal form with marks, and what is to be known of it."""

    text: str
    missing: Missing
    unused: frozenset[tuple[str, str]]
    entries: int  # mentions of a compiler's entry points

    @staticmethod
    def of(text: str) -> Base:
        """Raises SyntaxError where the text is not Python."""
        return Base(text, missing(text), unused(text), entries(text))


def finish(base: Base, edited: str | None) -> str | None:
    """The candidate (marks kept) for an edited text; None where it is no program, no smaller, or makes the check meaningless."""
    if edited is None or not legal(edited):
        return None
    fixed = repaired(edited, base.missing)
    if fixed is None:
        return None
    try:
        text = normal(collected(fixed, base.unused))
    except SyntaxError:
        return None
    if not legal(text) or measure(unmarked(text)) >= measure(unmarked(base.text)):
        return None
    if base.entries and not entries(text):
        return None
    return text
