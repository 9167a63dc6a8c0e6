"""The types that a run in eager meets, and what a run of the same in float64 is told of its own."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch.overrides import TorchFunctionMode
from torch.utils import _pytree as pytree


class TypesMet(TorchFunctionMode):
    """Sees the types of all that the calls inside take and give: whoever asks a tensor for its type makes a call, too."""

    def __init__(self) -> None:
        super().__init__()
        default = torch.get_default_dtype()
        self._usual = (default, default.to_complex())
        self._others = False

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        for value in pytree.tree_leaves((args, kwargs, result)) if not self._others else ():
            if isinstance(value, (torch.Tensor, torch.dtype)):
                dtype = value if isinstance(value, torch.dtype) else value.dtype
                self._others |= (dtype.is_floating_point or dtype.is_complex) and dtype not in self._usual
        return result

    def in_place_of(self, raised: Mapping[torch.dtype, torch.dtype]) -> dict[torch.dtype, torch.dtype]:
        """What eager has in place of each type to which `raised` brings its types; empty where it met others than the default one."""
        return {} if self._others else {raised[usual]: usual for usual in self._usual if usual in raised}


@contextmanager
def default_told(told: Mapping[torch.dtype, torch.dtype]) -> Iterator[None]:
    """A program that asks for the default type inside is given what is `told` in its place; torch itself is not."""
    usual = torch.get_default_dtype

    def asked() -> torch.dtype:
        of_torch = str(sys._getframe(1).f_globals.get("__name__", "")).partition(".")[0] == "torch"
        return usual() if of_torch else told.get(usual(), usual())

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
