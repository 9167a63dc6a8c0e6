"""Asks whether the body of a higher-order operation fails on its own.

Proposes, for each body, the smallest first, that it is the whole program: its operands become inputs, what it gives is returned. Cost:
one query for each body that is reached, eight at most in a round. Where there are two or fewer they are asked before all else: what is
compiled around a loop is dear. The idea is the cut's, across the border of a call: what a compiler cannot do with an operation of a
loop it mostly cannot do outside the loop either.
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
    """As `run`, where `incumbent` has few bodies."""
    return len(_bodies(incumbent.program.graph)) <= _FEW and run(incumbent)


def run(incumbent: Incumbent) -> bool:
    """Promotes bodies of `incumbent` until none fails on its own; says whether any did."""
    start = incumbent.key
    # Numbers that are wrong inside a body are the bug only where they reach what was compared, and nothing says whether they do.
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
