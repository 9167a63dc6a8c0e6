"""Tells the capture which error made a test fail, since pytest catches it before anything outside sees it."""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any

import pytest


def _nobody(_: BaseException, __: str) -> None:
    return


# Called with each error and the test that it made fail (`FILE::TEST[CASE]`); the capture replaces it.
on_error: Callable[[BaseException, str], None] = _nobody


@pytest.hookimpl(hookwrapper=True, tryfirst=True)
def pytest_runtest_makereport(item: Any, call: Any) -> Generator[None, Any, None]:
    """Pytest's hook around the report of one phase (`call`) of a test (`item`); an expected failure does not count."""
    outcome = yield
    if call.excinfo is not None and outcome.get_result().failed:
        # a node's id begins with a path from pytest's root, which may differ from the current directory
        names = item.nodeid.partition("::")[2]
        path = getattr(item, "path", "")  # pytest 6 has none
        on_error(call.excinfo.value, f"{path}::{names}")
