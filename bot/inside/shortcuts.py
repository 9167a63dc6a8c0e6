"""Optimizations that only save time. If a shortcut fails, that is logged, and the run continues without it.

Shortcuts rely on private parts of PyTorch, which change between versions. `tests/inside/test_private_apis.py` shows when one has changed;
no search may end because of it.
"""

from __future__ import annotations

import contextlib
import inspect
import os
from collections.abc import Iterator
from typing import Any

from .protocol import SHORTCUT_FAILED

_log = 2
_first = ""  # what failed first in this process, and how


def log_here() -> None:
    """Log to the current standard error even after it is replaced: in a child it belongs to the program."""
    global _log
    if _log == 2:
        _log = os.dup(2)


@contextlib.contextmanager
def shortcut(what: str) -> Iterator[None]:
    """Allow the body to fail: that `what` failed is logged, and the error is suppressed. An exit or an early end (not an `Exception`)
    propagates."""
    global _first
    try:
        yield
    except Exception as error:
        _first = _first or f"{what} failed: {type(error).__name__}: {error}"
        with contextlib.suppress(OSError):
            os.write(_log, f"{SHORTCUT_FAILED}{what}: {type(error).__name__}: {error}\n".encode("utf-8", "backslashreplace"))


def last_words(error: BaseException) -> str:
    """What to say about an `error` that ends a process while torch is imported, with the first shortcut that failed before: what a broken
    import has left is not seen by the next one, which may fail in words of its own."""
    said = f"{type(error).__name__}: {str(error) or 'while torch and its compiler were imported'}"
    return f"{said}; before that, {_first}" if _first else said


def function_at(owner: Any, name: str, *parameters: str) -> Any:
    """The function `owner.name`, which is about to be replaced by one with these `parameters`. Raises AttributeError if there is none of
    that `name`, or if its first parameters have different names."""
    function = getattr(owner, name, None)
    if function is None or list(inspect.signature(function).parameters)[: len(parameters)] != list(parameters):
        raise AttributeError(f"this torch has no {owner.__name__}.{name}({', '.join(parameters)})")
    return function
