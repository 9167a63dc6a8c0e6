"""How far apart two right results may be."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from bot.inside.eager import fp64  # noqa: E402
from bot.inside.eager.noise import MARGIN, Jittered, stretched  # noqa: E402


def error(one: torch.Tensor, exact: torch.Tensor) -> float:
    return float((one.double() - exact).square().mean().sqrt())


def test_a_stretched_result_is_farther_from_eager_and_on_its_other_side() -> None:
    exact = torch.linspace(1, 2, 64, dtype=torch.float64)
    eager = (exact * 1.001).float()
    found = stretched(eager, exact)
    assert found.dtype == torch.float32
    assert torch.allclose(found.double(), exact * (1 + 0.001 * (1 - MARGIN)), rtol=1e-5)


def test_its_error_is_within_pytorchs_rule() -> None:
    """Else no program could ever be called wrong."""
    exact = torch.randn(4096, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    for dtype in (torch.float32, torch.bfloat16, torch.float16):
        eager = (exact * (1 + 1e-3 * torch.randn(4096, dtype=torch.float64, generator=torch.Generator().manual_seed(1)))).to(dtype)
        assert error(eager, exact) < error(stretched(eager, exact), exact) < (2 if dtype is torch.float32 else 3) * error(eager, exact)


def test_a_number_that_was_rounded_well_by_chance_goes_to_its_other_neighbor() -> None:
    exact = torch.tensor([1.00001], dtype=torch.float64)
    assert stretched(exact.bfloat16(), exact).item() == 1.0078125
    whole = torch.tensor([3.0], dtype=torch.float64)
    assert stretched(whole.bfloat16(), whole).item() == 3.0, "what is exact in the type is not rounded"


def test_what_is_no_number_stays_so_and_gradients_are_those_of_float64() -> None:
    exact = torch.tensor([float("inf"), float("-inf"), 1.0], dtype=torch.float64, requires_grad=True)
    found = stretched(exact.detach().float(), exact)
    assert found.tolist() == [float("inf"), float("-inf"), 1.0]
    found[2].backward()
    assert exact.grad is not None
    assert exact.grad.tolist() == [0.0, 0.0, 1.0]


def test_jitter_moves_what_is_rounded_and_nothing_else() -> None:
    x = torch.linspace(1, 2, 256)
    state = torch.get_rng_state()
    with Jittered():
        moved, kept = x * 3, torch.relu(x)
        view = x.view(16, 16)
    off = (moved / (x * 3) - 1).abs().max().item()
    assert 0 < off <= 2 * torch.finfo(torch.float32).eps
    assert torch.equal(kept, x)
    assert torch.equal(view.flatten(), x)
    assert torch.equal(torch.get_rng_state(), state), "the program's own random numbers are not touched"


def test_what_stands_for_float64_is_eager_moved_by_its_rounding() -> None:
    def cancels(x: torch.Tensor) -> torch.Tensor:
        return (x + 1e6) - 1e6

    x = torch.rand(64)
    near, far = fp64.stand_in(lambda x: x * 2, (x,), {}), fp64.stand_in(cancels, (x,), {})
    assert torch.allclose(near, x * 2, rtol=1e-5)
    assert not torch.allclose(far, cancels(x), rtol=1e-2)


@pytest.mark.parametrize("dtype", [torch.float8_e4m3fn, torch.float16, torch.bfloat16, torch.float32])
def test_the_largest_numbers_stay_numbers(dtype: torch.dtype) -> None:
    """Where they became NaN, every difference was taken for noise: a layer of eight bits fills its range."""
    largest = torch.full((256,), torch.finfo(dtype).max).to(dtype)
    with Jittered():
        moved = largest.double().to(dtype)
    assert torch.isfinite(moved.double()).all()
    assert (moved.double() < largest.double()).any()
