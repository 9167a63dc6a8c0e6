"""Between `Graph` and the JSON that `bot.inside.capture.fx_reader` writes.

What JSON has no form for is a one-key object: `{"$ref": name}`, `{"$code": text}`, `{"$slice": [a, b, c]}`,
`{"$tuple": [...]}`, `{"$map": [[key, value], ...]}`. A plain list is a list, a complex number and a special float are code.
"""

from __future__ import annotations

import math
from typing import Any

from bot.reduce.graph.form import Arg, Code, Graph, Input, Mapping, Meta, Node, Ref, Slice, Value
from bot.reduce.graph.printer.expressions import number


def graph_from_json(data: dict[str, Any]) -> Graph:
    """The graph that `data` describes.

    Raises:
        ValueError: `data` is not of this form.
    """
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


def graph_to_json(graph: Graph) -> dict[str, Any]:
    """The JSON form of `graph`, without what is at its default."""
    data: dict[str, Any] = {
        "inputs": [_input_json(item) for item in graph.inputs],
        "nodes": [_node_json(item) for item in graph.nodes],
        "output": _arg_json(graph.output),
    }
    if graph.constants:
        data["constants"] = [_input_json(item) for item in graph.constants]
    if graph.bodies:
        data["bodies"] = [[name, graph_to_json(body)] for name, body in graph.bodies]
    return data


def meta_from_json(data: dict[str, Any]) -> Meta:
    """What is known of a value, from `data` as `meta_to_json` gives it."""
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


def meta_to_json(meta: Meta) -> dict[str, Any]:
    """The JSON form of `meta`."""
    data: dict[str, Any] = {"kind": meta.kind}
    for key in ("shape", "stride", "dynamic", "symbols"):
        if getattr(meta, key):
            data[key] = list(getattr(meta, key))
    if meta.dtype:
        data["dtype"] = meta.dtype
    if meta.device != "cpu":
        data["device"] = meta.device
    if meta.items:
        data["items"] = [meta_to_json(item) for item in meta.items]
    return data


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


def _input_json(item: Input) -> dict[str, Any]:
    data: dict[str, Any] = {"name": item.name, "meta": meta_to_json(item.meta), "value": {"kind": item.value.kind}}
    if item.value.args:
        data["value"]["args"] = [_arg_json(arg) for arg in item.value.args]
    if item.requires_grad:
        data["requires_grad"] = True
    if not item.leaf:
        data["leaf"] = False
    if item.parameter:
        data["parameter"] = True
    if item.keyword is not None:
        data["keyword"] = item.keyword
    return data


def _node(data: dict[str, Any]) -> Node:
    return Node(
        name=data["name"],
        op=data["op"],
        target=data["target"],
        args=tuple(_arg(item) for item in data.get("args", ())),
        kwargs=tuple((str(key), _arg(item)) for key, item in data.get("kwargs", ())),
        meta=meta_from_json(data.get("meta", {})),
    )


def _node_json(node: Node) -> dict[str, Any]:
    data: dict[str, Any] = {"name": node.name, "op": node.op, "target": node.target}
    data["args"] = [_arg_json(item) for item in node.args]
    if node.kwargs:
        data["kwargs"] = [[key, _arg_json(item)] for key, item in node.kwargs]
    data["meta"] = meta_to_json(node.meta)
    return data


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


def _arg_json(arg: Arg) -> Any:
    if isinstance(arg, Ref):
        return {"$ref": arg.name}
    if isinstance(arg, Code):
        return {"$code": arg.text}
    if isinstance(arg, Slice):
        return {"$slice": [_arg_json(arg.start), _arg_json(arg.stop), _arg_json(arg.step)]}
    if isinstance(arg, Mapping):
        return {"$map": [[key, _arg_json(item)] for key, item in arg.items]}
    if isinstance(arg, tuple):
        return {"$tuple": [_arg_json(item) for item in arg]}
    if isinstance(arg, list):
        return [_arg_json(item) for item in arg]
    if isinstance(arg, complex) or (isinstance(arg, float) and not math.isfinite(arg)):
        return {"$code": number(arg)}
    return arg
