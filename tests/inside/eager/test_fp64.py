"""A function evaluated in float64: what it asks of its types it is told as in eager."""

from __future__ import annotations

import functools
from collections.abc import Callable

import numpy as np
import pytest
import torch

from bot.inside.eager import fp64
from bot.inside.protocol import Fp64Impossible, Precision

WEIGHT = torch.ones(2)
HALF = torch.ones(1, dtype=torch.float16)


def by_type(x: torch.Tensor) -> torch.Tensor:
    return torch.relu(x) if x.dtype == torch.float32 else x * 2


def by_type_inside(x: torch.Tensor) -> torch.Tensor:
    y = x + 1
    return y * 2 if y.dtype is WEIGHT.dtype and torch.result_type(y, 1) == torch.float32 else y


def of_numbers(x: torch.Tensor) -> torch.Tensor:
    pair = torch.complex(x, x)
    return pair * 2 if pair.dtype == torch.complex64 else pair


def masked(x: torch.Tensor) -> torch.Tensor:
    return x.masked_fill(x > 0, torch.finfo(x.dtype).min)


def by_size(x: torch.Tensor) -> torch.Tensor:
    return x * x.element_size() + x.itemsize


def made(x: torch.Tensor) -> torch.Tensor:
    return x + torch.ones(2, dtype=x.dtype).to(x.dtype)


def cast(x: torch.Tensor) -> torch.Tensor:
    """What comes of a cast has another type in eager: which, only eager says."""
    y = x.half().float()
    return x * 2 if y.dtype == torch.float32 else x


def by_default(x: torch.Tensor) -> torch.Tensor:
    return x * 2 if x.dtype == torch.get_default_dtype() else x


def of_an_array(x: torch.Tensor) -> torch.Tensor:
    return x * 2 if torch.from_numpy(np.ones(2)).dtype == torch.float64 else x


def under_autocast(x: torch.Tensor) -> torch.Tensor:
    with torch.autocast("cpu", dtype=torch.bfloat16):
        y = x[None] @ torch.ones(2, 2)
    return x * 2 if y.dtype == torch.float32 else x


def by_name(x: torch.Tensor) -> torch.Tensor:
    return x * 2 if x.type("torch.DoubleTensor").dtype == torch.float32 else x


def back_again(x: torch.Tensor) -> torch.Tensor:
    kept = x.dtype
    return x * 2 if x.half().to(kept).dtype == kept else x


def by_bytes(x: torch.Tensor) -> torch.Tensor:
    return x * x.nbytes + x.nbytes // x.numel()


def by_name_of_type(x: torch.Tensor) -> torch.Tensor:
    return x * 2 if x.type() == "torch.FloatTensor" else x


@pytest.mark.parametrize("call", [by_type, by_type_inside, of_numbers, masked, by_size, made, by_default, by_bytes, by_name_of_type])
def test_one_type_is_told_as_in_eager(call: Callable[[torch.Tensor], torch.Tensor]) -> None:
    x = torch.tensor([-1.0, 2.0])
    found = fp64.evaluate(call, (x,), {})
    assert torch.equal(found, call(x))
    assert found.dtype == call(x).dtype


@pytest.mark.parametrize("call", [of_an_array, under_autocast, by_name, back_again, cast])
def test_where_eager_has_several_types_the_program_does_the_same(call: Callable[[torch.Tensor], torch.Tensor]) -> None:
    """Whatever gives another type than the default one: an array, a context, a name."""
    x = torch.tensor([-1.0, 2.0])
    assert torch.equal(fp64.evaluate(call, (x,), {}), call(x))


def test_a_program_that_cannot_be_looked_at_is_as_eager_has_it() -> None:
    def refuses(x: torch.Tensor) -> torch.Tensor:
        if torch.overrides.has_torch_function((x,)):
            raise RuntimeError("no mode")
        return x

    with pytest.raises(Fp64Impossible, match="no mode"):
        fp64.evaluate(refuses, (WEIGHT,), {})


def test_of_several_types_each_is_told_where_eager_was() -> None:
    x = torch.tensor([-1.0, 2.0], dtype=torch.bfloat16)
    assert torch.equal(fp64.evaluate(cast, (x,), {}), cast(x))
    half = torch.tensor([-1.0], dtype=torch.float16)
    for call in (
        lambda x, y: x * (y.dtype == torch.float16) + y.nbytes + x.nbytes,
        lambda x, y: x + y if x.type() != y.type() else x - y,
        lambda x, y: x.to(torch.promote_types(y.dtype, torch.float16)).to(torch.get_default_dtype()) * y,
        lambda x, y: x * (torch.get_default_dtype() == torch.float32) * y,
    ):
        assert torch.equal(fp64.evaluate(call, (WEIGHT, half), {}), call(WEIGHT, half))


