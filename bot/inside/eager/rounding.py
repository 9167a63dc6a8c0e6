"""Whole numbers that rounding decides: a code close to the border of the next one, the index of the larger of two nearly equal numbers.

Eager runs again with each result moved as far as rounding may take it; unrounded results are not moved. A number that then comes out
differently is no more right in eager than in compiled code.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import TorchDispatchMode

from .noise import MARGIN, rounds

# Number of perturbed eager runs. A number close to a border crosses it in about every third.
RUNS = 8
# This many more numbers may be close to a border than the perturbed runs showed.
_BY_CHANCE = 8
_DOUBLE = {
    torch.float16: torch.float64,
    torch.bfloat16: torch.float64,
    torch.float32: torch.float64,
    torch.complex64: torch.complex128,
}


class Rounded(TorchDispatchMode):
    """In this context, what an operation rounds is moved at random, by `seed`: by up to `MARGIN` units in the last place, or `MARGIN`
    times its error."""

    supports_higher_order_operators = True

    def __init__(self, seed: int) -> None:
        super().__init__()
        self._generator = torch.Generator().manual_seed(seed)

    def __torch_dispatch__(
        self, func: Any, types: Sequence[type], args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        named = kwargs or {}
        made = func(*args, **named)
        if not (isinstance(func, torch._ops.OpOverload) and rounds(func)):
            return made
        found = [value for value in pytree.tree_leaves(made) if isinstance(value, torch.Tensor)]
        if any(value.dtype in _DOUBLE for value in found):
            exact = _in_double(func, args, named)
            for place, value in enumerate(found):
                if value.dtype in _DOUBLE:
                    self._move(value, exact[place] if len(exact) == len(found) else None)
        return made

    def _move(self, tensor: torch.Tensor, exact: torch.Tensor | None) -> None:
        with contextlib.suppress(Exception):  # layouts and types that cannot be computed with are left unchanged
            held = tensor.to(_DOUBLE[tensor.dtype])
            far = MARGIN * torch.finfo(tensor.dtype).eps * held.abs()
            if exact is not None and exact.shape == held.shape:
                error = (held - exact.to(held.dtype)).abs()
                far = torch.where(error == 0, 0.0, torch.maximum(far, MARGIN * error))
            share = torch.rand(held.shape, generator=self._generator, dtype=torch.float64).to(tensor.device)
            moved = (held + far * (2 * share - 1)).to(tensor.dtype)
            tensor.copy_(torch.where(torch.isfinite(moved), moved, tensor))


def _in_double(func: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> list[torch.Tensor]:
    """The float64 results of an operation for the same numbers; empty if it cannot run in float64."""

    def up(value: Any) -> Any:
        if isinstance(value, torch.Tensor):
            return value.to(_DOUBLE[value.dtype]) if value.dtype in _DOUBLE else value
        return _DOUBLE.get(value, value) if isinstance(value, torch.dtype) else value

    try:
        made = func(*pytree.tree_map(up, tuple(args)), **pytree.tree_map(up, dict(kwargs)))
    except Exception:
        return []
    return [value for value in pytree.tree_leaves(made) if isinstance(value, torch.Tensor)]


def is_whole(value: Any) -> bool:
    """Whether a `value` is a tensor of integers or booleans."""
    return isinstance(value, torch.Tensor) and not (value.is_floating_point() or value.is_complex())


def as_rounding_leaves(expected: Sequence[Any], call: Callable[[], Sequence[Any]], *, most: bool = False) -> list[Any]:
    """The results `expected`, with another outcome of the `call` in place of each tensor of whole numbers that rounding can change: the
    first one found, or with `most` the one in which most numbers differ."""
    found, counts = list(expected), dict.fromkeys(_whole_places(expected), 0)
    for seed in range(RUNS):
        if not counts or (not most and all(counts.values())):
            break
        try:
            with Rounded(seed):
                moved = list(call())
        except Exception:  # nothing is known about it
            break
        if len(moved) != len(found):
            break
        for place, before in counts.items():
            if is_whole(moved[place]) and (count := differing(expected[place], moved[place])) > before:
                found[place], counts[place] = moved[place], count
    return found


def is_beyond_rounding(ours: torch.Tensor, theirs: torch.Tensor, moved: torch.Tensor) -> bool:
    """Whether far more of the whole numbers `ours` differ in `theirs` than in `moved`, which shows the effect of rounding."""
    return is_whole(theirs) and differing(ours, theirs) > MARGIN * differing(ours, moved) + _BY_CHANCE


def differing(one: torch.Tensor, other: torch.Tensor) -> int:
    """How many numbers in `one` differ from those in the `other`; all of them if their shapes or types differ."""
    if one.dtype != other.dtype or one.shape != other.shape:
        return one.numel()
    return int((one != other).sum())


def _whole_places(results: Sequence[Any]) -> list[int]:
    return [place for place, value in enumerate(results) if is_whole(value) and value.numel()]
