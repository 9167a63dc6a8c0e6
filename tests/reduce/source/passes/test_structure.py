"""Rewrites of structure: what each proposes."""

from __future__ import annotations

import pytest

from bot.reduce.source.passes.structure import conditions


@pytest.mark.parametrize("becomes", ["def f(x):\n    bool(x > 8)\n", "def f(x):\n    if x > 8:\n        return\n"])
def test_a_condition_that_chooses_what_is_stored_is_asked_alone(becomes: str) -> None:
    assert becomes in conditions("def f(x):\n    if x > 8:\n        x = x\n")


def test_a_condition_that_decides_more_than_a_value_stays() -> None:
    text = "def f(x):\n    if x:\n        x = 1\n    else:\n        x = 2\n    if x:\n        x = g(x)\n    if x:\n        return 1\n"
    assert list(conditions(text)) == []
