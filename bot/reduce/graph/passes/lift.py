"""Turns `torch.ops.aten` calls into what people write: `torch.relu(x)`, `x + y`, `x.view(2, 2)`.

Proposes all operations lifted; if that is not SAME, each half, and so on. This is the last step of a search: the size order does not
apply, since the readable form is better even if it is longer. `lift_table` lists the operators that are written differently; any other
`aten` operator whose name is also a function of torch is called through it with the same arguments. Cost: one query if all can be lifted,
about 2 log2 n for each that cannot. The idea: people who triage issues call `torch.relu`, and grep for it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from bot.reduce.graph.edits import by_halves
from bot.reduce.graph.form import Arg, Graph, Node, Program, Ref, refs
from bot.reduce.graph.incumbent import Incumbent
from bot.reduce.graph.keep import is_getitem
from bot.reduce.graph.passes.lift_table import lifted, lifted_first
from bot.reduce.graph.rewrite import substitute


def run(incumbent: Incumbent) -> bool:
    """Lifts as many operations of `incumbent` as possible; returns whether any was lifted."""
    program = incumbent.program
    names = [n.name for n in program.graph.nodes if lift(program, [n.name], bodies=False) != program]
    if incumbent.offer(_lifted(incumbent, names, bodies=True), "lift", any_size=True):
        return True
    return by_halves(names, lambda parts: incumbent.offer_first((_lifted(incumbent, part) for part in parts), "lift", any_size=True))


def _lifted(incumbent: Incumbent, names: Sequence[str], *, bodies: bool = False) -> Program | None:
    """The program with these operations in their readable form, if that is legal and no larger."""
    changed = lift(incumbent.program, names, bodies=bodies)
    legal = None if changed == incumbent.program else incumbent.legal(changed)
    return legal if legal is not None and legal.graph.ops <= incumbent.program.graph.ops else None


def lift(program: Program, names: Sequence[str] | None = None, *, bodies: bool = True) -> Program:
    """The `program` with the operations called `names` (None: all) in their readable form; with `bodies`, also all those in bodies."""
    graph = program.graph
    if bodies:
        graph = replace(graph, bodies=tuple((name, _all_lifted(body)) for name, body in graph.bodies))
    return program.with_graph(_lifted_nodes(graph, None if names is None else set(names)))


def _all_lifted(graph: Graph) -> Graph:
    bodies = tuple((name, _all_lifted(body)) for name, body in graph.bodies)
    return replace(_lifted_nodes(graph, None), bodies=bodies)


def _lifted_nodes(graph: Graph, chosen: set[str] | None) -> Graph:
    nodes: list[Node] = []
    gone: dict[str, Arg] = {}
    first_alone = _used_by_first_alone(graph)
    for n in graph.nodes:
        if n.name in gone:
            continue
        form = None
        if chosen is None or n.name in chosen:
            items = first_alone.get(n.name)
            form = lifted_first(n) if items else None
            if form is not None:
                gone.update((item, Ref(n.name)) for item in items or ())
            else:
                form = lifted(n)
        nodes.append(form or n)
    changed = replace(graph, nodes=tuple(nodes))
    return changed if not gone else replace(substitute(changed, gone), inputs=graph.inputs, constants=graph.constants, bodies=graph.bodies)


def _used_by_first_alone(graph: Graph) -> dict[str, list[str]]:
    """Values of which only the first item is used, each with the names of the nodes that take it."""
    users: dict[str, list[Node]] = {}
    for n in graph.nodes:
        for name in set(n.uses()):
            users.setdefault(name, []).append(n)
    returned = set(refs(graph.output))
    return {
        name: [n.name for n in using]
        for name, using in users.items()
        if name not in returned and all(is_getitem(n) and n.args == (Ref(name), 0) for n in using)
    }
