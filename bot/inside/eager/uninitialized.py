"""Makes values that torch leaves undefined differ each time, so that results which depend on them differ between calls without a compiler.

Uninitialized memory: an allocator returns the same block, or zeros, again and again. So eager seems to be reproducible, the compiled call
finds different bytes, and the difference looks like wrong numbers. Numbers that an integer type cannot hold: eager's conversion returns
what its instruction returns, and compiled code uses a different one. Positions to which an operation writes different numbers: threads
write in any order.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any
from unittest.mock import patch

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from ..traits import traits_of

# The operations that return uninitialized memory: functions of torch, and methods of its tensors.
_FUNCTIONS = ("empty", "empty_like", "empty_permuted", "empty_strided")
_METHODS = ("new_empty", "new_empty_strided")
_GIVES = frozenset(f"aten::{name}" for name in (*_FUNCTIONS, *_METHODS))
# The fractional parts of its multiples are as evenly spread as possible.
_GOLDEN = (5**0.5 - 1) / 2


# Dtype conversions as the dispatcher sees them.
_CONVERTS = frozenset({"aten::_to_copy", "aten::copy_", "prims::convert_element_type"})
# The operations that write to positions given by a tensor, possibly twice to one of them.
_WRITES = frozenset(
    f"aten::{name}{end}" for name in ("index_put", "_unsafe_index_put", "index_copy", "scatter", "put") for end in ("", "_")
)


def may_be_read(text: str) -> bool:
    """Whether the `text` of code names an operation whose result torch may leave undefined."""
    return traits_of(text).undefined


def code_of(module: Any) -> str:
    """The code of a graph `module` and of the graphs inside it."""
    return "".join(part.code for part in module.modules() if isinstance(part, torch.fx.GraphModule))


@contextlib.contextmanager
def made_to_differ(text: str) -> Iterator[None]:
    """In this context, no two pieces of uninitialized memory have the same content, no two conversions give the same for a number out of
    range, and no two operations leave the same in a position to which they write different numbers. Nothing is changed if `text` uses none
    of these."""
    if not may_be_read(text):
        yield
        return
    with _Filled() as filled, contextlib.ExitStack() as stack:
        for owner, names in ((torch, _FUNCTIONS), (torch.Tensor, _METHODS)):
            for name in names:
                stack.enter_context(patch.object(owner, name, filled.watching(getattr(owner, name))))
        yield


class _Filled(TorchDispatchMode):
    """Fills what operations return. A mode does not see calls inside a custom operator; for these, the patched Python functions fill it."""

    supports_higher_order_operators = True

    def __init__(self) -> None:
        super().__init__()
        self._made = 0
        self._hidden = False

    def __torch_dispatch__(
        self, func: Any, types: Sequence[type], args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        overload = isinstance(func, torch._ops.OpOverload)
        before, self._hidden = self._hidden, overload and func.namespace not in ("aten", "prim", "prims")
        try:
            made = func(*args, **(kwargs or {}))
        finally:
            self._hidden = before
        if overload and func._schema.name in _GIVES and isinstance(made, torch.Tensor):
            self._fill(made)
        if overload and func._schema.name in _CONVERTS and isinstance(made, torch.Tensor):
            # `copy_(self, src)`; the others take it first
            self._change_what_it_cannot_hold(made, args[1 if func._schema.name == "aten::copy_" else 0])
        if overload and func._schema.name in _WRITES and isinstance(made, torch.Tensor):
            with contextlib.suppress(Exception):  # layouts and dtypes that cannot be compared are left unchanged
                self._change_what_is_written_twice(made, {**dict(zip((a.name for a in func._schema.arguments), args)), **(kwargs or {})})  # noqa: B905
        return made

    def watching(self, give: Callable[..., Any]) -> Callable[..., Any]:
        """A function that returns uninitialized memory, like `give`, and fills it if this mode does not see the call."""

        @functools.wraps(give)
        def filled(*args: Any, **kwargs: Any) -> Any:
            made = give(*args, **kwargs)
            if self._hidden:
                self._fill(made)
            return made

        return filled

    def _change_what_it_cannot_hold(self, made: torch.Tensor, given: Any) -> None:
        whole = not (made.is_floating_point() or made.is_complex() or made.dtype == torch.bool)
        if not whole or not isinstance(given, torch.Tensor) or not given.is_floating_point():
            return
        with contextlib.suppress(Exception):  # layouts and types that cannot be compared are left unchanged
            # torch converts a number to unsigned eight bits through signed 64 bits
            bounds, value = torch.iinfo(torch.int64 if made.dtype == torch.uint8 else made.dtype), given.detach().double().trunc()
            # a double rounds the largest 64-bit number up, to the first that is too large
            above = value > bounds.max if bounds.bits < 64 else value >= float(bounds.max)
            outside = (above | (value < bounds.min) | value.isnan()).expand(made.shape)
            if bool(outside.any()):
                self._made += 1
                made.copy_(torch.where(outside, made ^ (self._made % 100 + 1), made))

    def _change_what_is_written_twice(self, made: torch.Tensor, given: Mapping[str, Any]) -> None:
        if given.get("accumulate") or given.get("reduce"):
            return
        places, values = _places(made, given)
        places, values = places.flatten(), torch.as_tensor(values, dtype=made.dtype).expand(places.shape).flatten()
        if places.unique().numel() == places.numel():
            return
        found = made.new_zeros(made.numel())
        one, other = found.put(places, values), found.put(places.flip(0), values.flip(0))
        left_open = (one != other) & ~(one.isnan() & other.isnan())
        if bool(left_open.any()):
            self._made += 1
            number = self._made * _GOLDEN % 1
            between = torch.lerp(one, other, number) if one.is_floating_point() or one.is_complex() else other if number < 0.5 else one
            made.copy_(torch.where(left_open.view(made.shape), between.view(made.shape), made))

    def _fill(self, tensor: torch.Tensor) -> None:
        self._made += 1
        number = self._made * _GOLDEN % 1
        with contextlib.suppress(Exception):  # layouts and dtypes that cannot be filled are left unchanged
            if tensor.dtype == torch.bool:
                tensor.fill_(number < 0.5)
            else:
                tensor.fill_(1 + int(number * 100) if not (tensor.is_floating_point() or tensor.is_complex()) else number * 200 - 100)


def _places(made: torch.Tensor, given: Mapping[str, Any]) -> tuple[torch.Tensor, Any]:
    """The flat positions in `made` to which an operation with the arguments `given` writes, and what it writes there."""
    every = torch.arange(made.numel(), device=made.device).view(made.shape)
    if "indices" in given:
        places = every[tuple(slice(None) if one is None else one for one in given["indices"])]
        return places, given["values"]
    if "dim" not in given:
        return every.take(given["index"]), given["source"]
    dim, index = given["dim"] % max(1, made.dim()), given["index"]
    if "source" in given:
        return every.index_select(dim, index), given["source"]
    part = tuple(slice(None, size) for size in index.shape)
    values = given["src"][part] if "src" in given else given["value"]
    return every[tuple(slice(None) if at == dim else one for at, one in enumerate(part))].gather(dim, index), values
