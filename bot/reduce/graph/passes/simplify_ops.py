"""Replaces operations by simpler ones whose result has the same metadata.

Proposes, for each operation with an operand of the same shape and dtype as its result: that operand itself, if it is an input that is used
elsewhere too (dropping the operation would make a new input, which differs); then `torch.relu` of it, if the operation has other operands
or arguments. Only in programs of up to 40 operations. Cost: at most two queries for each such operation, usually one. The idea is from
Perses and circt-reduce: not only delete, but replace by something simpler of the same kind.
"""

from __future__ import annotations

from dataclasses import replace

from bot.reduce.graph.form import Node, Program, Ref
from bot.reduce.graph.incumbent import Incumbent
from bot.reduce.graph.keep import is_floating
from bot.reduce.graph.passes.outputs import without_dead
from bot.reduce.graph.rewrite import find_node, substitute, with_node

_STAND_IN = "torch.relu"
_MOST_OPS = 40


def run(incumbent: Incumbent) -> bool:
    """Replaces as many operations of `incumbent` as possible, from the end; returns whether any was replaced."""
    start = incumbent.key
    nodes = incumbent.program.graph.nodes
    if len(nodes) > _MOST_OPS:
        return False
    for name in [n.name for n in reversed(nodes)]:
        node = find_node(incumbent.program, name)
        if node is not None:
            if incumbent.offer_structures([_forward(incumbent.program, node)], "simplify_ops", sharing=True) is not None:
                continue
            incumbent.offer_structures([_stand_in(incumbent.program, node)], "simplify_ops")
    return incumbent.key != start


def _alike(program: Program, node: Node) -> list[str]:
    metas = program.graph.metas()
    mine = ("tensor", node.meta.shape, node.meta.dtype, node.meta.device)
    known = ((name, metas[name]) for name in dict.fromkeys(node.uses()) if name in metas and node.meta.is_tensor)
    return [name for name, meta in known if (meta.kind, meta.shape, meta.dtype, meta.device) == mine]


def _forward(program: Program, node: Node) -> Program | None:
    # for a value that only the output uses, dropping that output was offered
    if not any(node.name in n.uses() for n in program.graph.nodes):
        return None
    inputs = {i.name for i in program.graph.sources}
    uses = [name for n in program.graph.nodes if n.name != node.name for name in n.uses()]
    alike = [name for name in _alike(program, node) if name in inputs and name in uses]
    if not alike or not inputs.issuperset(node.uses()) or len(program.graph.nodes) < 2:
        return None
    rest = replace(program.graph, nodes=tuple(n for n in program.graph.nodes if n.name != node.name))
    return without_dead(program.with_graph(substitute(rest, {node.name: Ref(alike[0])})))


def _stand_in(program: Program, node: Node) -> Program | None:
    alike = _alike(program, node)
    if not alike or not is_floating(node.meta.dtype) or (len(node.args) == 1 and not node.kwargs):
        return None
    plain = replace(node, op="function", target=_STAND_IN, args=(Ref(alike[0]),), kwargs=())
    return without_dead(with_node(program, plain))
