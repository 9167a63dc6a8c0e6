"""Simplifies the arguments of operations.

Proposes, for each operation: dropping each keyword argument, dropping the last positional argument if it is a literal, and 1.0 for each
unusual float. These are part of the batch. Afterwards, one by one: each integer above 2 (a kernel's size, a stride, a group count) becomes
1, then 2. Shape propagation finds what is illegal without a query. Only in programs of up to 40 operations. Cost: nothing beyond the batch
if no argument matters, about 2 log2 n for each that does, two for each integer above 2 that has to stay. The idea is a fuzzer's shrinker
applied to calls: a default raises no questions.
"""

from __future__ import annotations

from dataclasses import replace

from bot.reduce.graph.edits import GraphEdit, apply, on_node
from bot.reduce.graph.form import Arg, Program, is_launch, is_op, refs
from bot.reduce.graph.incumbent import Incumbent
from bot.reduce.graph.passes.resize import takes_sizes
from bot.reduce.graph.rewrite import map_node
from bot.reduce.graph.size import literal_cost

_MOST_OPS = 40  # larger programs are left alone: each edit may cost a query


def edits(program: Program) -> list[GraphEdit]:
    """Edits of `program` that drop arguments and replace floats by 1.0."""
    found: list[GraphEdit] = []
    nodes = program.graph.nodes
    if len(nodes) > _MOST_OPS:
        return found
    for n in nodes:
        if not is_launch(n):  # a kernel's parameters have no defaults
            found.extend(_without_keyword(n.name, key) for key, _ in n.kwargs)
        if len(n.args) > 1 and is_op(n) and not n.target.startswith("torch.ops.higher_order.") and not any(True for _ in refs(n.args[-1])):
            found.append(_without_last(n.name, len(n.args)))
        if any(_unusual_float(leaf) for leaf in n.leaves()):
            found.append(_plain_floats(n.name))
    return found


def run(incumbent: Incumbent) -> bool:
    """Makes the integers in `incumbent` small, and drops any arguments that can now go; returns whether anything changed."""
    start = incumbent.key
    apply(incumbent, edits(incumbent.program), "arguments")
    graph = incumbent.program.graph
    if len(graph.nodes) > _MOST_OPS:
        return incumbent.key != start
    for n in graph.nodes:
        if takes_sizes(n):
            continue
        for number in sorted({leaf for leaf in n.leaves() if _large_int(leaf)}, key=repr):
            programs = [_with_number(incumbent.program, n.name, number, small) for small in (1, 2)]
            incumbent.offer_first([None if p is None else incumbent.legal(p) for p in programs], "arguments")
    return incumbent.key != start


def _without_keyword(name: str, key: str) -> GraphEdit:
    return on_node(name, lambda node: replace(node, kwargs=tuple((k, v) for k, v in node.kwargs if k != key)))


def _without_last(name: str, length: int) -> GraphEdit:
    return on_node(name, lambda node: replace(node, args=node.args[:-1]) if len(node.args) == length else node)


def _plain_floats(name: str) -> GraphEdit:
    return on_node(name, lambda node: map_node(node, lambda arg: 1.0 if _unusual_float(arg) else arg))


def _with_number(program: Program, name: str, number: Arg, small: int) -> Program | None:
    edit = on_node(name, lambda node: map_node(node, lambda arg: small if type(arg) is int and arg == number else arg))
    changed = edit(program)
    return None if changed == program else changed


def _unusual_float(arg: Arg) -> bool:
    return isinstance(arg, float) and literal_cost(arg) > 0


def _large_int(arg: Arg) -> bool:
    return type(arg) is int and arg > 2
