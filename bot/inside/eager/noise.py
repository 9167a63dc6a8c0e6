"""How far apart two right results may be: the effect of rounding on eager's own numbers.

`stretched` moves a float64 result as far from eager's as rounding explains, and farther: a comparison that rejects this would mistake
rounding for a bug. `Jittered` is for programs that cannot run in float64: it runs eager once more, with each result moved by a unit in its
last place. The distance of that from eager is the noise.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import TorchDispatchMode

# Two right results may differ by this many times eager's own error. PyTorch's rule allows twice eager's error against float64: at a factor
# of 2.9 between the results it is 1.9.
MARGIN = 2.9
# One in this many elements goes to the farther neighbor of its exact value.
_FAR = 4
# Operations that pass numbers on unchanged, without rounding.
_EXACT = frozenset(
    """relu relu_ clone copy copy_ cat stack where index gather scatter select_scatter slice_scatter masked_fill embedding sort topk
    max min amax amin maximum minimum clamp clamp_min clamp_max neg abs flip roll repeat constant_pad_nd max_pool2d_with_indices
    threshold _unsafe_index index_select zeros ones full empty zeros_like ones_like full_like empty_like new_zeros new_ones new_full
    arange rand randn randint bernoulli rand_like randn_like contiguous tril triu""".split()  # noqa: SIM905
)


def stretched(eager: torch.Tensor, exact: torch.Tensor, margin: float = MARGIN) -> torch.Tensor:
    """A possible right result in `eager`'s type: `margin` times as far from `eager` as `exact` is, with some elements at the farther
    neighbor of their exact value. Gradients are those of `exact`."""
    with torch.no_grad():
        wide = exact.detach()
        wide = wide if wide.is_complex() else wide.double()
        low = eager.detach().to(wide.dtype)
        moved = torch.lerp(low, wide, margin)
        if not moved.sum().isfinite():
            moved = torch.where(torch.isfinite(moved), moved, wide)
        if not wide.is_complex() and eager.dtype in _LOW:
            moved = _with_far_neighbors(moved, wide, eager.dtype)
        moved = moved.to(eager.dtype)
    given = exact.to(eager.dtype)
    if not given.requires_grad:
        return moved
    away = (moved - given).detach()
    return given + torch.where(torch.isfinite(away), away, 0)


_LOW = (torch.bfloat16, torch.float16)


def _with_far_neighbors(moved: torch.Tensor, exact: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """One element in four at the neighbor of its exact value that eager would not round to, if that is farther."""
    near = exact.to(dtype).double()
    _, exponent = torch.frexp(near)
    unit = torch.ldexp(torch.full_like(near, torch.finfo(dtype).eps), exponent - 1)
    far = near + torch.sign(exact - near) * unit
    chosen = (torch.arange(exact.numel(), device=exact.device) % _FAR == 0).reshape(exact.shape)
    farther = (far - exact).abs() > (moved.to(dtype).double() - exact).abs()
    return torch.where(chosen & farther & torch.isfinite(far), far, moved)


class Jittered(TorchDispatchMode):
    """In this context, half of the elements of each new result are moved by one unit in the last place, up or down at random."""

    supports_higher_order_operators = True

    def __init__(self) -> None:
        super().__init__()
        self._generator = torch.Generator().manual_seed(0)

    def __torch_dispatch__(
        self, func: Any, types: Sequence[type], args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        made = func(*args, **(kwargs or {}))
        if isinstance(func, torch._ops.OpOverload) and rounds(func):
            for value in pytree.tree_leaves(made):
                if isinstance(value, torch.Tensor) and value.is_floating_point():
                    self._move(value)
        return made

    def _move(self, tensor: torch.Tensor) -> None:
        with contextlib.suppress(Exception):  # layouts and types that cannot be multiplied are left unchanged
            # every other element: as far as another rounding, or another order, would move them
            steps = torch.randint(0, 4, tensor.shape, generator=self._generator).to(tensor.device)
            moves = (steps == 1).double() - (steps == 2).double()
            held = tensor.double()
            moved = (held * (1 + torch.finfo(tensor.dtype).eps * moves)).to(tensor.dtype).double()
            # the largest number of a type has no larger neighbor: in eight bits NaN comes next
            tensor.copy_(torch.where(torch.isfinite(moved), moved, held))


def rounds(func: Any) -> bool:
    """Whether the operation `func` computes new numbers, which it has to round."""
    schema = func._schema
    name = schema.name.partition("::")[2]
    fresh = all(result.alias_info is None for result in schema.returns)
    return fresh and not schema.is_mutable and name not in _EXACT
