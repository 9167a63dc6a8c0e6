"""From an edited tree to a candidate: what can't run any more goes, what nobody uses any more goes, and it is laid out again."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from bot.reduce.source.text.names import dotted
from bot.reduce.source.text.normal_form import legal, measure, normal, unmarked
from bot.reduce.source.text.repair import Missing, collected, missing, repaired, unused

# Entry points of the compiler.
ENTRIES = ("compile", "export", "aoti_compile_and_package", "aot_compile", "draft_export", "optimize", "export_for_training")


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


def entries(text: str) -> int:
    """How often a text mentions an entry point of the compiler (`torch.compile`, `torch.export.export`, ...)."""
    return entries_in(ast.parse(text))


def entries_in(tree: ast.AST) -> int:
    """The same of a syntax tree."""
    count = 0
    for node in ast.walk(tree):
        name = dotted(node) if isinstance(node, (ast.Attribute, ast.Name)) else None
        if name is not None and name.split(".")[-1] in ENTRIES and (name.startswith("torch") or "." not in name):
            count += 1
    return count


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
