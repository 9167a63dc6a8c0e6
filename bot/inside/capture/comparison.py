"""Listens to the program's own comparisons: the tolerance of the last one is the one with which it fails."""

from __future__ import annotations

import contextlib
import functools
import importlib
import sys
from collections.abc import Callable
from typing import Any

# In torch.testing._comparison: where its public comparisons come together.
_INSIDE = "not_close_error_metas"


def listen(compared: Callable[[list[float]], None]) -> None:
    """Pass the tolerance (rtol and atol) of each comparison from here on to `compared`; an empty list for the defaults of
    `torch.testing.assert_close`."""
    torch: Any = sys.modules["torch"]
    inside = importlib.import_module("torch.testing._comparison")
    if hasattr(inside, _INSIDE):
        _listen_inside(inside, compared)
    else:
        _listen(importlib.import_module("torch.testing"), "assert_close", (), compared)
    _listen(torch, "allclose", (1e-5, 1e-8), compared)
    _listen(torch.Tensor, "allclose", (1e-5, 1e-8), compared)
    if "numpy" in sys.modules:  # torch imports it if it is installed
        _listen(sys.modules["numpy"], "allclose", (1e-5, 1e-8), compared)
        with contextlib.suppress(ImportError):
            _listen(importlib.import_module("numpy.testing"), "assert_allclose", (1e-7, 0.0), compared)


def _listen_inside(inside: Any, compared: Callable[[list[float]], None]) -> None:
    """Listen to `assert_close` and to the `assertEqual` of PyTorch's own tests, which also has tolerances of the test case."""
    original = getattr(inside, _INSIDE)

    @functools.wraps(original)
    def compare(actual: Any, expected: Any, **options: Any) -> Any:
        given: tuple[Any, Any] = options.get("rtol"), options.get("atol")
        least = options.get("rtol_override") or 0.0, options.get("atol_override") or 0.0
        if given == (None, None) and any(least):
            with contextlib.suppress(Exception):  # values that are not tensors have no defaults
                given = inside.default_tolerances(actual, expected)
        if None in given:
            compared([])
        else:
            compared([max(float(value), otherwise) for value, otherwise in zip(given, least, strict=True)])
        return original(actual, expected, **options)

    setattr(inside, _INSIDE, compare)


def _listen(owner: Any, name: str, defaults: tuple[float, ...], compared: Callable[[list[float]], None]) -> None:
    original = getattr(owner, name)

    @functools.wraps(original)
    def compare(*args: Any, **kwargs: Any) -> Any:
        usual = defaults or (0.0, 0.0)
        # positional tolerances come in this order after the compared values; assert_close takes them only by name
        given = [kwargs.get(word, args[place] if len(args) > place else None) for word, place in (("rtol", 2), ("atol", 3))]
        if given == [None, None]:
            compared(list(defaults))
        else:
            compared([float(otherwise if value is None else value) for value, otherwise in zip(given, usual, strict=True)])
        return original(*args, **kwargs)

    setattr(owner, name, compare)
