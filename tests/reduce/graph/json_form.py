"""The JSON form of a graph, as `bot.inside.capture.fx_reader` writes it."""

from __future__ import annotations

import math
from typing import Any

from bot.reduce.graph.form import Arg, Code, Graph, Input, Mapping, Meta, Node, Ref, Slice
from bot.reduce.graph.printer.expressions import number


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


def _node_json(node: Node) -> dict[str, Any]:
    data: dict[str, Any] = {"name": node.name, "op": node.op, "target": node.target}
    data["args"] = [_arg_json(item) for item in node.args]
    if node.kwargs:
        data["kwargs"] = [[key, _arg_json(item)] for key, item in node.kwargs]
    if node.writes:
        data["writes"] = list(node.writes)
    data["meta"] = meta_to_json(node.meta)
    return data


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
