"""How far results are from float64, and where that cannot be said."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from bot.inside.eager.errors import beyond_measure  # noqa: E402

NAN, INF = float("nan"), float("inf")


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16, torch.float8_e5m2, torch.complex64])
@pytest.mark.parametrize(
    ("ours", "theirs", "beyond"),
    [
        ([1.0, 2.0], [1.0, 4.0], False),
        ([1.0, NAN], [1.0, NAN], False),
        ([INF, 2.0], [INF, 4.0], False),
        ([1.0, NAN], [1.0, 2.0], True),
        ([1.0, 2.0], [1.0, INF], True),
        ([INF, 2.0], [-INF, 2.0], True),
    ],
)
def test_an_infinity_or_nan_that_is_something_else_has_no_error(
    dtype: torch.dtype, ours: list[float], theirs: list[float], beyond: bool
) -> None:
    both = (torch.tensor(ours).to(dtype), torch.tensor(theirs).to(dtype))
    assert beyond_measure(*both) is beyond
    assert beyond_measure(*reversed(both)) is beyond


def test_what_is_no_tensor_of_numbers_is_not_judged() -> None:
    assert not beyond_measure(torch.tensor([1]), torch.tensor([2]))
    assert not beyond_measure(torch.tensor([NAN]), torch.tensor([1.0, 2.0]))
    assert not beyond_measure(torch.tensor([NAN]), 3.0)
    # sums that overflow are no infinity of a result
    assert not beyond_measure(torch.full((9,), 6e4, dtype=torch.float16), torch.full((9,), 6e4, dtype=torch.float16))
