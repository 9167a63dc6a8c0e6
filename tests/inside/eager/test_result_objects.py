"""Results of a run in float64 that an object holds have eager's types, as others do."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest
import torch

from bot.inside.eager.fp64 import EVALUATORS
from bot.inside.protocol import Fp64Impossible


@dataclass(frozen=True)
class Output:
    boxes: torch.Tensor
    more: dict[str, Any] = field(default_factory=dict)
    name: str = "output"


@dataclass
class Small:
    __slots__ = ("value",)
    value: torch.Tensor


class State:
    def __init__(self, inner: Any, steps: int = 1) -> None:
        self.inner, self.steps = inner, steps


X = torch.rand(3) + 0.5


def given(call: Any, *args: Any, precision: Any = "fp64") -> Any:
    return EVALUATORS[precision](call, args, {})


@pytest.mark.parametrize("precision", ["fp64", "spread", "exact", "moved"])
def test_what_an_object_holds_has_the_types_of_eager(precision: Any) -> None:
    out = given(lambda x: (Output(x.sin(), {"log": [x.log(), x > 1]}), State(Small(x.exp()))), X, precision=precision)
    torch.testing.assert_close(out[0].boxes, X.sin())
    torch.testing.assert_close(out[0].more["log"][0], X.log())
    assert torch.equal(out[0].more["log"][1], X > 1)
    assert (out[0].name, out[1].steps) == ("output", 1)
    torch.testing.assert_close(out[1].inner.value, X.exp())


def test_gradients_flow_from_an_object() -> None:
    x = X.clone().requires_grad_()
    given(lambda x: State(x.sin()), x).inner.sum().backward()
    torch.testing.assert_close(x.grad, X.cos())


def test_an_object_that_was_given_is_returned_itself() -> None:
    def call(state: State, x: torch.Tensor) -> State:
        state.inner = state.inner + x
        return state

    state = State(torch.zeros(3))
    assert given(call, state, X) is state
    torch.testing.assert_close(state.inner, X)


def test_a_step_may_take_what_the_last_one_returned() -> None:
    def step(state: State, x: torch.Tensor) -> State:
        return State(state.inner * 0.5 + x, state.steps + 1)

    state = State(torch.zeros(3))
    for _ in range(3):
        state = given(step, state, X)
    assert state.steps == 4
    torch.testing.assert_close(state.inner, X * 1.75)


@pytest.mark.parametrize(
    "make", [lambda x, count: State([x] * count), lambda x, count: State(x[:count])], ids=["another list", "another shape"]
)
def test_an_object_that_holds_something_else_in_float64_has_no_such_form(make: Any) -> None:
    def call(x: torch.Tensor) -> Any:
        return make(x.sin(), 1 + int((x.new_full((), 1e8) + 1 - 1e8).item()))

    with pytest.raises(Fp64Impossible, match="another"):
        given(call, X)


def test_an_object_without_a_copy_has_no_such_form() -> None:
    class Locked(State):
        def __copy__(self) -> Any:
            raise TypeError

    with pytest.raises(Fp64Impossible, match="Locked"):
        given(lambda x: Locked(x.sin()), X)
