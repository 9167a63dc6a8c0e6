"""Which graphs draw random numbers, judging by their operations."""

from __future__ import annotations

import inspect
from typing import Any

import torch

# Parts of the names of operations that draw.
_RANDOM = ("dropout", "scaled_dot_product", "rand", "bernoulli", "normal_", "uniform_", "multinomial", "exponential_")


def draws(graph: Any) -> bool:
    """Whether a `torch.fx` `graph` draws random numbers, as far as its operations' names and tags tell.

    What it calls (the body of a checkpoint, the branches of a `cond`) is in other graphs, which belong to the same module.
    """
    module = graph.owning_module
    inner = [part.graph for part in module.modules() if isinstance(part, torch.fx.GraphModule)] if module is not None else []
    return any(_draws(node) for one in (graph, *inner) for node in one.nodes)


def _draws(node: Any) -> bool:
    if node.op not in ("call_function", "call_method"):
        return False
    name = node.target if isinstance(node.target, str) else getattr(node.target, "__name__", "")
    if torch.Tag.nondeterministic_seeded in getattr(node.target, "tags", ()) or any(word in name for word in _RANDOM):
        return not _turned_off(node)
    return False


def _turned_off(node: Any) -> bool:
    """Whether a dropout, or attention, has arguments with which it draws nothing, as is common in models in eval mode."""
    try:
        if hasattr(node.target, "_schema"):
            given: dict[str, Any] = {one.name: one.default_value for one in node.target._schema.arguments}
            given |= {**dict(zip(given, node.args, strict=False)), **node.kwargs}
        elif node.target is torch.nn.functional.scaled_dot_product_attention:
            given = {"dropout_p": node.args[4] if len(node.args) > 4 else 0.0, **node.kwargs}
        else:
            bound = inspect.signature(node.target).bind(*node.args, **node.kwargs)
            bound.apply_defaults()
            given = dict(bound.arguments)
    except (TypeError, ValueError):  # a method, or written in C
        return False
    if "dropout_p" in given:
        return bool(given["dropout_p"] == 0)
    if given.get("p") == 0 and "native" not in str(node.target):  # the native form draws a mask whatever `p` is
        return True
    return given.get("training", given.get("train")) is False
