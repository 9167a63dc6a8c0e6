"""Graphs with checkpoints, in a form that eager can run.

Dynamo records a checkpoint as an operation made for AOTAutograd: called in eager, it runs its body again in the backward without the
random numbers of the forward, so that dropout has a different mask there. A checkpoint changes no numbers, so its body is called once
instead.
"""

from __future__ import annotations

import copy
from typing import Any

import torch

_CHECKPOINTS = frozenset({"tag_activation_checkpoint", "wrap_activation_checkpoint"})


def plainly(gm: Any) -> Any:
    """The graph module `gm`; if it has checkpoints, a copy that calls their bodies directly, with shared parameters and buffers."""
    if not isinstance(gm, torch.fx.GraphModule) or not any(_is_checkpoint(node) for part in _graphs(gm) for node in part.graph.nodes):
        return gm
    plain = torch.fx.GraphModule(gm, copy.deepcopy(gm.graph))
    for name, part in gm.named_children():
        if isinstance(part, torch.fx.GraphModule):
            setattr(plain, name, plainly(part))
    for node in plain.graph.nodes:
        if _is_checkpoint(node):
            checkpoint = node.target
            node.target = _called
            node.kwargs = checkpoint.divide_kwargs(node.kwargs)[1] if hasattr(checkpoint, "divide_kwargs") else {}
    plain.recompile()
    return plain


def _graphs(gm: Any) -> list[Any]:
    return [part for part in gm.modules() if isinstance(part, torch.fx.GraphModule)]


def _is_checkpoint(node: Any) -> bool:
    return node.op == "call_function" and getattr(node.target, "__name__", "") in _CHECKPOINTS


def _called(body: Any, *args: Any, **kwargs: Any) -> Any:
    return body(*args, **kwargs)
