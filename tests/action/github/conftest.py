"""A small GitHub on loopback, whose answers can be made to fail."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.action.github.contract import Contract
from tests.action.github.emulator import TOOLS, Emulator
from tests.action.github.stub import Stub


@pytest.fixture
def stub() -> Iterator[Stub]:
    with Stub() as running:
        yield running


@pytest.fixture(scope="session")
def emulator(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Emulator]:
    """One for all tests: each works on an issue of its own."""
    if not (TOOLS / "stamp").exists():
        pytest.skip("scripts/setup-tools has not run")
    with Emulator(tmp_path_factory.mktemp("emulator")) as running:
        yield running


@pytest.fixture(scope="session")
def contract() -> Contract:
    description = TOOLS / "node_modules" / "@octokit" / "openapi" / "generated" / "api.github.com.json"
    if not description.exists():
        pytest.skip("scripts/setup-tools has not run")
    return Contract(description)
