"""Deletion of statements, outermost level first, until no single one can be taken away."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import libcst as cst

from bot.reduce.halving import adaptive
from bot.reduce.source.text.cst_edits import apply, is_pass, level, remove
from bot.reduce.source.text.normal_form import legal, normal

Ask = Callable[[Sequence[str]], "int | None"]


def shrink(text: str, ask: Ask) -> str:
    """The smallest text that deletion of statements reaches from `text`, which is in normal form and known to work.

    `ask` takes texts, best first, and gives the index of the first that works, or None."""
    asked: dict[str, bool] = {text: True}
    while True:
        before = text
        depth = 0
        while True:
            module = cst.parse_module(text)
            found = [s for s in level(module, depth) if not is_pass(s)]
            if not found:
                break
            text = _thin(module, found, text, ask, asked)
            depth += 1
        if text == before:
            return text


def _thin(module: cst.Module, statements: list[cst.BaseStatement], text: str, ask: Ask, asked: dict[str, bool]) -> str:
    """The text without the statements of one level that are not needed, the last ones tried first."""

    def print_without(gone: Sequence[cst.BaseStatement]) -> str:
        without = apply(module, [remove(s) for s in gone])
        return text if without is None else normal(without)

    def works(alternatives: Sequence[Sequence[cst.BaseStatement]]) -> int | None:
        texts = [print_without(gone) for gone in alternatives]
        fresh = [i for i, t in enumerate(texts) if t not in asked and legal(t)]
        for i, t in enumerate(texts):
            if asked.get(t) and t != text:
                return i
        found = ask([texts[i] for i in fresh]) if fresh else None
        for position, i in enumerate(fresh):
            if found is None or position < found:
                asked[texts[i]] = False
        if found is None:
            return None
        asked[texts[fresh[found]]] = True
        return fresh[found]

    gone = adaptive(list(reversed(statements)), works)
    return print_without(gone) if gone else text
