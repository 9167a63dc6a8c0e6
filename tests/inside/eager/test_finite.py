"""Numbers beside infinities are compared as others are."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from bot.inside.eager.accuracy import ComparisonRule  # noqa: E402
from bot.inside.eager.finite import beside_infinities, parts  # noqa: E402

NAN, INF = float("nan"), float("inf")


def wrong(eager: list[float], compiled: list[float], exact: list[float] | None = None, dtype: torch.dtype = torch.float32) -> bool:
    given = [torch.tensor(eager, dtype=dtype)], [torch.tensor(compiled, dtype=dtype)]
    return bool(ComparisonRule().compare(*given, [torch.tensor(eager if exact is None else exact, dtype=torch.float64)]).wrong)


@pytest.mark.parametrize(
    ("eager", "compiled", "found"),
    [
        # a number beside what is infinite, or none, in eager and in float64
        ([-INF, 1.0, 2.0], [-INF, 1.5, 2.0], True),
        ([NAN, 1.0, 2.0], [NAN, 1.5, 2.0], True),
        ([-INF, 1.0, 2.0], [-INF, 1.00001, 2.0], False),
        # what is infinite itself
        ([INF, 1.0], [NAN, 1.0], True),
        ([INF, 1.0], [-INF, 1.0], True),
        ([INF, 1.0], [9.0, 1.0], True),
        ([INF, -INF], [INF, -INF], False),
        # of what is no number nothing can be asked
        ([NAN, 1.0], [3.0, 1.0], False),
    ],
)
def test_infinities_hide_nothing(eager: list[float], compiled: list[float], found: bool) -> None:
    assert wrong(eager, compiled) is found


def test_a_narrow_type_makes_infinities_by_rounding() -> None:
    assert not wrong([INF, 1.0], [65504.0, 1.0], [65519.9, 1.0], torch.float16)
    assert not wrong([INF, 1.0], [65504.0, 1.0], [65521.0, 1.0], torch.float16)
    assert wrong([INF, 1.0], [INF, 3.0], [65521.0, 1.0], torch.float16)
    assert not wrong([INF, 1.0], [3.0, 1.0], [3.0, 1.0]), "eager alone lost it on the way"


def test_the_errors_are_those_of_the_numbers() -> None:
    found = ComparisonRule().compare([torch.tensor([INF, 1.0])], [torch.tensor([INF, 3.0])], [torch.tensor([INF, 1.0]).double()])
    assert found.errors == (2.0, 0.0)


def test_other_tensors_stay_as_they_are() -> None:
    for three in ((torch.ones(2), torch.ones(3), torch.ones(2)), (torch.tensor([INF]), torch.tensor([NAN]), None)):
        assert all(one is other for one, other in zip(beside_infinities(*three), three, strict=True))


@pytest.mark.parametrize("shape", [(0,), (), (3, 5), (3, 1 << 19)])
def test_parts_hold_each_element_once(shape):
    whole = torch.rand(shape)
    for tensor in (whole, whole.t() if whole.dim() == 2 else whole):
        assert torch.equal(torch.cat(parts(tensor)), tensor.reshape(-1))
