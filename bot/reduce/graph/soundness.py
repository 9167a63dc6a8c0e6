"""Checks that a graph from a process of the program is one that every pass and the printer can take, since the program may have written
it."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator

from bot.reduce.graph.form import Arg, Code, Graph, Input, Mapping, Meta, Node, Ref, Slice

_KINDS = ("tensor", "int", "float", "bool", "other")
# Possible numbers of arguments for each kind of value.
_ARGUMENTS = {
    **dict.fromkeys(("randn", "rand", "zeros", "ones", "arange"), (0,)),
    "randint": (0, 2),
    "full": (1,),
    "literal": (1,),
    "expr": (1,),
    "blob": (1, 2),
}
_DTYPE, _DEVICE, _TARGET = re.compile(r"\w*"), re.compile(r"\w+(:\d+)?"), re.compile(r"[^\W\d]\w*(\.\w+)*")
_LARGEST = 2**63 - 1  # the largest number that torch counts to
_DEEPEST = 50  # nested lists in an argument, nested results, or nested bodies


def fault(graph: Graph, depth: int = 0) -> str | None:
    """What is wrong with `graph`, which is nested `depth` levels deep; None if nothing is."""
    return next(_faults(graph, depth), None)


def fault_of_meta(meta: Meta, depth: int = 0) -> str | None:
    """What is wrong with `meta`, which is nested `depth` levels deep among the items of others; None if nothing is."""
    if meta.kind not in _KINDS or not _is_text(meta.dtype, _DTYPE) or not _is_text(meta.device, _DEVICE):
        return "a value of no known kind, dtype or device"
    if not all(map(_is_size, (*meta.shape, *meta.stride, *meta.dynamic))) or not all(s is None or isinstance(s, str) for s in meta.symbols):
        return "a size that is no number"
    if meta.is_tensor:
        if len(meta.shape) != len(meta.stride) or not meta.dtype or math.prod(meta.shape) > _LARGEST:
            return "a tensor of no possible shape"
        if any(place >= len(meta.shape) for place in meta.dynamic) or len(meta.symbols) not in (0, len(meta.shape)):
            return "a dimension that a tensor has not"
    if depth > _DEEPEST:
        return "results too deep in each other"
    return next((why for item in meta.items if (why := fault_of_meta(item, depth + 1))), None)


def _faults(graph: Graph, depth: int) -> Iterator[str]:
    if depth > _DEEPEST:
        yield "bodies too deep in each other"
        return
    known: set[str] = set()
    for name, body in graph.bodies:
        yield from _named(name, known)
        if why := fault(body, depth + 1):
            yield why
    for item in graph.sources:
        yield from _named(item.name, known)
        yield from _faults_of_input(item)
    for node in graph.nodes:
        yield from _faults_of_node(node, known)
        yield from _named(node.name, known)
    yield from _faults_of_argument(graph.output, known - {name for name, _ in graph.bodies})


def _named(name: object, known: set[str]) -> Iterator[str]:
    if not isinstance(name, str) or name in known:
        yield "no name, or the same twice"
    else:
        known.add(name)


def _faults_of_input(item: Input) -> Iterator[str]:
    yield from filter(None, [fault_of_meta(item.meta)])
    kind: object = item.value.kind
    given = item.value.args
    if not isinstance(kind, str) or len(given) not in _ARGUMENTS.get(kind, ()):
        yield "no known kind of value"
    elif not all(isinstance(one, str) for one in given if kind in ("literal", "expr", "blob")):
        yield f"a value of kind {kind} that is no text"
    elif not all(isinstance(one, (str, int, float, Code)) for one in given):
        yield f"a value of kind {kind} that is no number"
    flags: tuple[object, ...] = (item.requires_grad, item.leaf, item.parameter)
    if not all(isinstance(flag, bool) for flag in flags):
        yield "a flag that is none"
    keyword: object = item.keyword
    if keyword is not None and not isinstance(keyword, str):
        yield "a keyword that is no text"


def _faults_of_node(node: Node, known: set[str]) -> Iterator[str]:
    yield from filter(None, [fault_of_meta(node.meta)])
    if node.op not in ("function", "method") or not _is_text(node.target, _TARGET):
        yield "an operation that nobody knows"
    elif node.op == "method" and not node.args:
        yield "a method of nothing"
    for argument in (*node.args, *(value for _, value in node.kwargs)):
        yield from _faults_of_argument(argument, known)


def _faults_of_argument(argument: Arg, known: set[str], depth: int = 0) -> Iterator[str]:
    if depth > _DEEPEST:
        yield "an argument too deep in others"
    elif isinstance(argument, Ref):
        name: object = argument.name
        if not isinstance(name, str) or name not in known:
            yield "a value that is not there"
    elif isinstance(argument, Code):
        text: object = argument.text
        if not isinstance(text, str):
            yield "code that is no text"
    elif isinstance(argument, (list, tuple)):
        for one in argument:
            yield from _faults_of_argument(one, known, depth + 1)
    elif isinstance(argument, Slice):
        yield from _faults_of_argument((argument.start, argument.stop, argument.step), known, depth + 1)
    elif isinstance(argument, Mapping):
        yield from _faults_of_argument(tuple(one for _, one in argument.items), known, depth + 1)


def _is_text(value: object, form: re.Pattern[str]) -> bool:
    return isinstance(value, str) and form.fullmatch(value) is not None


def _is_size(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= _LARGEST
