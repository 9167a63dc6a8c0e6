"""From an edited text to a candidate."""

from __future__ import annotations

import pytest

from bot.reduce.source.text.candidate import Base, finish

BASE = Base.of("import torch\nx = 1\ny = x\ntorch.compile(f)(y)\n")


@pytest.mark.parametrize(
    ("edited", "candidate"),
    [
        ("import torch\nx = 1\ny = 2\ntorch.compile(f)(y)\n", "import torch\n\ny = 2\ntorch.compile(f)(y)\n"),
        (None, None),
        ("import torch (", None),
        (BASE.text, None),
        ("import torch\nx = 1\n", None),
    ],
    ids=["what nobody reads goes", "no text", "no Python", "no smaller", "no compiler"],
)
def test_candidates(edited: str | None, candidate: str | None) -> None:
    assert finish(BASE, edited) == candidate
