"""Tells the capture which error made a test fail: pytest catches it before anybody outside sees it."""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any

import pytest


def _nobody(_: BaseException, __: str) -> None:
    return


# Told of each error, and of the test that it made fail (`FILE::TEST[CASE]`); the capture puts its own here.
on_error: Callable[[BaseException, str], None] = _nobody


@pytest.hookimpl(hookwrapper=True, tryfirst=True)
def pytest_runtest_makereport(item: Any, call: Any) -> Generator[None, Any, None]:
    """Pytest's hook around the report of one phase (`call`) of a test (`item`); a failure that is expected is none."""
    outcome = yield
    if call.excinfo is not None and outcome.get_result().failed:
        # a node's id begins with a path from pytest's root, which need not be the directory that we are in
        names = item.nodeid.partition("::")[2]
        path = getattr(item, "path", "")  # pytest 6 has none
        on_error(call.excinfo.value, f"{path}::{names}")
