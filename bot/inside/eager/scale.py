"""Numbers far below one, as an absolute tolerance can judge them."""

from __future__ import annotations

import math
from typing import Any

import torch


def at_scale(ours: Any, *others: Any) -> list[Any] | None:
    """The tensors `ours` and `others`, multiplied by a power of two so that the largest number of the first is about one; None where it is
    not below that, or where they hold no such numbers."""
    tensors = (ours, *others)
    if not ours.is_floating_point() or not ours.numel() or any(t.shape != ours.shape or t.layout is not torch.strided for t in tensors):
        return None
    largest = ours.double().abs().max().item()
    if not 0 < largest < 1:
        return None
    scale = 2.0 ** -math.frexp(largest)[1]
    return [(one.double() * scale).to(one.dtype) for one in tensors]
