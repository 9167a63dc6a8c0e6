"""The edit between a failing program and the nearest that passes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.engine.evidence.passing_edit import MOST, edit_between


def test_an_edit() -> None:
    assert edit_between("a\nrelu(x)\nc\n", "a\nx\nc\n") == "-relu(x)\n+x"
    assert edit_between("a\nb\n", "a\n") == "-b"
    assert edit_between("--- a\nb\n", "--- a\nc\n") == "-b\n+c"


def test_none() -> None:
    assert edit_between("a\n", "a\n") is None
    assert edit_between("a\n\n", "a\n") is None, "a blank line is no edit"
    assert edit_between("a\n# why\n", "a\n") is None, "nor is a comment"
    assert edit_between("\n".join("abcdefg"), "\n".join("hijklmn")) is None


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ('raise ValueError("off")', False),
        ("assert d < 1e-3, d", False),
        ("assert(d < 1e-3)", False),
        ("torch.testing.assert_close(ours, theirs)", False),
        ("sys.exit(3)", False),
        ("os._exit(3)", False),
        ("inserted(x)", True),
        ("state.copy_(x)", True),
    ],
)
def test_who_no_longer_complains_passes_anyhow(line: str, says: bool) -> None:
    assert edit_between(f"if x:\n    {line}\n", "") == (f"-if x:\n-    {line}" if says else None)
    assert (edit_between(f"if x:\n    {line}\n", "if x:\n    pass\n") is not None) == says
    assert edit_between(f"a\n{line}\n", "b\n") == f"-a\n-{line}\n+b", "something else has changed as well"


ROWS = st.lists(st.sampled_from(["x = 1", "y", "  z"]), max_size=8).map("\n".join)


@given(ROWS, ROWS)
def test_an_edit_is_small_and_of_the_two_programs(failing: str, passing: str) -> None:
    edit = edit_between(failing, passing)
    if edit is None:
        return
    lines = edit.split("\n")
    assert len(lines) <= MOST
    for line in lines:
        assert line[1:] in {"-": failing, "+": passing}[line[0]].split("\n")
