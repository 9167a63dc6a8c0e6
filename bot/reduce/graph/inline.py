"""Inlines the bodies that higher-order operations call, where that computes the same.

`cond` becomes the branch that the program takes; a marked region or a checkpoint becomes its contents. Wrong numbers in a body can only be
located once the body is part of the graph: it has no inputs of its own that could be cut, and no outputs that are compared.

Operations that order streams are dropped. They identify streams and events by their index in a table of the process that made them, so no
other process can run them; on one stream everything runs in program order anyway.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from bot.reduce.graph.form import Arg, Graph, Meta, Node, Program, Ref, refs
from bot.reduce.graph.incumbent import refreshed, under_canonical_names
from bot.reduce.graph.keep import is_getitem
from bot.reduce.graph.rewrite import drop_unused, map_nodes, rename, rename_in

_HIGHER = "torch.ops.higher_order."
# Number of arguments, including the body, before those that are passed to the body.
_GIVEN_BEHIND = {"invoke_subgraph": 2, "tag_activation_checkpoint": 1, "wrap": 1, "control_deps": 2}
# Bodies may call other bodies.
_MOST_CALLS = 20
# Operations that wait for a stream or an event, and those that register one in the table or look it up.
_ORDERS = ("torch.ops.streams.", "torch._dynamo.variables.streams.", "torch._dynamo.graph_bytecode_inputs.")
_AFTER = f"{_HIGHER}control_deps"


def flattened(program: Program, render: Callable[[Program], str], shapes: Callable[[str], dict[str, Meta] | None]) -> Program | None:
    """The `program` with the calls inlined that can be; None if there are none. `render` prints a program as a script; `shapes` runs a
    script in eager and describes its values, see `GraphOracle`."""
    changed = program
    refused: set[str] = set()
    for _ in range(_MOST_CALLS):
        node = next((n for n in changed.graph.nodes if n.name not in refused and n.target.startswith(_HIGHER)), None)
        if node is None:
            break
        called = _called(changed, node, render, shapes)
        graph = _inlined(changed.graph, node, *called) if called is not None else None
        refused.add(node.name)
        changed = changed if graph is None else changed.with_graph(graph)
    return changed if changed is not program else None


def on_one_stream(graph: Graph) -> Graph:
    """The `graph` without the operations that order streams, and without the calls that insert one of them between others
    (`control_deps`)."""
    if not any(node.target.startswith(_ORDERS) for node in graph.all_nodes()):
        return graph
    # the first argument of such a call only says what it must run after
    changed = map_nodes(graph, lambda node: replace(node, args=((), *node.args[1:])) if node.target == _AFTER else node)
    for node in [n for n in changed.nodes if n.target == _AFTER]:
        here = next(n for n in changed.nodes if n.name == node.name)
        body = dict(changed.bodies).get(node.args[1].name) if isinstance(node.args[1], Ref) else None
        if body is None or len(body.inputs) != len(here.args) - 2 or not any(n.target.startswith(_ORDERS) for n in body.nodes):
            continue
        changed = _inlined(changed, here, body, here.args[2:]) or changed
    while True:
        used = {name for node in changed.nodes for name in node.uses()} | set(refs(changed.output))
        rest = tuple(n for n in changed.nodes if n.name in used or not n.target.startswith(_ORDERS))
        if len(rest) == len(changed.nodes):
            return drop_unused(changed)
        changed = replace(changed, nodes=rest)


def _called(
    program: Program, node: Node, render: Callable[[Program], str], shapes: Callable[[str], dict[str, Meta] | None]
) -> tuple[Graph, tuple[Arg, ...]] | None:
    """The body that `node` calls, and the arguments that it passes."""
    name, args, bodies = node.target.removeprefix(_HIGHER), node.args, dict(program.graph.bodies)
    if name == "cond" and len(args) == 4 and isinstance(args[3], (list, tuple)):
        taken = _is_taken(program, node, render, shapes)
        body, given = (None if taken is None else args[1] if taken else args[2]), tuple(args[3])
    elif name in _GIVEN_BEHIND and len(args) >= _GIVEN_BEHIND[name] and (name == "tag_activation_checkpoint" or not node.kwargs):
        body, given = args[0], tuple(args[_GIVEN_BEHIND[name] :])
    else:
        return None
    found = bodies.get(body.name) if isinstance(body, Ref) else None
    return (found, given) if found is not None and len(found.inputs) == len(given) else None


def _is_taken(
    program: Program, node: Node, render: Callable[[Program], str], shapes: Callable[[str], dict[str, Meta] | None]
) -> bool | None:
    """Whether `cond` takes its first branch; None if that cannot be determined."""
    condition, graph = node.args[0], program.graph
    if isinstance(condition, bool):
        return condition
    if not isinstance(condition, Ref) or (meta := graph.metas().get(condition.name)) is None or not meta.is_tensor:
        return None
    # `nonzero` turns the truth of a number into a shape: one row of no dimensions if it is true, none otherwise
    asked = Node(f"{node.name}_taken", "function", "torch.nonzero", (Ref(condition.name),), (), Meta("tensor", (0, 0), (1, 1), "int64"))
    before = graph.nodes[: graph.nodes.index(node)]
    probe = program.with_graph(drop_unused(replace(graph, nodes=(*before, asked), output=Ref(asked.name))))
    shown = under_canonical_names(probe)
    metas = shapes(render(shown))
    rows = refreshed(probe, shown, metas).graph.nodes[-1].meta.shape[:1] if metas is not None else ()
    return bool(rows[0]) if rows else None


def _inlined(graph: Graph, node: Node, body: Graph, given: tuple[Arg, ...]) -> Graph | None:
    """The graph with the operations of `body`, called with `given`, in place of the call."""
    results = list(body.output) if isinstance(body.output, (list, tuple)) else [body.output]
    of_call = {n.name: n.args[1] for n in graph.nodes if is_getitem(n) and n.args[0] == Ref(node.name)}
    items = {item: results[at] for item, at in of_call.items() if isinstance(at, int) and 0 <= at < len(results)}
    users = {n.name for n in graph.nodes if node.name in n.uses()}
    if users != set(items) or node.name in refs(graph.output):
        return None
    names = _new_names(graph, node, body)
    # the results of the call keep their names, by which outputs and wrong values are identified
    made = {n.name for n in body.nodes}
    for item, result in items.items():
        if isinstance(result, Ref) and result.name in made and names[result.name] not in items:
            names[result.name] = item
    inside: dict[str, Arg] = {old: Ref(new) for old, new in names.items()}
    inside.update({i.name: value for i, value in zip(body.inputs, given, strict=True)})
    outside = {item: rename(result, inside) for item, result in items.items()}
    own = [replace(rename_in(n, inside), name=names[n.name]) for n in body.nodes]
    here = graph.nodes.index(node)
    rest = [rename_in(n, outside) for n in graph.nodes[here + 1 :] if n.name not in items]
    return drop_unused(
        replace(
            graph,
            nodes=(*graph.nodes[:here], *own, *rest),
            output=rename(graph.output, outside),
            constants=(*graph.constants, *(replace(c, name=names[c.name]) for c in body.constants)),
            bodies=(*graph.bodies, *((names[name], inner) for name, inner in body.bodies)),
        )
    )


def _new_names(graph: Graph, node: Node, body: Graph) -> dict[str, str]:
    """Names for everything in a body that collide with nothing in the graph."""
    taken = {*graph.metas(), *(name for name, _ in graph.bodies)}
    names: dict[str, str] = {}
    for old in (*(n.name for n in body.nodes), *(c.name for c in body.constants), *(name for name, _ in body.bodies)):
        new = f"{node.name}_{old}"
        while new in taken:
            new += "_"
        taken.add(new)
        names[old] = new
    return names
