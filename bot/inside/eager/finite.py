"""Numbers beside infinities and NaN, and numbers a part at a time.

PyTorch's rule compares root mean squares of errors. One infinity that eager shares with float64 makes both of them NaN, and then the rule
lets anything pass: scores that are masked by -inf could be wrong by any factor.
"""

from __future__ import annotations

from typing import Any

import torch

_PART = 1 << 20


def beside_infinities(ours: Any, theirs: Any, exact: Any) -> tuple[Any, Any, Any]:
    """The three tensors without those elements of which eager's (`ours`) is infinite or NaN, as it is in float64 (`exact`) as well.

    Where float64 is infinite, and the compiled result (`theirs`) is not the same infinity, an element stays that is infinitely wrong. Of
    what is NaN a compiled result may be anything, as in PyTorch's rule.
    """
    three = (ours, theirs, exact)
    if not all(type(one) is torch.Tensor and one.is_floating_point() and one.layout is torch.strided for one in three):
        return three
    if ours.shape != theirs.shape or ours.shape != exact.shape:
        return three
    # mostly all is finite, and a sum takes no memory; one that overflows only leads to the longer way
    if ours.sum().isfinite():
        return three
    rounded = exact.to(ours.dtype)
    shared = ~torch.isfinite(ours) & ((ours == rounded) | (ours.isnan() & rounded.isnan()))
    if not shared.any():
        return three
    # of what only a narrow type makes infinite, rounding decides on which side of the border it is
    missed = int((shared & exact.isinf() & (ours != theirs)).sum())
    kept = [one[~shared] for one in three]
    return tuple(torch.cat([one, one.new_full((missed,), far)]) for one, far in zip(kept, (0.0, float("inf"), 0.0), strict=True))


def parts(tensor: torch.Tensor) -> tuple[torch.Tensor, ...]:
    """The elements of a strided `tensor` in pieces, so that what is computed of each takes little memory."""
    return tensor.reshape(-1).split(_PART)
