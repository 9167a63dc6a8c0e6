"""The errors of compiled and eager results against float64."""

from __future__ import annotations

import math
from typing import Any

import torch

from .finite import beside_infinities


def farther(one: tuple[float, float] | None, other: tuple[float, float] | None) -> tuple[float, float] | None:
    """Of two pairs of `Compared.errors`, `one` and the `other`, the one in which compiled is worse relative to eager."""
    known = [pair for pair in (one, other) if pair is not None]
    return max(known, key=lambda pair: pair[0] / (pair[1] + 1e-30), default=None)


def of(ours: Any, theirs: Any, exact: Any) -> tuple[float, float] | None:
    """Root mean square errors against the float64 result `exact`, of the compiled tensor `theirs` and of eager's `ours`; None if they are
    not numbers."""
    ours, theirs, exact = beside_infinities(ours, theirs, exact)
    if exact is None or not ours.is_floating_point() or ours.shape != theirs.shape or ours.shape != exact.shape or not ours.numel():
        return None
    compiled, eager = (torch.dist(one.double(), exact.double()).item() / math.sqrt(one.numel()) for one in (theirs, ours))
    return (compiled, eager) if math.isfinite(compiled + eager) else None


def beyond_measure(ours: Any, theirs: Any) -> bool:
    """Whether only one of eager's tensor `ours` and the compiled `theirs` has an infinity or NaN somewhere, or they differ there: no mean
    error accounts for that."""
    if not all(type(one) is torch.Tensor and one.layout is torch.strided for one in (ours, theirs)):
        return False
    if ours.shape != theirs.shape or not (ours.is_floating_point() or ours.is_complex()):
        return False
    # torch cannot sum eight-bit types
    ours, theirs = (one.float() if one.element_size() == 1 else one for one in (ours, theirs))
    # usually everything is finite, and a sum takes no memory
    if all(one.sum().isfinite() for one in (ours, theirs)):
        return False
    odd = ~(ours.isfinite() & theirs.isfinite())
    return not torch.allclose(ours[odd], theirs[odd].to(ours.dtype), rtol=0, atol=0, equal_nan=True)
