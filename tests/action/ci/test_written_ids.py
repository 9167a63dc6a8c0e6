"""Ids of tests within the lines of a log."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.action.ci.pytest_log import running
from bot.action.ci.written_ids import MAX_ID, id_at, ids_in

SCAN = "tests/test_scan.py::test_scan[n=1, m=2 - na\u00efve]"


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("tests/a.py::test_b PASSED                [ 50%]", "tests/a.py::test_b"),
        (f"{SCAN} PASSED   [ 50%]", SCAN),
        (SCAN, SCAN),
        (f"{SCAN} <- tests/base.py FAILED [ 50%]", SCAN),
        ("tests/a.py::test_b[x[0], y] FAILED [ 50%]", "tests/a.py::test_b[x[0], y]"),
        ("tests/a.py::test_b[a[ PASSED [ 50%]", "tests/a.py::test_b[a["),  # not up to the percentage
        ("tests/a.py::test_b[cut off, at the end", "tests/a.py::test_b[cut"),
        ("tests/a.py::test_b[a]b] PASSED [ 50%]", "tests/a.py::test_b[a]b]"),
    ],
)
def test_parameters_may_hold_blanks(line: str, expected: str) -> None:
    assert id_at(line, 0) == expected
    assert list(ids_in(f"[gw0] {line}")) == [expected]
    assert running(line) == expected


def test_several_ids_in_a_line() -> None:
    assert list(ids_in(f"ran {SCAN} then a/b.py::c.py::d and .py:: nothing (`x.py::y`)")) == [SCAN, "a/b.py::c.py::d", "x.py::y`)"]


@given(st.text(alphabet="ab[] .py:,-", max_size=60))
def test_ids_are_parts_of_the_line(line: str) -> None:
    for each in ids_in(line):
        assert each in line
        assert len(each) <= 2 * MAX_ID
