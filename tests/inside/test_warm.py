"""What the warm parent loads."""

from __future__ import annotations

import importlib.util

import pytest

torch = pytest.importorskip("torch")

from bot.inside import warm  # noqa: E402
from bot.oracle.pool import Pool, Question  # noqa: E402


@pytest.mark.parametrize("name", [*warm.MODULES, *warm.GENERATORS])
def test_every_module_is_in_this_torch(name: str) -> None:
    """A name that upstream has moved away costs each child its import again."""
    assert importlib.util.find_spec(name) is not None


def test_versions() -> None:
    found = warm.versions(torch)
    assert found["torch"] == str(torch.__version__)
    assert all(isinstance(value, str) for value in found.values())
    assert ("cuda" in found) is bool(torch.version.cuda)


@pytest.mark.slow
def test_a_first_compile_imports_next_to_nothing(pool: Pool) -> None:
    """What a child imports, every child imports."""
    body = """
import sys, torch
before = set(sys.modules)
torch.compile(lambda x: torch.relu(x) + 1)(torch.ones(8))
print(sorted(name for name in set(sys.modules) - before if name.startswith("torch.")))
print("NEW", sum(name.startswith("torch.") for name in set(sys.modules) - before))
"""
    outcome, facts = pool.ask(Question(body, limit=100.0))
    assert outcome.status == "ok", outcome.text
    assert int(facts["printed"].rsplit("NEW", 1)[1]) <= 3, facts["printed"]
