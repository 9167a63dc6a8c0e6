"""Turns the objects in FX graphs (functions, dtypes, enums) into Python text that evaluates back to them."""

from __future__ import annotations

import contextlib
import enum
import importlib
import operator
import sys
import types
from functools import lru_cache
from typing import Any

import torch

from .literals import scalar


class Unreadable(Exception):
    """The graph contains something that has no Python text. The message says what."""


# Where a person looks first. Dynamo records the private C function; people know it by one of these names.
_PUBLIC = (
    "torch",
    *(f"torch.{name}" for name in ("nn.functional", "linalg", "special", "fft", "sparse", "nested", "amp", "autograd", "Tensor")),
)


def path_of(target: Any) -> str:
    """Full Python path of the `target` (a function, operator or class), checked to evaluate to this very object.

    A definition in the user's own script is `__main__.name`. Raises `Unreadable` if no path leads to it.
    """
    for path in _candidates(target):
        if evaluates_to(path, target):
            return path
    raise Unreadable(f"no Python name leads to {target!r} ({type(target).__module__}.{type(target).__qualname__})")


def evaluates_to(path: str, target: Any) -> bool:
    """Whether the dotted `path`, starting at an imported module, evaluates to this very `target`."""
    parts = path.split(".")
    for cut in range(len(parts) - 1, 0, -1):
        module = sys.modules.get(".".join(parts[:cut]))
        if module is None:
            continue
        with contextlib.suppress(AttributeError):
            return operator.attrgetter(".".join(parts[cut:]))(module) is target
    return False


def _candidates(target: Any) -> list[str]:
    found: list[str] = []
    if isinstance(target, torch._ops.OpOverload):
        found.append(f"torch.ops.{target}")
    elif isinstance(target, torch._ops.OpOverloadPacket):
        found.append(f"torch.ops.{str(target).removeprefix('torch.ops.')}")
    elif isinstance(target, torch._ops.HigherOrderOperator):
        name = target.name() if callable(getattr(target, "name", None)) else str(target)
        found.append(f"torch.ops.higher_order.{name}")
    else:
        module = getattr(target, "__module__", None)
        qualname = getattr(target, "__qualname__", None) or getattr(target, "__name__", None)
        if module in ("_operator", "operator"):
            found.append(f"operator.{target.__name__}")
        public = _aliases().get(id(target))
        if public:
            found.append(public)
        if isinstance(target, (types.MethodDescriptorType, types.WrapperDescriptorType, types.GetSetDescriptorType)):
            found.append(f"torch.Tensor.{target.__name__}")
        if module and qualname and "<" not in qualname:
            found.append(f"{module}.{qualname}")
            if qualname != target.__name__:
                found.append(f"{module}.{target.__name__}")
    return found


@lru_cache(maxsize=1)
def _aliases() -> dict[int, str]:
    # The objects live as long as torch does, so their ids stay valid.
    found: dict[int, str] = {}
    for place in _PUBLIC:
        try:
            owner: Any = importlib.import_module(place)
        except ImportError:
            owner = torch.Tensor
        for name in sorted(dir(owner)):
            if name.startswith("_") or name.endswith("_jit_fn"):
                continue
            value = getattr(owner, name, None)
            if callable(value) and not isinstance(value, types.ModuleType):
                found.setdefault(id(value), f"{place}.{name}")
    return found


def code_of(value: Any) -> str | None:
    """Python text for a constant `value` that is not a literal; None if it is of no known kind.

    Raises `Unreadable` for a function that no path leads to.
    """
    text = scalar(value)
    if text is not None:
        return text
    if isinstance(value, enum.Enum):
        return f"{path_of(type(value))}.{value.name}"
    if isinstance(value, range):
        return repr(value)
    if type(value).__module__ == "torch" and type(value).__name__ in ("finfo", "iinfo"):
        return f"torch.{type(value).__name__}(torch.{value.dtype})"
    if isinstance(value, (set, frozenset)) and all(isinstance(item, (int, str)) for item in value):
        return repr(value)
    operators = (torch._ops.OpOverload, torch._ops.OpOverloadPacket, torch._ops.HigherOrderOperator)
    functions = (types.FunctionType, types.BuiltinFunctionType, types.MethodDescriptorType)
    return path_of(value) if isinstance(value, (type, *operators, *functions)) else None
