"""Removes infinities and NaN before a comparison, and splits tensors into parts.

PyTorch's rule compares root mean squares of errors. One infinity that eager shares with float64 makes both of them NaN, and then the rule
accepts anything: scores masked by -inf could be wrong by any factor.
"""

from __future__ import annotations

from typing import Any

import torch

_PART = 1 << 20


def beside_infinities(ours: Any, theirs: Any, exact: Any) -> tuple[Any, Any, Any]:
    """The three tensors without those elements where eager's (`ours`) is infinite or NaN, and float64 (`exact`) is as well.

    If float64 is infinite and the compiled result (`theirs`) is not the same infinity, an element with infinite error remains. Where eager
    is NaN, a compiled result may be anything, as in PyTorch's rule.
    """
    three = (ours, theirs, exact)
    if not all(type(one) is torch.Tensor and one.is_floating_point() and one.layout is torch.strided for one in three):
        return three
    if ours.shape != theirs.shape or ours.shape != exact.shape:
        return three
    # usually everything is finite, and a sum takes no memory; one that overflows only leads to the longer path
    if ours.sum().isfinite():
        return three
    rounded = exact.to(ours.dtype)
    shared = ~torch.isfinite(ours) & ((ours == rounded) | (ours.isnan() & rounded.isnan()))
    if not shared.any():
        return three
    # if only a narrow type makes a number infinite, rounding decides on which side of the limit it ends up
    missed = int((shared & exact.isinf() & (ours != theirs)).sum())
    kept = [one[~shared] for one in three]
    return tuple(torch.cat([one, one.new_full((missed,), far)]) for one, far in zip(kept, (0.0, float("inf"), 0.0), strict=True))


def overflows(numbers: torch.Tensor, dtype: torch.dtype) -> bool:
    """Whether a cast to the floating-point `dtype` makes any of the finite `numbers` infinite."""
    wide = numbers.double()  # nothing computes with eight bits
    return bool((wide.isfinite() & wide.to(dtype).double().isinf()).any())


def parts(tensor: torch.Tensor) -> tuple[torch.Tensor, ...]:
    """The elements of a strided `tensor` in pieces, so that computing with each takes little memory."""
    return tensor.reshape(-1).split(_PART)
