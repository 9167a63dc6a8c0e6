"""Operations that take functions, as plain Python: what their documentation says that they are equivalent to.

Their eager form calls the compiler by itself, so where that fails eager fails as well, and nobody knows whether the operation does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch.utils import _pytree as pytree

_PACKAGE = "torch._higher_order_ops"


def while_loop(cond_fn: Callable[..., Any], body_fn: Callable[..., Any], carried_inputs: Any) -> Any:
    """`torch.while_loop`; the parameters `cond_fn`, `body_fn` and `carried_inputs` are its."""
    values = tuple(carried_inputs)
    while cond_fn(*values):
        values = tuple(body_fn(*values))
    return values


def cond(pred: Any, true_fn: Callable[..., Any], false_fn: Callable[..., Any], operands: Any = ()) -> Any:
    """`torch.cond`; the parameters `pred`, `true_fn`, `false_fn` and `operands` are its."""
    return true_fn(*operands) if pred else false_fn(*operands)


def map_over(f: Callable[..., Any], xs: Any, *args: Any) -> Any:
    """`map` of torch's control flow; the parameters `f`, `xs` and `args` are its."""
    return _stacked([f(row, *args) for row in _rows(xs, 0)], 0)


def scan(combine_fn: Callable[..., Any], init: Any, xs: Any, *, reverse: bool = False) -> Any:
    """`scan` of torch's control flow along the first dimension; the parameters `combine_fn`, `init`, `xs` and `reverse` are its."""
    carry, outputs = init, []
    for row in _ordered(xs, 0, reverse):
        carry, output = combine_fn(carry, row)
        outputs.append(output)
    return carry, _stacked(outputs[::-1] if reverse else outputs, 0)


def associative_scan(combine_fn: Callable[..., Any], xs: Any, dim: int, reverse: bool = False, *_: Any, **__: Any) -> Any:
    """`associative_scan` of torch's control flow; the parameters `combine_fn`, `xs`, `dim` and `reverse` are its, and how it
    would combine does not matter here."""
    first, *rest = _ordered(xs, dim, reverse)
    outputs = [first]
    for row in rest:
        outputs.append(combine_fn(outputs[-1], row))
    return _stacked(outputs[::-1] if reverse else outputs, dim)


def _rows(xs: Any, dim: int) -> Iterator[Any]:
    leaves, spec = pytree.tree_flatten(xs)
    for number in range(leaves[0].shape[dim]):
        yield pytree.tree_unflatten([leaf.select(dim, number) for leaf in leaves], spec)


def _ordered(xs: Any, dim: int, reverse: bool) -> list[Any]:
    rows = list(_rows(xs, dim))
    return rows[::-1] if reverse else rows


def _stacked(rows: list[Any], dim: int) -> Any:
    return pytree.tree_map(lambda *leaves: torch.stack(leaves, dim), *rows)


# The module and the name of each, in all places where a program may take it from.
FORMS: tuple[tuple[Callable[..., Any], tuple[tuple[str, str], ...]], ...] = (
    (while_loop, (("torch", "while_loop"), (_PACKAGE, "while_loop"), (f"{_PACKAGE}.while_loop", "while_loop"))),
    (cond, (("torch", "cond"), (_PACKAGE, "cond"), (f"{_PACKAGE}.cond", "cond"), ("functorch.experimental.control_flow", "cond"))),
    (map_over, ((_PACKAGE, "map"), (f"{_PACKAGE}.map", "map"), ("functorch.experimental.control_flow", "map"))),
    (scan, ((_PACKAGE, "scan"), (f"{_PACKAGE}.scan", "scan"))),
    (associative_scan, ((_PACKAGE, "associative_scan"), (f"{_PACKAGE}.associative_scan", "associative_scan"))),
)
