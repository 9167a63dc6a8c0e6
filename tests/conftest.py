"""Settings that hold for all tests, and the one warm worker that they share."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings

from bot.workers.pool import Pool
from tests.probes import probed

# On a busy machine a slow example is no fault; on CI the same examples are drawn each time.
settings.register_profile("default", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("ci", settings.get_profile("default"), derandomize=True, print_blob=True)
settings.load_profile("ci" if os.environ.get("CI") else "default")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What takes longest first: else one of two workers ends with it, alone."""
    items.sort(key=lambda item: item.get_closest_marker("long") is None)


@pytest.fixture(scope="session", autouse=True)
def kept(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """What one test's compiler found out about the machine, the next need not: but nothing of whoever runs the tests."""
    base = tmp_path_factory.getbasetemp()
    shared = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TORCH_MINIFY_CACHE_DIR", str(shared / "kept"))
        yield


@pytest.fixture(scope="session")
def pool(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pool]:
    """A parent that has imported the compiler: one for all tests, since starting it takes seconds."""
    pytest.importorskip("torch")
    directory = tmp_path_factory.mktemp("pool")
    with Pool(sys.executable, probed(directory), directory / "workers.log") as shared:
        yield shared
