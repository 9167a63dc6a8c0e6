"""The tensors that a callable reads besides its arguments."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch


def reachable(call: Callable[..., Any]) -> list[torch.Tensor]:
    """The tensors that belong to the callable `call`: parameters and buffers of a module, and what a function closes over."""
    found: list[torch.Tensor] = []
    seen: set[int] = set()

    def visit(value: Any, depth: int) -> None:
        if id(value) in seen or depth > 3:
            return
        seen.add(id(value))
        if isinstance(value, torch.Tensor):
            found.append(value)
        elif isinstance(value, torch.nn.Module):
            for tensor in (*value.parameters(), *value.buffers()):
                visit(tensor, depth)
            for attribute in value.__dict__.values():
                visit(attribute, depth + 1)
        elif isinstance(value, (list, tuple, set, dict)):
            for item in value.values() if isinstance(value, dict) else value:
                visit(item, depth + 1)
        elif callable(value):
            code = getattr(value, "__code__", None)
            visit(getattr(value, "__self__", None), depth + 1)
            visit(getattr(value, "__wrapped__", None), depth + 1)
            for cell in getattr(value, "__closure__", None) or ():
                try:
                    visit(cell.cell_contents, depth + 1)
                except ValueError:
                    continue  # a cell that is still empty
            names = getattr(value, "__globals__", {})
            for name in code.co_names if code is not None else ():
                visit(names.get(name), depth + 1)

    visit(call, 0)
    return found
