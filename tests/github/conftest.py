"""A small GitHub on loopback, whose answers can be made to fail."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
if str(HERE) not in sys.path:
    sys.path.insert(0, str(HERE))

from stub import Stub  # noqa: E402  after the path


@pytest.fixture
def stub() -> Iterator[Stub]:
    with Stub() as running:
        yield running
