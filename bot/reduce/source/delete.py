"""Deletion of statements, outermost level first, until no single one can be taken away."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import libcst as cst

from bot.reduce.halving import adaptive
from bot.reduce.source.text.cst_edits import apply, blocks, body_of, is_pass, remove
from bot.reduce.source.text.normal_form import legal, normal

Ask = Callable[[Sequence[str]], "int | None"]


def shrink(text: str, ask: Ask) -> str:
    """The smallest text that deletion of statements reaches from a text in normal form which is known to work."""
    asked: dict[str, bool] = {text: True}
    while True:
        before = text
        depth = 0
        while True:
            module = cst.parse_module(text)
            level = [s for s in _level(module, depth) if not is_pass(s)]
            if not level:
                break
            text = _thin(module, level, text, ask, asked)
            depth += 1
        if text == before:
            return text


def _thin(module: cst.Module, level: list[cst.BaseStatement], text: str, ask: Ask, asked: dict[str, bool]) -> str:
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

    gone = adaptive(list(reversed(level)), works)
    return print_without(gone) if gone else text


def _level(module: cst.Module, depth: int) -> list[cst.BaseStatement]:
    found = [s for block in blocks(module) for s in body_of(block)]
    for _ in range(depth):
        found = [inner for s in found for block in blocks(s) for inner in body_of(block)]
    return found
