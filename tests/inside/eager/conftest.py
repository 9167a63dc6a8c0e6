"""What these tests share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.inside.forked import Forks


@pytest.fixture(scope="session")
def forks() -> Iterator[Forks]:
    """For scripts that need an interpreter of their own, but none that has imported nothing."""
    pytest.importorskip("torch")
    with Forks() as parent:
        yield parent
