"""Uninitialized memory that differs each time: what a program makes of it then differs from call to call, without a compiler.

An allocator gives the same block, or zeros, again and again. So eager seems to repeat itself, the compiled call finds other bytes,
and the difference looks like wrong numbers.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from ..traits import traits_of

# The operations that give memory as they find it.
_GIVES = frozenset(f"aten::{name}" for name in ("empty", "empty_like", "empty_permuted", "empty_strided", "new_empty", "new_empty_strided"))
# The fractional parts of its multiples are as far apart as such parts can be.
_GOLDEN = (5**0.5 - 1) / 2


def may_be_read(text: str) -> bool:
    """Whether the `text` of code names an operation that gives uninitialized memory."""
    return traits_of(text).uninitialized


def code_of(module: Any) -> str:
    """The code of a graph `module` and of the graphs inside it."""
    return "".join(part.code for part in module.modules() if isinstance(part, torch.fx.GraphModule))


def made_to_differ(text: str) -> AbstractContextManager[Any]:
    """While this is entered, no two pieces of uninitialized memory hold the same; nothing is changed where `text` asks for none."""
    return _Filled() if may_be_read(text) else contextlib.nullcontext()


class _Filled(TorchDispatchMode):
    supports_higher_order_operators = True

    def __init__(self) -> None:
        super().__init__()
        self._made = 0

    def __torch_dispatch__(
        self, func: Any, types: Sequence[type], args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        made = func(*args, **(kwargs or {}))
        if isinstance(func, torch._ops.OpOverload) and func._schema.name in _GIVES and isinstance(made, torch.Tensor):
            self._fill(made)
        return made

    def _fill(self, tensor: torch.Tensor) -> None:
        self._made += 1
        number = self._made * _GOLDEN % 1
        with contextlib.suppress(Exception):  # a layout or dtype that cannot be filled stays as it is
            if tensor.dtype == torch.bool:
                tensor.fill_(number < 0.5)
            else:
                tensor.fill_(1 + int(number * 100) if not (tensor.is_floating_point() or tensor.is_complex()) else number * 200 - 100)
