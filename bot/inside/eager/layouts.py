"""Lays out inputs as a graph was traced with them."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import Any

import torch


def as_traced(gm: Any, inputs: Sequence[Any]) -> list[Any]:
    """The `inputs` with the strides that the graph `gm` was traced with.

    Inductor's forward stores what the backward needs in its own layouts, for which eager could not execute a `view` in the graph.
    """
    laid = list(inputs)
    placeholders = [node for node in gm.graph.nodes if node.op == "placeholder"]
    for index, (node, value) in enumerate(zip(placeholders, inputs, strict=False)):
        meta = node.meta.get("val")
        if not isinstance(value, torch.Tensor) or not isinstance(meta, torch.Tensor) or value.requires_grad:
            continue
        if value.layout is torch.strided is meta.layout and value.shape == meta.shape and value.stride() != meta.stride():
            with contextlib.suppress(Exception):  # symbolic strides
                laid[index] = torch.empty_strided(value.shape, meta.stride(), dtype=value.dtype, device=value.device).copy_(value)
    return laid
