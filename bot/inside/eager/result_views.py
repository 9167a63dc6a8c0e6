"""Results that were computed in float64, brought back to lower precision as the views that eager returns.

A program may write to a result and read that elsewhere, or ask a result for its base. A cast is a copy, with which such a program fails
for a reason that is not in the numbers.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import torch
from torch.utils import _pytree as pytree

from . import noise

_PLAIN = (torch.Tensor, torch.nn.Parameter)


class ResultPlace(NamedTuple):
    """Where eager has a result: in `memory` (an address) of what was `given` to it, and whether as a `view`."""

    memory: int
    given: bool
    view: bool


def places(results: Sequence[Any], given: Iterable[Any]) -> list[ResultPlace | None]:
    """Where each of eager's `results` is; None for what is no plain tensor. `given` is what eager could return or take a view of."""
    known = {_memory(tensor) for tensor in given if _is_plain(tensor)}
    return [ResultPlace(_memory(one), _memory(one) in known, one._base is not None) if _is_plain(one) else None for one in results]


def copied(results: Any) -> Any:
    """The tree of `results` with a copy of each floating-point tensor, as the casts make them that bring others back from float64."""

    def copy(value: Any) -> Any:
        rounds = isinstance(value, torch.Tensor) and (value.is_floating_point() or value.is_complex())
        return value.to(value.dtype, copy=True) if rounds else value

    return pytree.tree_map(copy, results)


def is_given(place: ResultPlace | None) -> bool:
    """Whether eager computes nothing for the result at this `place`, but returns what was given, or a view of it."""
    return place is not None and place.given


class ResultViews:
    """The results of one run in float64. `pairs` are the tensors that existed before it, each with its double, `where` are the places of
    eager's results, and results that are new are moved by the `margin` of `noise.stretched`, if there is one."""

    def __init__(
        self, pairs: Iterable[tuple[torch.Tensor, torch.Tensor]], where: Sequence[ResultPlace | None], margin: float = 0.0
    ) -> None:
        plain = [(low, high) for low, high in pairs if _is_plain(low) and _is_plain(high)]
        self._same = {id(high): low for low, high in plain}
        self._near = {_memory(high): (low, high) for low, high in plain}
        self._bases: dict[tuple[int, int], tuple[torch.Tensor, torch.Tensor]] = {}
        self._where = where
        self._margin = margin

    def low(self, position: int, eager: torch.Tensor, high: torch.Tensor) -> torch.Tensor:
        """The result `high`, number `position`, in the type that it has in `eager`. It is what was given, or a view of it, or a view of the
        same base as other results, if eager's is; otherwise it is a new tensor."""
        place, dtype = self._where[position], eager.dtype
        if place is not None and place.given and _is_plain(high):
            same = self._same.get(id(high))
            return same if same is not None and same.dtype is dtype else _view(self._near.get(_memory(high)), high, dtype)
        if self._margin and eager.layout is torch.strided:
            return noise.stretched(eager, high, self._margin)
        return high.to(dtype) if place is None or not _is_plain(high) else self._new(high, dtype, place)

    def _new(self, high: torch.Tensor, dtype: torch.dtype, place: ResultPlace) -> torch.Tensor:
        base = high._base if place.view and high._base is not None else high
        if base.dtype is not high.dtype or not _is_plain(base):
            return high.to(dtype)
        # what one memory holds in float64 may be in two in eager, between which was a cast
        key = (id(base), place.memory)
        if key not in self._bases:
            self._bases[key] = base.to(dtype), base
        return self._bases[key][0] if base is high else _view(self._bases[key], high, dtype)


def _view(near: tuple[torch.Tensor, torch.Tensor] | None, high: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """A view at the place of `high`, of the tensor that is `near` it, which comes with its double; a copy if there is none."""
    if near is None:
        return high.to(dtype)
    low, double = near
    # a copy may have closed gaps between elements
    if low.dtype is not dtype or low.shape != double.shape or low.stride() != double.stride():
        return high.to(dtype)
    low = low.detach() if low.requires_grad and not high.requires_grad else low
    return low.as_strided(high.shape, high.stride(), low.storage_offset() + high.storage_offset() - double.storage_offset())


def _is_plain(tensor: Any) -> bool:
    """Whether it is a tensor with memory of the common sort, which knows what it is a view of."""
    return type(tensor) in _PLAIN and tensor.layout is torch.strided and not tensor.is_inference() and tensor.numel() > 0


def _memory(tensor: torch.Tensor) -> int:
    return tensor.untyped_storage().data_ptr()
