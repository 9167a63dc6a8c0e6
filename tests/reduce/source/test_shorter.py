"""Shorter expressions in a preamble."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from bot.reduce.source.preamble import drop_statements
from bot.reduce.source.shorter import with_fewer_alternatives

REFUSING = """def trap():
    return 1


def picky(module):
    if {}:
        raise NotImplementedError
"""


@pytest.mark.parametrize(
    ("condition", "shorter"),
    [
        ("relu in ops and (sin in ops or trap())", ["relu in ops and sin in ops"]),
        ("trap() or (lambda: 1)() or (2 if ops else 3)", ["(lambda: 1)() or (2 if ops else 3)"]),
        # another function, another operator, and what is denied: without it that would hold more often
        ("sin in ops or other()", []),
        ("sin in ops and trap()", []),
        ("not (sin in ops or trap())", []),
    ],
)
def test_a_condition_loses_alternatives_that_call_a_function(condition: str, shorter: list[str]) -> None:
    assert with_fewer_alternatives(REFUSING.format(condition)) == [REFUSING.format(one) for one in shorter]


@pytest.mark.parametrize("returning", [False, True])
def test_the_function_of_an_alternative_goes_with_it(returning: bool) -> None:
    def ask(texts: Sequence[str]) -> int | None:
        return next((i for i, text in enumerate(texts) if "if relu in ops and" in text and "raise" in text), None)

    shrunk = drop_statements(REFUSING.format("relu in ops and (sin in ops or trap())"), ask, returning=returning)
    assert ("trap" in shrunk) is returning
    assert "if relu in ops and " in shrunk
