"""Integers that a graph computes while it runs (sizes, and arithmetic on them), as far as they are known."""

from __future__ import annotations

import operator
from collections.abc import Callable

from bot.reduce.graph.form import Arg, Graph, Node, Ref

_ARITHMETIC: dict[str, Callable[[int, int], int]] = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "floordiv": operator.floordiv,
    "mod": operator.mod,
}


def known_numbers(graph: Graph) -> dict[str, int]:
    """The values in `graph` that are known integers, by name, as in the failing run."""
    known: dict[str, int] = {}
    for item in graph.inputs:
        if item.meta.kind == "int" and item.value.args and str(item.value.args[0]).lstrip("-").isdigit():
            known[item.name] = int(str(item.value.args[0]))
    if not any(n.meta.kind == "int" for n in graph.nodes):
        return known
    metas = graph.metas()
    for node in graph.nodes:
        if node.meta.kind == "int":
            number = _evaluate(node, known, {name: metas[name].shape for name in node.uses() if name in metas})
            if number is not None:
                known[node.name] = number
    return known


def _evaluate(node: Node, known: dict[str, int], shapes: dict[str, tuple[int, ...]]) -> int | None:
    words = node.target.split(".")
    if ("sym_size" in words or node.target == "size") and len(node.args) == 2:
        source, dim = node.args
        shape = shapes.get(source.name, ()) if isinstance(source, Ref) else ()
        return shape[dim] if isinstance(dim, int) and -len(shape) <= dim < len(shape) else None
    if words[0] in ("operator", "_operator", "math") and len(node.args) == 2 and words[-1] in _ARITHMETIC:
        left, right = (_number(arg, known) for arg in node.args)
        if left is None or right is None or (right == 0 and words[-1] in ("floordiv", "mod")):
            return None
        return _ARITHMETIC[words[-1]](left, right)
    return None


def _number(arg: Arg, known: dict[str, int]) -> int | None:
    if isinstance(arg, Ref):
        return known.get(arg.name)
    return arg if isinstance(arg, int) else None
