"""Tells the capture which error made a test fail: pytest catches it before anybody outside sees it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def on_error(error: BaseException) -> None:
    """Replaced by the capture."""


def pytest_runtest_makereport(call: Any) -> None:
    """Pytest's hook, called after each phase of a test."""
    if call.excinfo is not None and call.excinfo.typename not in ("Skipped", "XFailed"):
        callback: Callable[[BaseException], None] = on_error
        callback(call.excinfo.value)
