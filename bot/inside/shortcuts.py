"""What only saves time. Where a shortcut fails, that is logged, and the run goes on without it.

Shortcuts rest on private parts of PyTorch, which change from version to version. `tests/inside/test_private_apis.py` says when one
has changed; no search may end because of it.
"""

from __future__ import annotations

import contextlib
import inspect
import os
from collections.abc import Iterator
from typing import Any

from .protocol import SHORTCUT_FAILED

_log = 2


def log_here() -> None:
    """Log to what standard error is now, even after it was replaced: in a child it belongs to the program."""
    global _log
    if _log == 2:
        _log = os.dup(2)


@contextlib.contextmanager
def shortcut(what: str) -> Iterator[None]:
    """The body may fail: `what` failed is logged and the error goes no further. An exit or an early end (no `Exception`) goes through."""
    try:
        yield
    except Exception as error:
        with contextlib.suppress(OSError):
            os.write(_log, f"{SHORTCUT_FAILED}{what}: {type(error).__name__}: {error}\n".encode("utf-8", "backslashreplace"))


def function_at(owner: Any, name: str, *parameters: str) -> Any:
    """The function `owner.name`, which is about to be replaced by one with these parameters. Raises AttributeError where there is none of
    that name, or its first parameters have other names by now."""
    function = getattr(owner, name, None)
    if function is None or list(inspect.signature(function).parameters)[: len(parameters)] != list(parameters):
        raise AttributeError(f"this torch has no {owner.__name__}.{name}({', '.join(parameters)})")
    return function
