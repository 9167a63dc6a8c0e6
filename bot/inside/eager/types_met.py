"""The types that a run in eager meets, and what a run of the same in float64 is told of its own.

Both runs are seen call by call. As long as the second makes the same calls, it gets the same answers about types as the first. If it does
not, it is another program, and its results say nothing about the first.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import MappingProxyType
from typing import Any

import torch
from torch.overrides import TorchFunctionMode
from torch.utils import _pytree as pytree

# A call, and what it said about a type; None if it said nothing about one.
_AnsweredCall = tuple[Any, Any]
# Attributes that tell a type by its size.
_SIZES = (torch.Tensor.itemsize, torch.Tensor.nbytes)
# These compute nothing: reading a property, a size or an attribute needs no double.
PLAIN = frozenset({"__get__", "__set__", "requires_grad_", "size", "stride", "numel", "dim"})
# No more calls than these are compared.
_MOST = 200_000


class TypesMet(TorchFunctionMode):
    """Sees the `calls` inside, and the types of all that they take and give: whoever asks a tensor for its type makes a call, too."""

    def __init__(self) -> None:
        super().__init__()
        self.calls: list[_AnsweredCall] = []
        default = torch.get_default_dtype()
        self._usual = (default, default.to_complex())
        self._others = False

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        self.calls += _noted(self.calls, func, result)
        for value in pytree.tree_leaves((args, kwargs, result)) if not self._others else ():
            if isinstance(value, (torch.Tensor, torch.dtype)):
                dtype = value if isinstance(value, torch.dtype) else value.dtype
                self._others |= (dtype.is_floating_point or dtype.is_complex) and dtype not in self._usual
        return result

    def in_place_of(self, raised: Mapping[torch.dtype, torch.dtype]) -> dict[torch.dtype, torch.dtype]:
        """What eager has in place of each type to which `raised` brings its types; empty where it met others than the default one."""
        return {} if self._others else {raised[usual]: usual for usual in self._usual if usual in raised}


class Retold:
    """Follows a second run, in the types to which `raised` brings those of the `first`. It is told about types what the first was told at
    the same call; if it makes another one, what the first has everywhere, if that is known."""

    def __init__(self, first: TypesMet | None = None, raised: Mapping[torch.dtype, torch.dtype] = MappingProxyType({})) -> None:
        self._first = first.calls if first else None
        self._everywhere = first.in_place_of(raised) if first else {}
        self._along = True  # as far as the second run has come, it made the same calls
        self._calls: list[_AnsweredCall] = []

    def told(self, func: Any, result: Any) -> Any:
        """What a call of `func` with this `result` gives in the second run."""
        for _, own in _noted(self._calls, func, result):
            place = len(self._calls)
            self._along = self._first is not None and self._along and place < len(self._first) and self._first[place][0] == func
            if own is not None and self._first is not None and self._along:
                own = result = self._first[place][1]
            self._calls.append((func, own))
        return result

    def in_place_of(self, dtype: torch.dtype) -> torch.dtype:
        """The type that the first run has everywhere in place of `dtype`, if that is known; otherwise `dtype`."""
        return self._everywhere.get(dtype, dtype)

    def went_like(self, other: TypesMet) -> bool:
        """Whether this run made the same calls as the `other` one, and got the same answers."""
        return self._calls == other.calls


def _noted(calls: list[_AnsweredCall], func: Any, result: Any) -> list[_AnsweredCall]:
    """A call of `func` with this `result`, next to the `calls` before, if it is to be compared."""
    answer = _answer(func, result)
    if len(calls) >= _MOST or (answer is None and getattr(func, "__name__", "") in PLAIN):
        return []
    return [(func, answer)]


def _answer(func: Any, result: Any) -> Any:
    """What a call of `func` says about a type by its `result`; None if it says nothing about one."""
    name, of = getattr(func, "__name__", ""), getattr(func, "__self__", None)
    by_size = isinstance(result, int) and (name == "element_size" or any(of is size for size in _SIZES))
    return result if isinstance(result, torch.dtype) or by_size or (isinstance(result, str) and name == "type") else None


@contextmanager
def default_told(default: torch.dtype, inside: torch.dtype) -> Iterator[None]:
    """A program that asks for the default type, which is `inside`, is told the `default`; torch itself is not."""
    usual = torch.get_default_dtype

    def asked() -> torch.dtype:
        of_torch = str(sys._getframe(1).f_globals.get("__name__", "")).partition(".")[0] == "torch"
        return default if usual() is inside and not of_torch else usual()

    torch.get_default_dtype = asked
    try:
        yield
    finally:
        torch.get_default_dtype = usual


# Casts that say in their name to what.
_NAMED = {"half": torch.float16, "bfloat16": torch.bfloat16, "float": torch.float32}


def cast_to(name: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> torch.dtype | None:
    """The floating-point type to which a method of a tensor with this `name` casts, called with `args` and `kwargs`; None if it is no
    such cast."""
    if not args or not isinstance(args[0], torch.Tensor) or args[0].is_complex():
        return None
    found = [_NAMED[name]] if name in _NAMED else []
    if name in ("to", "type", "type_as"):
        values = (*args[1:], *kwargs.values())
        found = [one if isinstance(one, torch.dtype) else one.dtype for one in values if isinstance(one, (torch.dtype, torch.Tensor))]
    return next((dtype for dtype in found if dtype.is_floating_point), None)
