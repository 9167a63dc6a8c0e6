"""Applies as many edits of a list as possible, at few queries.

All at once first; if that is not SAME, each half, and so on (the halving of delta debugging, without its complements:
edits of different sorts are nearly independent). With b edits that cannot be applied among n, about 2 b log2(n/b) queries;
one query if all can.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from bot.reduce.graph import Program
from bot.reduce.passes.incumbent import Incumbent

Edit = Callable[[Program], Program | None]
"""Gives the changed program, or None where there is nothing to change."""


def apply(incumbent: Incumbent, edits: Sequence[Edit], origin: str) -> bool:
    """Applies what can be applied of the edits, in order; says whether anything was.

    An edit that makes the program illegal costs no query: shapes are propagated first.
    """
    if not edits:
        return False
    if _attempt(incumbent, edits, origin):
        return True
    if len(edits) == 1:
        return False
    middle = len(edits) // 2
    left = apply(incumbent, edits[:middle], origin)
    right = apply(incumbent, edits[middle:], origin)
    return left or right


def applied(program: Program, edits: Sequence[Edit]) -> Program:
    """The program after the edits, those that have nothing to change left out."""
    for edit in edits:
        program = edit(program) or program
    return program


def _attempt(incumbent: Incumbent, edits: Sequence[Edit], origin: str) -> bool:
    changed = applied(incumbent.program, edits)
    if changed == incumbent.program:
        return False
    if changed.graph == incumbent.program.graph:
        return incumbent.offer(changed, origin)
    legal = incumbent.legal(changed)
    return legal is not None and incumbent.offer(legal, origin)
