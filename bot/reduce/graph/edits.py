"""Applies as many edits of a list as possible, at few queries.

All at once first; if that is not SAME, each half, and so on (the halving of delta debugging, without its complements:
edits of different sorts are nearly independent). With b edits that cannot be applied among n, about 2 b log2(n/b) queries;
one query if all can.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeVar

from bot.reduce.graph.form import Input, Node, Program
from bot.reduce.graph.incumbent import Incumbent
from bot.reduce.graph.rewrite import drop_unused, find_input, find_node, with_input, with_node

Item = TypeVar("Item")
Edit = Callable[[Program], Program | None]
"""Gives the changed program, or None where there is nothing to change."""


def apply(incumbent: Incumbent, edits: Sequence[Edit], origin: str, *, structures: bool = False) -> bool:
    """Applies to `incumbent` what can be applied of the edits, in order, as offers of the pass `origin`; says whether anything was.

    An edit that makes the program illegal costs no query: shapes are propagated first. `structures`: nor does one that leaves operations
    which were rejected before.
    """
    offer: Callable[[Iterable[Program | None], str], int | None] = incumbent.offer_structures if structures else incumbent.offer_first
    return by_halves(edits, lambda parts: offer((_changed(incumbent, part) for part in parts), origin))


def by_halves(items: Sequence[Item], first: Callable[[Iterator[Sequence[Item]]], int | None]) -> bool:
    """Takes what can be taken of the items: all of them, else what can be taken of each half; says whether anything was.

    `first` is told the parts in the order in which they are asked while none is taken, and says which was.
    """
    pending, found = [items] if items else [], False
    while pending:
        steps = list(_while_refused(pending))
        taken = first(part for part, _ in steps)
        if taken is None:
            break
        pending, found = steps[taken][1], True
    return found


def _while_refused(pending: list[Sequence[Item]]) -> Iterator[tuple[Sequence[Item], list[Sequence[Item]]]]:
    """Each part that is asked if none is taken, and what is left to ask once it is."""
    while pending:
        part, *pending = pending
        yield part, pending
        middle = len(part) // 2
        pending = [half for half in (part[:middle], part[middle:]) if middle] + pending


def on_input(name: str, change: Callable[[Program, Input], Input]) -> Edit:
    """An edit that makes `change` of the input or constant of that name, where it is there."""

    def edit(program: Program) -> Program | None:
        item = find_input(program, name)
        return None if item is None else with_input(program, change(program, item))

    return edit


def on_node(name: str, change: Callable[[Node], Node]) -> Edit:
    """An edit that makes `change` of the operation of that name, where it is there; what then has no user goes."""

    def edit(program: Program) -> Program | None:
        node = find_node(program, name)
        if node is None:
            return None
        changed = with_node(program, change(node))
        return changed.with_graph(drop_unused(changed.graph))

    return edit


def applied(program: Program, edits: Sequence[Edit]) -> Program:
    """The program after the edits, those that have nothing to change left out."""
    for edit in edits:
        program = edit(program) or program
    return program


def _changed(incumbent: Incumbent, edits: Sequence[Edit]) -> Program | None:
    changed = applied(incumbent.program, edits)
    if changed == incumbent.program:
        return None
    return changed if changed.graph == incumbent.program.graph else incumbent.legal(changed)
