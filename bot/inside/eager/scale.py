"""Scales numbers far below one so that an absolute tolerance can judge them."""

from __future__ import annotations

import math
from typing import Any

import torch

_HELD_BY_FLOAT32 = 2.0**127


def at_scale(ours: Any, *others: Any) -> list[Any] | None:
    """The tensors `ours` and `others`, multiplied by a power of two so that the largest number in the first is about one; None if it is
    not below one, or if they do not hold such numbers."""
    tensors = (ours, *others)
    if not ours.is_floating_point() or not ours.numel() or any(t.shape != ours.shape or t.layout is not torch.strided for t in tensors):
        return None
    # the narrowest types cannot be computed with
    largest = (ours if ours.element_size() > 1 else ours.double()).abs().max().item()
    if not 0 < largest < 1:
        return None
    scale = 2.0 ** -math.frexp(largest)[1]
    # a factor that float32 can hold is exact for wider types and for half, and needs no float64 copy
    plain = scale < _HELD_BY_FLOAT32
    return [one * scale if plain and one.element_size() > 1 else (one.double() * scale).to(one.dtype) for one in tensors]
