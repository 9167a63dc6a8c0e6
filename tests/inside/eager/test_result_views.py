"""Results of a run in float64 share memory as eager's do."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from bot.inside.eager.fp64 import EVALUATORS

WEIGHT = torch.ones(2, 2)


def _given(call: Any, *args: torch.Tensor, precision: Any = "fp64") -> Any:
    return EVALUATORS[precision](call, args, {})


def test_a_view_of_something_new_has_a_base() -> None:
    result = _given(lambda x: x.sin().t(), torch.randn(2, 3))
    assert result._base is not None
    assert result.stride() == (1, 3)


def test_results_of_one_memory_share_it() -> None:
    def call(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        y = x.sin()
        return y, y[1:], y.t()

    whole, part, turned = _given(call, torch.randn(3, 2))
    part.zero_()
    assert whole[1:].eq(0).all()
    assert turned[:, 1:].eq(0).all()
    assert not whole[0].eq(0).any()


@pytest.mark.parametrize("precision", ["fp64", "spread", "moved", "exact"])
@pytest.mark.parametrize("call", [lambda x: x[1:], lambda x: x.detach()[1:], lambda x: x.t().t()[1:]])
def test_a_view_of_what_was_given_is_one(call: Any, precision: Any) -> None:
    x = torch.randn(3, 2)
    _given(call, x, precision=precision).zero_()
    assert x[1:].eq(0).all()
    assert not x[0].eq(0).any()


def test_a_view_of_a_part_of_memory_is_at_its_place() -> None:
    memory = torch.arange(24.0).reshape(4, 6)
    result = _given(lambda x: x[1:, 1:], memory[1:, 2:])
    result.zero_()
    assert memory.eq(0).sum() == 7
    assert memory[2:, 3:].eq(0).all()


@pytest.mark.parametrize("precision", ["fp64", "spread", "moved"])
def test_what_was_given_is_returned_itself(precision: Any) -> None:
    x = torch.randn(3)
    assert _given(lambda x: (x, x + 1), x, precision=precision)[0] is x


def test_what_belongs_to_the_function_is_returned_itself() -> None:
    result = _given(lambda x: (WEIGHT.t(), WEIGHT @ x), torch.randn(2))[0]
    assert result.data_ptr() == WEIGHT.data_ptr()


def test_a_cast_that_is_none_in_float64_is_a_copy() -> None:
    x = torch.randn(3)
    _given(lambda x: x.half().float(), x).zero_()
    assert not x.eq(0).any()
    first, second = _given(lambda x: (x.sin().half(), x.sin().half().float()), x)
    second.zero_()
    assert not first.eq(0).any()


def test_gradients_flow_through_views() -> None:
    x = torch.randn(3, 2, requires_grad=True)
    result, kept, apart = _given(lambda x: (x.sin().t(), x[1:], x.detach()[1:]), x)
    assert kept.requires_grad
    assert not apart.requires_grad
    (result.sum() + kept.sum()).backward()
    expected = x.detach().cos()
    expected[1:] += 1
    torch.testing.assert_close(x.grad, expected)


def test_a_view_of_what_the_call_keeps_has_a_base() -> None:
    class Keeps(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            self.last = x.sin()
            return self.last.t()

    assert _given(Keeps(), torch.randn(2, 3))._base is not None


def test_copies_of_the_results_of_eager_are_not_views() -> None:
    x = torch.randn(3, 2, requires_grad=True)
    kept, turned, whole = _given(lambda x: (x, x.sin().t(), x > 0), x, precision="copied")
    assert kept is not x
    assert turned._base is None
    assert torch.equal(turned, x.sin().t())
    assert torch.equal(whole, x > 0)
    (kept.sum() + turned.sum()).backward()
    torch.testing.assert_close(x.grad, 1 + x.detach().cos())
