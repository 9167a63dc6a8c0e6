"""Operations that take functions, as plain Python: what their documentation says they are equivalent to.

Their eager form calls the compiler itself, so if the compiler fails, eager fails as well, and nobody knows whether the operation does.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch.utils import _pytree as pytree

_PACKAGE = "torch._higher_order_ops"


def while_loop(cond_fn: Callable[..., Any], body_fn: Callable[..., Any], carried_inputs: Any) -> Any:
    """`torch.while_loop`, with the same parameters `cond_fn`, `body_fn` and `carried_inputs`."""
    values = tuple(carried_inputs)
    while cond_fn(*values):
        values = tuple(body_fn(*values))
    return values


def cond(pred: Any, true_fn: Callable[..., Any], false_fn: Callable[..., Any], operands: Any = ()) -> Any:
    """`torch.cond`, with the same parameters `pred`, `true_fn`, `false_fn` and `operands`."""
    return true_fn(*operands) if pred else false_fn(*operands)


def map_over(f: Callable[..., Any], xs: Any, *args: Any) -> Any:
    """`map` of torch's control flow, with the same parameters `f`, `xs` and `args`."""
    return _stacked([f(row, *args) for row in _rows(xs, 0)], 0)


def scan(combine_fn: Callable[..., Any], init: Any, xs: Any, *, reverse: bool = False) -> Any:
    """`scan` of torch's control flow along the first dimension, with the same parameters `combine_fn`, `init`, `xs` and `reverse`."""
    carry, outputs = init, []
    for row in _ordered(xs, 0, reverse):
        carry, output = combine_fn(carry, row)
        outputs.append(output)
    return carry, _stacked(outputs[::-1] if reverse else outputs, 0)


def associative_scan(combine_fn: Callable[..., Any], xs: Any, dim: int, reverse: bool = False, *_: Any, **__: Any) -> Any:
    """`associative_scan` of torch's control flow, with the same parameters `combine_fn`, `xs`, `dim` and `reverse`; the mode of combining
    does not matter here."""
    first, *rest = _ordered(xs, dim, reverse)
    outputs = [first]
    for row in rest:
        outputs.append(combine_fn(outputs[-1], row))
    return _stacked(outputs[::-1] if reverse else outputs, dim)


def flex_attention(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    score_mod: Callable[..., Any] | None = None,
    block_mask: Any = None,
    scale: float | None = None,
    enable_gqa: bool = False,
    return_lse: bool = False,
    kernel_options: Any = None,  # noqa: ARG001 -- how fast, not what
) -> Any:
    """`flex_attention` of `torch.nn.attention`, with the same parameters `query`, `key`, `value`, `score_mod`, `block_mask`, `scale`,
    `enable_gqa`, `return_lse` and `kernel_options`."""
    if enable_gqa:
        groups = query.shape[1] // key.shape[1]
        key, value = key.repeat_interleave(groups, 1), value.repeat_interleave(groups, 1)
    working = torch.promote_types(query.dtype, torch.float32)
    scores = (query.to(working) @ key.to(working).mT) * (query.shape[-1] ** -0.5 if scale is None else scale)
    if score_mod is not None:
        scores = _each_place(scores.shape, scores.device, score_mod, scores)
    if block_mask is not None:
        kept = _each_place(scores.shape, scores.device, block_mask.mask_mod) & _computed_blocks(block_mask, scores.shape)
        scores = scores.masked_fill(~kept, -torch.inf)
    lse = scores.logsumexp(-1)
    # a row in which everything is masked has zero weights
    weights = torch.where(lse[..., None] == -torch.inf, 0.0, torch.softmax(scores, -1))
    out = (weights @ value.to(working)).to(query.dtype)
    return (out, lse) if return_lse else out


def _each_place(shape: torch.Size, device: torch.device, function: Callable[..., Any], *values: torch.Tensor) -> torch.Tensor:
    """`function` of the value at each position and the position's four indices: all at once, or one by one if it branches on data."""
    indices = [torch.arange(size, device=device) for size in shape]
    mapped = function
    for dim in reversed(range(len(shape))):
        mapped = torch.vmap(mapped, in_dims=(*(0 for _ in values), *(0 if at == dim else None for at in range(len(shape)))))
    try:
        return mapped(*values, *indices)
    except Exception:
        places = itertools.product(*(range(size) for size in shape))
        results = [
            function(*(one[place] for one in values), *(index[at] for index, at in zip(indices, place, strict=True))) for place in places
        ]
        return torch.stack([torch.as_tensor(one, device=device) for one in results]).reshape(shape)


def _computed_blocks(mask: Any, shape: torch.Size) -> torch.Tensor:
    """Which positions are in blocks that `mask` computes at all."""
    dense = mask.to_dense().bool()
    rows, columns = (size if isinstance(size, int) else size.item() for size in mask.BLOCK_SIZE)
    return dense.repeat_interleave(rows, -2).repeat_interleave(columns, -1)[..., : shape[-2], : shape[-1]].expand(shape)


def _rows(xs: Any, dim: int) -> Iterator[Any]:
    leaves, spec = pytree.tree_flatten(xs)
    for number in range(leaves[0].shape[dim]):
        yield pytree.tree_unflatten([leaf.select(dim, number) for leaf in leaves], spec)


def _ordered(xs: Any, dim: int, reverse: bool) -> list[Any]:
    rows = list(_rows(xs, dim))
    return rows[::-1] if reverse else rows


def _stacked(rows: list[Any], dim: int) -> Any:
    return pytree.tree_map(lambda *leaves: torch.stack(leaves, dim), *rows)


# The module and name of each, in all places from which a program may import it.
FORMS: tuple[tuple[Callable[..., Any], tuple[tuple[str, str], ...]], ...] = (
    (while_loop, (("torch", "while_loop"), (_PACKAGE, "while_loop"), (f"{_PACKAGE}.while_loop", "while_loop"))),
    (cond, (("torch", "cond"), (_PACKAGE, "cond"), (f"{_PACKAGE}.cond", "cond"), ("functorch.experimental.control_flow", "cond"))),
    (map_over, ((_PACKAGE, "map"), (f"{_PACKAGE}.map", "map"), ("functorch.experimental.control_flow", "map"))),
    (scan, ((_PACKAGE, "scan"), (f"{_PACKAGE}.scan", "scan"))),
    (flex_attention, (("torch.nn.attention.flex_attention", "flex_attention"),)),
    (associative_scan, ((_PACKAGE, "associative_scan"), (f"{_PACKAGE}.associative_scan", "associative_scan"))),
)
