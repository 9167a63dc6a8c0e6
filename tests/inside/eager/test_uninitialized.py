"""Uninitialized memory holds something else each time, and nothing else is touched."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from bot.inside.eager.uninitialized import code_of, made_to_differ, may_be_read  # noqa: E402

GIVE: list[Callable[[Any], Any]] = [
    lambda like: torch.empty(like.shape, dtype=like.dtype),
    torch.empty_like,
    lambda like: like.new_empty(4),
    lambda like: torch.empty_strided((4,), (2,), dtype=like.dtype),
    lambda like: torch.empty_permuted((2, 2), (1, 0), dtype=like.dtype),
]


@pytest.mark.parametrize("give", GIVE)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.complex64, torch.int32])
def test_no_two_are_alike(give: Callable[[Any], Any], dtype: Any) -> None:
    like = torch.zeros(4, dtype=dtype)
    with made_to_differ("torch.empty(1)"):
        found = [give(like).flatten() for _ in range(50)]
    first, *others = found
    assert all(not torch.isclose(first, other, rtol=1e-2, atol=1e-2).any() for other in others[:12])
    assert len({one[0].item() for one in found}) > 30


@pytest.mark.parametrize("name", ["torch.empty(4)", "empty_like(x)", "x.new_empty(4)", "torch.empty_strided((4,), (1,))"])
def test_nor_those_of_a_custom_operator(name: str) -> None:
    script = f"""
import torch
from torch import empty_like

@torch.library.custom_op("uninitialized_memory::of_{name.encode().hex()}", mutates_args=())
def give(x: torch.Tensor) -> torch.Tensor:
    return {name} + 0

found = [give(torch.zeros(4))[0].item() for _ in range(20)]
"""
    names: dict[str, Any] = {}
    with made_to_differ(script):
        exec(script, names)
    assert len(set(names["found"])) > 17
    assert not hasattr(torch.empty_like, "__wrapped__")


def test_what_is_written_is_kept() -> None:
    x = torch.arange(6.0)
    with made_to_differ("torch.empty(1)"):
        assert torch.empty(3).fill_(2).tolist() == [2, 2, 2]
        assert torch.equal(torch.cat([x, x]), torch.arange(6.0).repeat(2))
        assert torch.zeros(3).tolist() == [0, 0, 0]
        assert torch.equal(x.clone().resize_(3), x[:3])
        assert torch.nn.Linear(2, 2)(torch.ones(1, 2)).shape == (1, 2)
        leaf = torch.empty(2, requires_grad=True)
        (leaf * 2).sum().backward()
    assert leaf.grad is not None
    assert leaf.grad.tolist() == [2, 2]


def test_a_condition_is_run_as_it_is() -> None:
    def branch(x: Any) -> Any:
        return x + 1

    with made_to_differ("torch.empty(1)"):
        assert torch.cond(torch.tensor(True), branch, torch.neg, (torch.ones(2),)).tolist() == [2, 2]


def test_random_numbers_stay_the_same() -> None:
    torch.manual_seed(0)
    before = torch.rand(2)
    torch.manual_seed(0)
    with made_to_differ("torch.empty(1)"):
        torch.empty(3)
        assert torch.equal(torch.rand(2), before)


def test_only_code_that_asks_for_it_is_watched() -> None:
    graph = torch.fx.symbolic_trace(lambda x: x + torch.empty_like(x))
    outer = torch.nn.Module()
    outer.inner = graph
    assert may_be_read(code_of(outer))
    assert not may_be_read(code_of(torch.fx.symbolic_trace(lambda x: torch.relu(x))))
    with made_to_differ("torch.relu(x)"):
        assert not torch.utils._python_dispatch._get_current_dispatch_mode_stack()


@pytest.mark.parametrize("dtype", [torch.int8, torch.uint8, torch.int32, torch.int64])
def test_no_two_conversions_agree_on_what_the_type_cannot_hold(dtype: torch.dtype) -> None:
    x = torch.tensor([3.5, -0.5, 1e30, float("nan"), float("-inf"), 100.0])
    fits = [True, True, False, False, False, True]
    with made_to_differ("x.to(torch.int8)"):
        first, second, third = x.to(dtype), torch.ops.prims.convert_element_type.default(x, dtype), torch.zeros(6, dtype=dtype).copy_(x)
    assert (first == second).tolist() == (second == third).tolist() == fits
    assert first[torch.tensor(fits)].tolist() == [3, 0, 100]


def test_numbers_at_the_bounds_fit() -> None:
    x = torch.tensor([-128.0, 127.9, -(2.0**63)], dtype=torch.float64)
    with made_to_differ("x.to(torch.int8)"):
        assert x[:2].to(torch.int8).tolist() == [-128, 127]
        assert x[2:].to(torch.int64).tolist() == [-(2**63)]
        assert torch.tensor([2.0**63]).to(torch.int64).item() != torch.tensor([2.0**63]).to(torch.int64).item()
        assert torch.tensor([300, -1]).to(torch.uint8).tolist() == [44, 255]  # wraps, from whole numbers
        assert torch.tensor([300.0, -1.0]).to(torch.uint8).tolist() == [44, 255]  # by way of 64 bits
        assert torch.tensor([300.0]).to(torch.bool).item() is True


ROWS, NUMBERS = torch.tensor([1, 1, 2]), torch.arange(9.0).view(3, 3)


@pytest.mark.parametrize(
    "write",
    [
        lambda x: x.index_put((ROWS,), NUMBERS),
        lambda x: torch.ops.aten.index_put_.default(x, [None, ROWS], torch.arange(12.0).view(4, 3)),
        lambda x: x.scatter(0, ROWS[:, None].expand(3, 3), NUMBERS),
        lambda x: x.scatter_(-1, ROWS.expand(4, 3), torch.rand(5, 4)),
        lambda x: x.index_copy(0, ROWS, NUMBERS),
        lambda x: x.put_(ROWS, NUMBERS[0]),
    ],
)
def test_no_two_writes_leave_the_same_where_they_meet(write: Callable[[Any], Any]) -> None:
    with made_to_differ("x[i] = y"):
        found = [write(torch.zeros(4, 3)) for _ in range(5)]
        differ = sum((one != found[0]).int() for one in found[1:]).bool()
    once = write(torch.zeros(4, 3))
    assert differ.any()
    assert torch.equal(found[0][~differ], once[~differ])


def test_places_that_are_written_once_or_alike_are_kept() -> None:
    x, same = torch.zeros(4, 3), torch.tensor([0, 0])
    with made_to_differ("x[i] = y"):
        for write in (
            lambda: x.index_put((torch.tensor([2, 0, 1]),), NUMBERS),
            lambda: x.index_put((ROWS,), torch.tensor(5.0)),
            lambda: x.scatter(0, ROWS[:, None], 2.0),
            lambda: x.index_put((ROWS,), NUMBERS, accumulate=True),
            lambda: x.scatter(0, ROWS.expand(1, 3), NUMBERS, reduce="add"),
            lambda: x.bool().index_put((same, same), torch.tensor([True, True])),
            lambda: x.index_put((same, same), torch.tensor([torch.nan, torch.nan])).nan_to_num(7),
        ):
            assert torch.equal(write(), write())


def test_whole_numbers_that_are_written_twice_stay_among_those_that_are_written() -> None:
    with made_to_differ("x[i] = y"):
        found = {torch.zeros(2, dtype=torch.int64).scatter(0, torch.tensor([1, 1]), torch.tensor([3, 8]))[1].item() for _ in range(9)}
    assert found == {3, 8}
