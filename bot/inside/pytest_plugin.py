"""Tells the capture which error made a test fail: pytest catches it before anybody outside sees it."""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any

import pytest


def _nobody(_: BaseException) -> None:
    return


# Told of each error; the capture puts its own here.
on_error: Callable[[BaseException], None] = _nobody


@pytest.hookimpl(hookwrapper=True, tryfirst=True)
def pytest_runtest_makereport(call: Any) -> Generator[None, Any, None]:
    """Pytest's hook around the report of each phase of a test; a failure that is expected is none."""
    outcome = yield
    if call.excinfo is not None and outcome.get_result().failed:
        on_error(call.excinfo.value)
