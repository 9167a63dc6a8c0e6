"""Rewrites of classes: what each proposes."""

from __future__ import annotations

import pytest

from bot.reduce.source.passes.classes import empty_bases


@pytest.mark.parametrize(
    ("text", "becomes"),
    [
        (
            "class B(nn.Module):\n    pass\nclass C(B):\n    def forward(self):\n        return 1\n",
            "class C(nn.Module):\n    def forward(self):\n        return 1\n",
        ),
        ("class B(P, Q):\n    pass\nclass C(B):\n    n = 1\n", "class C(P, Q):\n    n = 1\n"),
        ("class B(P):\n    pass\nrun(B())\n", "run(P())\n"),
    ],
)
def test_an_empty_base_is_replaced_by_its_own_bases(text: str, becomes: str) -> None:
    assert becomes in empty_bases(text)
