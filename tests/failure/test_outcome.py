"""What of a run's output is shown."""

from __future__ import annotations

import pytest

from bot.failure.outcome import Outcome


@pytest.mark.parametrize(
    ("text", "end"),
    [
        ("", ""),
        ("  one line\n", "one line"),
        ("first\nsecond\nlast one", "second\nlast one"),
        ("and\nexactly the second", "exactly the second"),
        ("a single line that is too long", "… line that is too long"),
        ("first\na last line that is too long", "… line that is too long"),
    ],
)
def test_the_end_of_an_output_is_whole_lines(text: str, end: str) -> None:
    assert Outcome(status="infra", text=text).end(21 if "too long" in text else 18) == end
