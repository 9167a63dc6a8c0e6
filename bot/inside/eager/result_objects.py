"""Results of a run in float64 that an object of the program's holds, such as a dataclass, brought back to lower precision."""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Callable
from typing import Any

import torch
from torch.utils import _pytree as pytree

from ..protocol import Fp64Impossible

# Brings eager's tensor and the one in float64 together.
Lower = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]
# How deep objects are looked into.
_DEPTH = 3


def with_lowered(eager: Any, double: Any, lower: Lower, depth: int = _DEPTH) -> Any:
    """The object `double`, which a run in float64 returned where eager returned the object `eager`, with each tensor that it holds as
    `lower` gives it; a copy, if there are any. Objects are looked into down to this `depth`. Raises Fp64Impossible if the two do not hold
    the same."""
    if type(eager) is not type(double) or isinstance(double, (torch.nn.Module, type)) or not depth:
        return double
    held = _attributes(double)
    new = {name: _lowered(_attributes(eager).get(name), value, lower, depth - 1) for name, value in held.items()}
    changed = {name: value for name, value in new.items() if value is not held[name]}
    if not changed:
        return double
    try:
        copied = copy.copy(double)
        for name, value in changed.items():
            object.__setattr__(copied, name, value)  # a frozen dataclass has a `__setattr__` of its own
    except Exception as error:
        raise Fp64Impossible(f"a result is a {type(double).__name__}, of which there is no copy") from error
    return copied


def _attributes(value: Any) -> dict[str, Any]:
    fields = dataclasses.fields(value) if dataclasses.is_dataclass(value) else ()
    slots = {field.name: getattr(value, field.name) for field in fields if hasattr(value, field.name)}
    return {**slots, **getattr(value, "__dict__", {})}


def _lowered(eager: Any, double: Any, lower: Lower, depth: int) -> Any:
    if eager is double:
        return double
    leaves, spec = pytree.tree_flatten(double)
    others, other_spec = pytree.tree_flatten(eager)
    if len(leaves) != len(others) or str(spec) != str(other_spec):
        if any(isinstance(one, torch.Tensor) for one in leaves):
            raise Fp64Impossible("the result has another structure in float64")
        return double
    new = [_leaf(low, high, lower, depth) for low, high in zip(others, leaves, strict=True)]
    return double if all(a is b for a, b in zip(new, leaves, strict=True)) else pytree.tree_unflatten(new, spec)


def _leaf(eager: Any, double: Any, lower: Lower, depth: int) -> Any:
    if not (isinstance(eager, torch.Tensor) and isinstance(double, torch.Tensor)):
        return with_lowered(eager, double, lower, depth)
    if eager.shape != double.shape or (eager.is_floating_point(), eager.is_complex()) != (double.is_floating_point(), double.is_complex()):
        raise Fp64Impossible("a result has another shape or type in float64")
    return double if eager.dtype is double.dtype else lower(eager, double)
