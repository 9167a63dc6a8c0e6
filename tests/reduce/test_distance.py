"""How much two scripts differ."""

from __future__ import annotations

from bot.reduce.distance import distance


def test_lines_that_differ_are_counted_on_both_sides() -> None:
    assert distance(["a", "b", "c"], "a\nc\n") == 1
    assert distance(["a", "b"], "a\nx\n") == 2
    assert distance(["a"], "a\n") == 0


def test_of_long_scripts_the_lengths_count() -> None:
    assert distance(["a"] * 200, "b\n" * 190) == 10
