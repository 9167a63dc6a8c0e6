"""Reduces the number of inputs.

Proposes, all at once, then by halves: each input replaced by an earlier one with the same metadata; each tensor that the module owns made
an input. Cost: one query if all can be merged, about 2 log2 n for each that cannot. Unused inputs never remain: the builder of candidates
drops them. (PyTorch's minifier has such a step, but it compares a list with itself and never succeeds.)
"""

from __future__ import annotations

from dataclasses import replace

from bot.reduce.graph.edits import GraphEdit, apply
from bot.reduce.graph.form import Input, Program, Ref
from bot.reduce.graph.incumbent import Incumbent
from bot.reduce.graph.rewrite import find_input, substitute


def run(incumbent: Incumbent) -> bool:
    """Merges inputs of `incumbent`, and turns its constants into inputs; returns whether anything changed."""
    constants = apply(incumbent, [_to_input(c.name) for c in incumbent.program.graph.constants], "inputs")
    return apply(incumbent, edits(incumbent.program), "inputs") or constants


def edits(program: Program) -> list[GraphEdit]:
    """An edit for each input of `program` that an earlier one could replace."""
    found: list[GraphEdit] = []
    first: dict[object, Input] = {}
    for item in program.graph.inputs:
        if not item.meta.is_tensor:
            continue
        key = (item.meta.shape, item.meta.stride, item.meta.dtype, item.meta.device)
        if key in first:
            found.append(_merge(item.name, first[key].name))
        else:
            first[key] = item
    return found


def _merge(name: str, other: str) -> GraphEdit:
    def edit(program: Program) -> Program | None:
        if find_input(program, name) is None or find_input(program, other) is None:
            return None
        return program.with_graph(substitute(program.graph, {name: Ref(other)}))

    return edit


def _to_input(name: str) -> GraphEdit:
    def edit(program: Program) -> Program | None:
        graph = program.graph
        moved = next((c for c in graph.constants if c.name == name), None)
        if moved is None or not moved.meta.is_tensor:
            return None
        plain = replace(moved, parameter=False, requires_grad=moved.requires_grad and program.recipe.needs_gradients)
        rest = tuple(c for c in graph.constants if c.name != name)
        return program.with_graph(replace(graph, inputs=(*graph.inputs, plain), constants=rest))

    return edit
