"""Drops outputs.

Proposes, in order: only the outputs that nothing else uses (a training graph returns hundreds of intermediates for its backward); then
dropping outputs, all that can go together, by halves. An operation that only a dropped output needed goes with it. Cost: one query before
the search for operations, and after it about one for each output that must stay, unless the operations that would be left were rejected
before. The idea is from the first step of PyTorch's minifier, and from polygraphy.
"""

from __future__ import annotations

from dataclasses import replace

from bot.reduce.graph.edits import GraphEdit, apply
from bot.reduce.graph.form import Program, Ref, refs
from bot.reduce.graph.incumbent import Incumbent
from bot.reduce.graph.keep import keep_only, units


def sinks(incumbent: Incumbent) -> bool:
    """Offers `incumbent` the program that returns only values without other uses; returns whether it was taken."""
    graph = incumbent.program.graph
    used = {name for n in graph.nodes for name in n.uses()} | {i.name for i in graph.sources}
    if used.isdisjoint(refs(graph.output)):
        return False
    return incumbent.offer(keep_only(incumbent.program, units(graph), exposable=incumbent.exposable, sinks_only=True), "outputs")


def run(incumbent: Incumbent) -> bool:
    """Drops as many outputs of `incumbent` as possible; returns whether any went."""
    names = list(dict.fromkeys(refs(incumbent.program.graph.output)))
    if len(names) < 2:
        return False
    # The first output comes last, since a program has to return something.
    return apply(incumbent, [_drop(name) for name in reversed(names)], "outputs", structures=True)


def _drop(name: str) -> GraphEdit:
    def edit(program: Program) -> Program | None:
        rest = [other for other in dict.fromkeys(refs(program.graph.output)) if other != name]
        if not rest or name not in set(refs(program.graph.output)):
            return None
        output = Ref(rest[0]) if len(rest) == 1 else tuple(Ref(other) for other in rest)
        return without_dead(program.with_graph(replace(program.graph, output=output)))

    return edit


def without_dead(program: Program) -> Program:
    """The `program` without operations that its outputs do not need (those with side effects stay)."""
    return keep_only(program, units(program.graph), exposable=frozenset()) or program
