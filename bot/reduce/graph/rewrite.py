"""Small changes to a graph that several passes share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from bot.reduce.graph.form import Arg, Graph, Input, Mapping, Node, Program, Ref, Slice, refs


def map_leaves(arg: Arg, change: Callable[[Arg], Arg]) -> Arg:
    """`arg` with `change` applied to each literal and `Ref`."""
    if isinstance(arg, list):
        return [map_leaves(item, change) for item in arg]
    if isinstance(arg, tuple):
        return tuple(map_leaves(item, change) for item in arg)
    if isinstance(arg, Slice):
        return Slice(map_leaves(arg.start, change), map_leaves(arg.stop, change), map_leaves(arg.step, change))
    if isinstance(arg, Mapping):
        return Mapping(tuple((key, map_leaves(item, change)) for key, item in arg.items))
    return change(arg)


def map_node(node: Node, change: Callable[[Arg], Arg]) -> Node:
    """The `node` with `change` applied to each literal and `Ref` in its arguments."""
    args = tuple(map_leaves(arg, change) for arg in node.args)
    return replace(node, args=args, kwargs=tuple((key, map_leaves(value, change)) for key, value in node.kwargs))


def map_nodes(graph: Graph, change: Callable[[Node], Node]) -> Graph:
    """The `graph` with `change` applied to each node, including those in bodies."""
    bodies = tuple((name, map_nodes(body, change)) for name, body in graph.bodies)
    return replace(graph, nodes=tuple(change(n) for n in graph.nodes), bodies=bodies)


def map_inputs(graph: Graph, change: Callable[[Input], Input]) -> Graph:
    """The `graph` with `change` applied to each input and constant."""
    return replace(graph, inputs=tuple(change(i) for i in graph.inputs), constants=tuple(change(c) for c in graph.constants))


def rename(arg: Arg, names: dict[str, Arg]) -> Arg:
    """`arg` with each `Ref` that is in `names` replaced by its value there."""
    return map_leaves(arg, lambda leaf: names.get(leaf.name, leaf) if isinstance(leaf, Ref) else leaf)


def rename_in(node: Node, names: dict[str, Arg]) -> Node:
    """The `node` with each `Ref` in its arguments that is in `names` replaced by its value there."""
    return map_node(node, lambda leaf: names.get(leaf.name, leaf) if isinstance(leaf, Ref) else leaf)


def with_input(program: Program, item: Input) -> Program:
    """The `program` with the input or constant that has the name of `item` replaced by it."""
    return program.with_graph(map_inputs(program.graph, lambda old: item if old.name == item.name else old))


def find_input(program: Program, name: str) -> Input | None:
    """The input or constant of `program` called `name`."""
    return next((i for i in program.graph.sources if i.name == name), None)


def with_node(program: Program, node: Node) -> Program:
    """The `program` with the node that has the name of `node` replaced by it."""
    return program.with_graph(replace(program.graph, nodes=tuple(node if n.name == node.name else n for n in program.graph.nodes)))


def find_node(program: Program, name: str) -> Node | None:
    """The node of `program` called `name`."""
    return next((n for n in program.graph.nodes if n.name == name), None)


def substitute(graph: Graph, names: dict[str, Arg]) -> Graph:
    """The `graph` with each use of a name in `names` replaced by its value there; inputs that are then unused are dropped."""
    nodes = tuple(rename_in(n, names) for n in graph.nodes)
    return drop_unused(replace(graph, nodes=nodes, output=rename(graph.output, names)))


def drop_unused(graph: Graph) -> Graph:
    """The `graph` without unused inputs, constants and bodies."""
    used = {name for n in graph.nodes for name in n.uses()} | set(refs(graph.output))
    return replace(
        graph,
        inputs=tuple(i for i in graph.inputs if i.name in used),
        constants=tuple(c for c in graph.constants if c.name in used),
        bodies=tuple((name, body) for name, body in graph.bodies if name in used),
    )
