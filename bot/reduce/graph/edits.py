"""Applies as many edits of a list as possible with few queries.

All are tried at once; if that is not SAME, each half, and so on (the halving of delta debugging without its complements: edits of
different kinds are nearly independent). If b of n edits cannot be applied, this takes about 2 b log2(n/b) queries; if all can, one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeVar

from bot.reduce.graph.form import Input, Node, Program
from bot.reduce.graph.incumbent import Incumbent
from bot.reduce.graph.rewrite import drop_unused, find_input, find_node, with_input, with_node

Item = TypeVar("Item")
GraphEdit = Callable[[Program], Program | None]
"""Returns the changed program, or None if there is nothing to change."""


def apply(incumbent: Incumbent, edits: Sequence[GraphEdit], origin: str, *, structures: bool = False) -> bool:
    """Applies as many of the edits as possible to `incumbent`, in order, as offers of the pass `origin`; returns whether any was applied.

    Shapes are propagated first, so an edit that makes the program illegal costs no query. With `structures`, neither does an edit that
    leaves operations which were rejected before.
    """
    offer: Callable[[Iterable[Program | None], str], int | None] = incumbent.offer_structures if structures else incumbent.offer_first
    return by_halves(edits, lambda parts: offer((_changed(incumbent, part) for part in parts), origin))


def by_halves(items: Sequence[Item], first: Callable[[Iterator[Sequence[Item]]], int | None]) -> bool:
    """Takes as many of the items as possible: all of them, or else what can be taken of each half; returns whether any was taken.

    `first` gets the parts in the order in which they are asked as long as none is taken, and returns the index of the one taken.
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
    """Each part to ask if none before it was taken, with the parts that remain to be asked once it is taken."""
    while pending:
        part, *pending = pending
        yield part, pending
        middle = len(part) // 2
        pending = [half for half in (part[:middle], part[middle:]) if middle] + pending


def on_input(name: str, change: Callable[[Program, Input], Input]) -> GraphEdit:
    """An edit that applies `change` to the input or constant called `name`, if there is one."""

    def edit(program: Program) -> Program | None:
        item = find_input(program, name)
        return None if item is None else with_input(program, change(program, item))

    return edit


def on_node(name: str, change: Callable[[Node], Node]) -> GraphEdit:
    """An edit that applies `change` to the operation called `name`, if there is one, and drops what is unused afterwards."""

    def edit(program: Program) -> Program | None:
        node = find_node(program, name)
        if node is None:
            return None
        changed = with_node(program, change(node))
        return changed.with_graph(drop_unused(changed.graph))

    return edit


def applied(program: Program, edits: Sequence[GraphEdit]) -> Program:
    """The program after all of the edits; those that have nothing to change are skipped."""
    for edit in edits:
        program = edit(program) or program
    return program


def _changed(incumbent: Incumbent, edits: Sequence[GraphEdit]) -> Program | None:
    changed = applied(incumbent.program, edits)
    if changed == incumbent.program:
        return None
    return changed if changed.graph == incumbent.program.graph else incumbent.legal(changed)
