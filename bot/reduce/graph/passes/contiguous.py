"""Makes inputs plain tensors.

Proposes, for each input: contiguous strides; no gradient, a leaf, not a parameter, not passed by keyword. Part of the batch; about 2 log2
n queries for each that must stay as it is. In a program that is differentiated, inputs keep their gradients. The idea is the one of
`values`: an odd stride in a repro should mean something.
"""

from __future__ import annotations

from dataclasses import replace

from bot.reduce.graph.edits import GraphEdit, on_input
from bot.reduce.graph.form import Input, Program, contiguous_stride
from bot.reduce.graph.size import is_contiguous


def edits(program: Program) -> list[GraphEdit]:
    """At most two edits for each input of `program`."""
    found: list[GraphEdit] = []
    for item in program.graph.sources:
        if not is_contiguous(item):
            found.append(on_input(item.name, _contiguous))
        if item.requires_grad or not item.leaf or item.parameter or item.keyword is not None:
            found.append(on_input(item.name, _plain))
    return found


def _contiguous(_program: Program, item: Input) -> Input:
    if is_contiguous(item):
        return item
    return replace(item, meta=replace(item.meta, stride=contiguous_stride(item.meta.shape)))


def _plain(program: Program, item: Input) -> Input:
    return replace(item, requires_grad=item.requires_grad and program.recipe.needs_gradients, leaf=True, parameter=False, keyword=None)
