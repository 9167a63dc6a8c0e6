"""The tolerance of the program's own last comparison."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch")
numpy = pytest.importorskip("numpy")
pytest.importorskip("numpy.testing")

from torch.testing import _comparison  # noqa: E402

from bot.inside.capture import comparison  # noqa: E402


class Case:
    """As `torch.testing._internal.common_utils.TestCase` compares; that module needs a package that only PyTorch's own tests have."""

    precision, rel_tol = 0.0, 0.0

    def assert_equal(self, x: Any, y: Any, *, atol: float | None = None, rtol: float | None = None) -> None:
        overrides = {"rtol_override": self.rel_tol, "atol_override": self.precision}
        _comparison.not_close_error_metas(x, y, pair_types=(Pair,), rtol=rtol, atol=atol, equal_nan=True, **overrides)


class Precise(Case):
    precision = 0.25


class Pair(_comparison.TensorLikePair):
    def __init__(self, actual: Any, expected: Any, *, rtol_override: float, atol_override: float, **others: Any) -> None:
        super().__init__(actual, expected, **others)
        self.rtol, self.atol = max(self.rtol, rtol_override), max(self.atol, atol_override)


@pytest.fixture
def heard(monkeypatch: pytest.MonkeyPatch) -> list[list[float]]:
    monkeypatch.setattr(torch, "allclose", torch.allclose)
    monkeypatch.setattr(torch.Tensor, "allclose", torch.Tensor.allclose)
    monkeypatch.setattr(_comparison, "not_close_error_metas", _comparison.not_close_error_metas)
    monkeypatch.setattr(numpy, "allclose", numpy.allclose)
    monkeypatch.setattr(numpy.testing, "assert_allclose", numpy.testing.assert_allclose)
    found: list[list[float]] = []
    comparison.listen(found.append)
    return found


@pytest.mark.parametrize(
    ("call", "tolerance"),
    [
        (lambda x: torch.allclose(x, x), [1e-5, 1e-8]),
        (lambda x: torch.allclose(x, x, 1e-3), [1e-3, 1e-8]),
        (lambda x: torch.allclose(x, x, 1e-3, 1e-4), [1e-3, 1e-4]),
        (lambda x: torch.allclose(x, x, rtol=0, atol=1e-2), [0.0, 1e-2]),
        (lambda x: torch.allclose(x, x, atol=1e-2), [1e-5, 1e-2]),
        (lambda x: torch.testing.assert_close(x, x), []),
        (lambda x: torch.testing.assert_close(x, x, equal_nan=True), []),
        (lambda x: torch.testing.assert_close(x, x, rtol=0, atol=0), [0.0, 0.0]),
        (lambda x: torch.testing.assert_close(x, x, rtol=0.5, atol=1), [0.5, 1.0]),
        (lambda x: x.allclose(x), [1e-5, 1e-8]),
        (lambda x: x.allclose(x, 1e-3, atol=1e-4), [1e-3, 1e-4]),
        (lambda x: Case().assert_equal(x, x), []),
        (lambda x: Case().assert_equal(x, x, atol=1e-3, rtol=0), [0.0, 1e-3]),
        (lambda x: Precise().assert_equal(x, x, atol=1e-3, rtol=0.5), [0.5, 0.25]),
        (lambda x: Precise().assert_equal(x, x), [1.3e-6, 0.25]),
        (lambda x: numpy.allclose(x, x), [1e-5, 1e-8]),
        (lambda x: numpy.allclose(x, x, 1e-3, atol=1e-4), [1e-3, 1e-4]),
        (lambda x: numpy.testing.assert_allclose(x, x), [1e-7, 0.0]),
        (lambda x: numpy.testing.assert_allclose(x.numpy(), x.numpy(), rtol=1e-3, atol=1e-4), [1e-3, 1e-4]),
        (lambda x: numpy.testing.assert_allclose(x, x, 1e-3), [1e-3, 0.0]),
    ],
)
def test_calls(heard: list[list[float]], call: Callable[[Any], Any], tolerance: list[float]) -> None:
    assert heard == []
    call(torch.ones(2))
    assert heard == [tolerance]


def test_errors_go_through(heard: list[list[float]]) -> None:
    torch.allclose(torch.ones(2), torch.ones(2))
    with pytest.raises(AssertionError, match="not close"):
        torch.testing.assert_close(torch.ones(2), torch.zeros(2), rtol=0.1, atol=0.1)
    assert heard == [[1e-5, 1e-8], [0.1, 0.1]]
