"""Makes inputs plain tensors.

Proposes, for each input: contiguous strides; no gradient, a leaf, not a parameter, not passed by keyword. Part of the batch; about
2 log2 n queries for one that must stay as it is. In a program that is differentiated the inputs keep their gradients. The idea is
that of `values`: an odd stride in a repro should mean something.
"""

from __future__ import annotations

from dataclasses import replace

from bot.reduce.graph.edits import Edit
from bot.reduce.graph.form import Program
from bot.reduce.graph.rewrite import find_input, with_input
from bot.reduce.graph.size import contiguous_stride, is_contiguous


def edits(program: Program) -> list[Edit]:
    """Two edits at most for each input."""
    found: list[Edit] = []
    for item in (*program.graph.inputs, *program.graph.constants):
        if not is_contiguous(item):
            found.append(_contiguous(item.name))
        if item.requires_grad or not item.leaf or item.parameter or item.keyword is not None:
            found.append(_plain(item.name))
    return found


def _contiguous(name: str) -> Edit:
    def edit(program: Program) -> Program | None:
        item = find_input(program, name)
        if item is None or is_contiguous(item):
            return None
        return with_input(program, replace(item, meta=replace(item.meta, stride=contiguous_stride(item.meta.shape))))

    return edit


def _plain(name: str) -> Edit:
    def edit(program: Program) -> Program | None:
        item = find_input(program, name)
        if item is None:
            return None
        grad = item.requires_grad and program.recipe.backward
        return with_input(program, replace(item, requires_grad=grad, leaf=True, parameter=False, keyword=None))

    return edit
