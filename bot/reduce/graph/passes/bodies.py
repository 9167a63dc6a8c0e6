"""Drops operations inside the bodies of higher-order operations.

Proposes, all at once, then by halves: each operation of a body replaced by the nearest earlier value of the body with the same shape and
dtype (the call fixes the body's operands, so nothing can become a new input). Cost: one query if all can go, about 2 log2 n for each that
cannot. The idea is delta debugging, with the only deletion that the fixed operands of a body allow.
"""

from __future__ import annotations

from dataclasses import replace

from bot.reduce.graph.edits import GraphEdit, apply
from bot.reduce.graph.form import Graph, Node, Program, Ref, is_op, refs
from bot.reduce.graph.incumbent import Incumbent
from bot.reduce.graph.rewrite import substitute


def run(incumbent: Incumbent) -> bool:
    """Drops operations from the bodies in `incumbent` until none can go; returns whether any went."""
    start = incumbent.key
    while True:
        before = incumbent.key
        apply(incumbent, edits(incumbent.program), "bodies")
        if incumbent.key == before:
            return incumbent.key != start


def edits(program: Program) -> list[GraphEdit]:
    """An edit for each operation in a body of `program`, the last first."""
    return [_drop(path, n.name) for path in _paths(program.graph) for n in reversed(_at(program.graph, path).nodes) if is_op(n)]


def _paths(graph: Graph) -> list[tuple[str, ...]]:
    return [(name, *inner) for name, body in graph.bodies for inner in ((), *_paths(body))]


def _at(graph: Graph, path: tuple[str, ...]) -> Graph:
    for name in path:
        graph = dict(graph.bodies)[name]
    return graph


def _put(graph: Graph, path: tuple[str, ...], body: Graph) -> Graph:
    if not path:
        return body
    bodies = tuple((name, _put(inner, path[1:], body) if name == path[0] else inner) for name, inner in graph.bodies)
    return replace(graph, bodies=bodies)


def _drop(path: tuple[str, ...], name: str) -> GraphEdit:
    def edit(program: Program) -> Program | None:
        try:
            body = _at(program.graph, path)
        except KeyError:  # an enclosing body went with the operation that called it
            return None
        node = next((n for n in body.nodes if n.name == name), None)
        if node is None:
            return None
        other = _alike(body, node)
        if other is None and name in {u for n in body.nodes for u in n.uses()} | set(refs(body.output)):
            return None
        rest = replace(body, nodes=tuple(n for n in body.nodes if n.name != name))
        inputs = body.inputs  # the call passes them whether they are used or not
        changed = replace(substitute(rest, {} if other is None else {name: Ref(other)}), inputs=inputs)
        return program.with_graph(_put(program.graph, path, _without_dead(changed)))

    return edit


def _alike(body: Graph, node: Node) -> str | None:
    """The latest value before the node that could replace it; its own operands are preferred."""
    metas = body.metas()
    before = [i.name for i in body.sources]
    for n in body.nodes:
        if n.name == node.name:
            break
        before.append(n.name)
    for name in (*node.uses(), *reversed(before)):
        meta = metas.get(name)
        if meta is not None and meta.is_tensor and node.meta.is_tensor and (meta.shape, meta.dtype) == (node.meta.shape, node.meta.dtype):
            return name
    return None


def _without_dead(body: Graph) -> Graph:
    needed = set(refs(body.output))
    alive: list[Node] = []
    for n in reversed(body.nodes):
        if n.name in needed or not n.meta.is_tensor:
            alive.append(n)
            needed.update(n.uses())
    return replace(body, nodes=tuple(reversed(alive)))
