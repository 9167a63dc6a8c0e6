"""Adaptive deletion."""

from __future__ import annotations

import math
from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from bot.reduce.halving import adaptive


@given(st.integers(1, 200), st.sets(st.integers(0, 199), max_size=5))
def test_all_but_what_is_needed_goes_in_few_questions(size: int, needed: set[int]) -> None:
    needed = {n for n in needed if n < size}
    asked: list[tuple[int, ...]] = []

    def works(alternatives: Sequence[Sequence[int]]) -> int | None:
        for index, gone in enumerate(alternatives):
            asked.append(tuple(gone))
            if not needed & set(gone):
                return index
        return None

    assert set(adaptive(range(size), works)) == set(range(size)) - needed
    assert len(asked) <= 1 + 2 * len(needed) * (math.ceil(math.log2(size)) if size > 1 else 0)


def test_no_atoms_no_questions() -> None:
    def works(alternatives: Sequence[Sequence[int]]) -> int | None:
        raise AssertionError

    assert adaptive([], works) == []
