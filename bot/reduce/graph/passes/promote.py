"""Asks whether the body of a higher-order operation fails on its own.

Proposes each body, the smallest first, as the whole program: its operands become inputs, its results are returned. Cost: one query for
each body that is reached, at most eight in a round. If there are two or fewer, they are asked before anything else: compiling what is
around a loop is expensive. The idea is to cut across the boundary of a call: an operation that a compiler cannot handle in a loop usually
fails outside the loop too.
"""

from __future__ import annotations

from dataclasses import replace

from bot.reduce.graph.form import Graph, Input, Node, Program, Ref, refs
from bot.reduce.graph.incumbent import Incumbent
from bot.reduce.graph.keep import fresh_value, is_floating
from bot.reduce.graph.naming import bind_symbols
from bot.reduce.graph.rewrite import drop_unused

_MOST = 8
_FEW = 2


def few(incumbent: Incumbent) -> bool:
    """Like `run`, but only if `incumbent` has few bodies."""
    return len(_bodies(incumbent.program.graph)) <= _FEW and run(incumbent)


def run(incumbent: Incumbent) -> bool:
    """Promotes bodies of `incumbent` until none fails on its own; returns whether any did."""
    start = incumbent.key
    # Wrong numbers inside a body are the bug only if they reach what was compared, and nothing shows whether they do.
    while incumbent.program.graph.bodies and not incumbent.program.recipe.accuracy:
        alone = (_alone(incumbent.program, body) for body in sorted(_bodies(incumbent.program.graph), key=lambda body: body.ops))
        distinct = {incumbent.candidate_of(program, "bodies").text: program for program in alone if program is not None}
        legal = [incumbent.legal(program) for program in list(distinct.values())[:_MOST]]
        if incumbent.offer_first(legal, "bodies") is None:
            break
    return incumbent.key != start


def _bodies(graph: Graph) -> list[Graph]:
    return [found for _, body in graph.bodies for found in (body, *_bodies(body))]


def _alone(program: Program, body: Graph) -> Program | None:
    body = bind_symbols(body)
    metas = body.metas()
    results = [name for name in dict.fromkeys(refs(body.output)) if name in metas and metas[name].is_tensor]
    needed = drop_unused(body)
    if not results or not all(item.meta.is_tensor for item in needed.inputs):
        return None
    users = {item.name: [n for n in body.nodes if item.name in n.uses()] for item in needed.inputs}
    inputs = tuple(_input(program, item, users[item.name]) for item in needed.inputs)
    output = Ref(results[0]) if len(results) == 1 else tuple(Ref(name) for name in results)
    return program.with_graph(drop_unused(replace(needed, inputs=inputs, output=output)))


def _input(program: Program, item: Input, users: list[Node]) -> Input:
    differentiable = program.recipe.needs_gradients and is_floating(item.meta.dtype)
    return replace(item, value=fresh_value(item.meta, "", users), requires_grad=differentiable)
