"""Uninitialized memory that differs each time: what a program makes of it then differs from call to call, without a compiler.

An allocator gives the same block, or zeros, again and again. So eager seems to repeat itself, the compiled call finds other bytes,
and the difference looks like wrong numbers.
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

# The operations that give memory as they find it: functions of torch, and methods of its tensors.
_FUNCTIONS = ("empty", "empty_like", "empty_permuted", "empty_strided")
_METHODS = ("new_empty", "new_empty_strided")
_GIVES = frozenset(f"aten::{name}" for name in (*_FUNCTIONS, *_METHODS))
# The fractional parts of its multiples are as far apart as such parts can be.
_GOLDEN = (5**0.5 - 1) / 2


def may_be_read(text: str) -> bool:
    """Whether the `text` of code names an operation that gives uninitialized memory."""
    return traits_of(text).uninitialized


def code_of(module: Any) -> str:
    """The code of a graph `module` and of the graphs inside it."""
    return "".join(part.code for part in module.modules() if isinstance(part, torch.fx.GraphModule))


@contextlib.contextmanager
def made_to_differ(text: str) -> Iterator[None]:
    """While this is entered, no two pieces of uninitialized memory hold the same; nothing is changed where `text` asks for none."""
    if not may_be_read(text):
        yield
        return
    with _Filled() as filled, contextlib.ExitStack() as stack:
        for owner, names in ((torch, _FUNCTIONS), (torch.Tensor, _METHODS)):
            for name in names:
                stack.enter_context(patch.object(owner, name, filled.watching(getattr(owner, name))))
        yield


class _Filled(TorchDispatchMode):
    """Fills what operations give. A mode does not see what the code of a custom operator calls: there the functions of Python do it."""

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
        return made

    def watching(self, give: Callable[..., Any]) -> Callable[..., Any]:
        """A function that gives uninitialized memory, as `give` does, and fills it where this mode does not see it."""

        @functools.wraps(give)
        def filled(*args: Any, **kwargs: Any) -> Any:
            made = give(*args, **kwargs)
            if self._hidden:
                self._fill(made)
            return made

        return filled

    def _fill(self, tensor: torch.Tensor) -> None:
        self._made += 1
        number = self._made * _GOLDEN % 1
        with contextlib.suppress(Exception):  # a layout or dtype that cannot be filled stays as it is
            if tensor.dtype == torch.bool:
                tensor.fill_(number < 0.5)
            else:
                tensor.fill_(1 + int(number * 100) if not (tensor.is_floating_point() or tensor.is_complex()) else number * 200 - 100)
