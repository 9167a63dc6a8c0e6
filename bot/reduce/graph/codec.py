"""Reads a `Graph` from the JSON that `bot.inside.capture.fx_reader` writes.

Values that JSON cannot express are one-key objects: `{"$ref": name}`, `{"$code": text}`, `{"$slice": [a, b, c]}`, `{"$tuple": [...]}`,
`{"$map": [[key, value], ...]}`. A plain list is a list; complex numbers and special floats are code.
"""

from __future__ import annotations

from collections import abc
from typing import Any

from bot.reduce.graph.form import Arg, Code, Graph, Input, Mapping, Meta, Node, Ref, Slice, Value


def graph_from_json(data: dict[str, Any]) -> Graph:
    """The graph that `data` describes. Raises ValueError if `data` is malformed."""
    try:
        return Graph(
            inputs=tuple(_input(item) for item in data["inputs"]),
            nodes=tuple(_node(item) for item in data["nodes"]),
            output=_arg(data["output"]),
            constants=tuple(_input(item) for item in data.get("constants", ())),
            bodies=tuple((str(name), graph_from_json(body)) for name, body in data.get("bodies", ())),
        )
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"not a graph: {type(error).__name__}: {error}") from error


def meta_from_json(data: abc.Mapping[str, Any]) -> Meta:
    """The metadata of a value that `data` describes; missing entries get their defaults."""
    return Meta(
        kind=data.get("kind", "other"),
        shape=tuple(data.get("shape", ())),
        stride=tuple(data.get("stride", ())),
        dtype=data.get("dtype", ""),
        device=data.get("device", "cpu"),
        dynamic=tuple(data.get("dynamic", ())),
        items=tuple(meta_from_json(item) for item in data.get("items", ())),
        symbols=tuple(data.get("symbols", ())),
    )


def _input(data: dict[str, Any]) -> Input:
    value = data.get("value", {})
    return Input(
        name=data["name"],
        meta=meta_from_json(data["meta"]),
        value=Value(value.get("kind", "randn"), tuple(_arg(item) for item in value.get("args", ()))),
        requires_grad=data.get("requires_grad", False),
        leaf=data.get("leaf", True),
        parameter=data.get("parameter", False),
        keyword=data.get("keyword"),
    )


def _node(data: dict[str, Any]) -> Node:
    return Node(
        name=data["name"],
        op=data["op"],
        target=data["target"],
        args=tuple(_arg(item) for item in data.get("args", ())),
        kwargs=tuple((str(key), _arg(item)) for key, item in data.get("kwargs", ())),
        meta=meta_from_json(data.get("meta", {})),
        writes=tuple(place if isinstance(place, int) and place >= 0 else str(place) for place in data.get("writes", ())),
    )


def _arg(data: Any) -> Arg:
    if data is None or isinstance(data, (bool, int, float, str)):
        return data
    if isinstance(data, list):
        return [_arg(item) for item in data]
    if not isinstance(data, dict) or len(data) != 1:
        raise ValueError(f"not an argument: {data!r}")
    ((key, inner),) = data.items()
    if key == "$ref":
        return Ref(inner)
    if key == "$code":
        return Code(inner)
    if key == "$tuple":
        return tuple(_arg(item) for item in inner)
    if key == "$slice":
        start, stop, step = (_arg(item) for item in inner)
        return Slice(start, stop, step)
    if key == "$map":
        return Mapping(tuple((str(name), _arg(item)) for name, item in inner))
    raise ValueError(f"not an argument: {key}")
