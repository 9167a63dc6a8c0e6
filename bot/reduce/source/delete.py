"""Deletes statements, outermost level first, until no single one can be removed."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import libcst as cst

from bot.reduce.halving import adaptive
from bot.reduce.source.passes.deletions import levels
from bot.reduce.source.text.cst_edits import Edit, apply
from bot.reduce.source.text.normal_form import legal, normal

Ask = Callable[[Sequence[str]], "int | None"]


def shrink(text: str, ask: Ask) -> str:
    """The smallest text that deleting statements from `text` leads to; `text` is in normal form and known to work.

    `ask` takes texts, best first, and returns the index of the first that works, or None.
    """
    asked: dict[str, bool] = {text: True}
    while True:
        before = text
        depth = 0
        while deletions := levels(module := cst.parse_module(text), depth):
            text = _thin(module, deletions, text, ask, asked)
            depth += 1
        if text == before:
            return text


def _thin(module: cst.Module, deletions: Sequence[Edit], text: str, ask: Ask, asked: dict[str, bool]) -> str:
    """The text without the statements of one level that are not needed; the first of the `deletions` are tried first."""

    def print_without(gone: Sequence[Edit]) -> str:
        without = apply(module, gone)
        return text if without is None else normal(without)

    def works(alternatives: Sequence[Sequence[Edit]]) -> int | None:
        texts = [print_without(gone) for gone in alternatives]
        fresh = [i for i, t in enumerate(texts) if t not in asked and legal(t)]
        for i, t in enumerate(texts):
            if asked.get(t) and t != text:
                return i
        found = ask([texts[i] for i in fresh]) if fresh else None
        asked.update(dict.fromkeys((texts[i] for i in fresh[:found]), False))
        if found is None:
            return None
        asked[texts[fresh[found]]] = True
        return fresh[found]

    gone = adaptive(deletions, works)
    return print_without(gone) if gone else text
