"""The code that Inductor generated, as a worker saves it."""

from __future__ import annotations

from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

from bot.inside.protocol import GENERATED, Question  # noqa: E402
from bot.workers.pool import Pool  # noqa: E402

SCRIPT = """
import torch
import torch._inductor.config
torch._inductor.config.cpp.inject_relu_bug_TESTING_ONLY = "compile_error"
def f(x):
    return torch.relu(x) + 1
torch.compile(f{options})(torch.ones(3))
"""


@pytest.mark.parametrize(("options", "status"), [("", "raised"), (', backend="eager"', "ok")])
def test_what_was_generated_is_saved(pool: Pool, tmp_path: Path, options: str, status: str) -> None:
    path = tmp_path / "generated.py"
    outcome, _ = pool.ask(Question(SCRIPT.replace("{options}", options), "generated", save=str(path)))
    assert outcome.status == status, outcome.text
    assert path.exists() is (status == "raised")
    if path.exists():
        assert GENERATED in path.read_text().split("\n")
        assert "compile error!" in path.read_text()
