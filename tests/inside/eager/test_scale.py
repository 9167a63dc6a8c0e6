"""Small numbers are brought to the scale of a tolerance, and keep their digits."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from bot.inside.eager.scale import at_scale  # noqa: E402


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16, torch.float16, torch.float8_e4m3fn])
def test_all_are_multiplied_alike_and_nothing_is_rounded(dtype):
    ours = torch.tensor([0.25, -0.1875, 0.0]).to(dtype)
    more = torch.tensor([0.3, 0.2, 5.0], dtype=torch.float64)
    scaled, other = at_scale(ours, more)
    assert scaled.dtype == dtype
    assert torch.equal(scaled.double(), torch.tensor([0.5, -0.375, 0.0], dtype=torch.float64))
    assert torch.equal(other, more * 2)


def test_the_smallest_numbers_of_a_type_are_no_exception():
    (scaled,) = at_scale(torch.tensor([1e-44]))
    assert 0.5 <= scaled.item() < 1


@pytest.mark.parametrize(
    "tensors",
    [
        (torch.tensor([1.0, 1e-6]),),
        (torch.zeros(3),),
        (torch.empty(0),),
        (torch.tensor([float("nan"), 0.1]),),
        (torch.tensor([1, 2]),),
        (torch.tensor([0.1]), torch.tensor([0.1, 0.2])),
        (torch.tensor([0.1]).to_sparse(),),
    ],
)
def test_what_has_no_scale_of_its_own_is_left(tensors):
    assert at_scale(*tensors) is None