@pytest.mark.parametrize(
    "call",
    [
        lambda x: x.half().float(),
        lambda x: x.to(torch.float16).float(),
        lambda x: x.to("cpu", dtype=torch.float16),
        lambda x: x.type(torch.float16) * 2,
        lambda x: x.to(HALF).float(),
        lambda x: (x * 1e38).bfloat16().float(),
    ],
)
def test_a_number_that_a_cast_makes_infinite_is_not_so_in_float64(call: Callable[[torch.Tensor], torch.Tensor]) -> None:
    with pytest.raises(Fp64Impossible, match="too large"):
        fp64.evaluate(call, (torch.tensor([1.0, 1e6]),), {})
    for x in (torch.tensor([1.0, 2.0]), torch.tensor([1.0, float("inf")]), torch.tensor([1.0, float("nan")])):
        torch.testing.assert_close(fp64.evaluate(call, (x,), {}), call(x), rtol=0.01, atol=0, equal_nan=True)


def test_an_input_with_nan_was_not_written_to() -> None:
    x = torch.tensor([1.0, float("nan")])
    y = x[1:]  # what shares memory is not written to either
    given = fp64.evaluate(lambda x, y: (x.to(torch.float16, copy=False), y * 2), (x, y), {})
    assert given[0].dtype == torch.float16


def converges(x: torch.Tensor) -> torch.Tensor:
    for _ in range(20):
        step = (x * x - 2) / (2 * x)
        if 0 < step.abs().max() < 1e-9:  # finer than what eager can tell apart
            break
        x = x - step
    return x


class OfStorage:
    """Looks at what no call tells."""

    def __call__(self, x: torch.Tensor) -> torch.Tensor:
        return x.sin() if x.untyped_storage().nbytes() == 4 * x.numel() else x.cos()


@pytest.mark.parametrize("call", [OfStorage(), converges])
def test_a_run_that_does_something_else_is_no_reference(call: Callable[[torch.Tensor], torch.Tensor]) -> None:
    with pytest.raises(Fp64Impossible, match="does something else"):
        fp64.evaluate(call, (torch.tensor([0.3, 1.7]),), {})


def test_what_is_made_once_may_be_there_already() -> None:
    """The run in eager, which comes first, is where it is made."""

    @functools.cache
    def table(size: int) -> torch.Tensor:
        return torch.arange(size).cos()

    x = torch.tensor([-1.0, 2.0])
    assert torch.allclose(fp64.evaluate(lambda x: x + table(2), (x,), {}), x + table(2))
    assert torch.allclose(fp64.evaluate(lambda x: x + table(2), (x,), {}), x + table(2))


def test_a_parameter_first_used_without_gradients_has_one_later() -> None:
    layer = torch.nn.Linear(2, 2)

    def call(x: torch.Tensor) -> torch.Tensor:
        with torch.no_grad():
            scale = layer.weight.abs().max()
        return layer(x) / scale

    result = fp64.evaluate(call, (torch.ones(1, 2),), {})
    assert result.requires_grad
    result.sum().backward()
    assert layer.weight.grad is not None


def test_eight_bits_are_cast_to_as_in_eager() -> None:
    x = torch.tensor([1.0, 1e6])
    for dtype in (torch.float8_e4m3fn, torch.float8_e4m3fnuz):
        result, back = fp64.evaluate(lambda x, dtype=dtype: (x.to(dtype), x.to(dtype).float()), (x,), {})
        assert torch.equal(result.view(torch.uint8), x.to(dtype).view(torch.uint8))
        assert torch.equal(back.nan_to_num(), x.to(dtype).float().nan_to_num())


@pytest.mark.parametrize("precision", ["spread", "moved"])
def test_a_sparse_result_is_not_moved(precision: Precision) -> None:
    result = fp64.EVALUATORS[precision](lambda x: x.relu().to_sparse(), (torch.tensor([[-1.0, 2.0]]),), {})
    assert torch.equal(result.to_dense(), torch.tensor([[0.0, 2.0]]))
