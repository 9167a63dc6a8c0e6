"""What of a repro a terminal shows: its beginning, and no data."""

from __future__ import annotations

import re

MOST_LINES = 40
# Characters of a line beyond which the rest is left out, and of a word beyond which it is data.
MOST_CHARACTERS, DATA = 160, 64
_DATA = re.compile(rf"(?<![A-Za-z0-9+/=_-])[A-Za-z0-9+/=_-]{{{DATA},}}")


def excerpt(text: str, name: str) -> str:
    """At most `MOST_LINES` lines of the script `text`; what is left out is said, with the `name` of the file that has it."""
    rows = text.rstrip("\n").split("\n")
    shown = [_row(row, name) for row in rows]
    if len(shown) > MOST_LINES:
        shown = [*shown[: MOST_LINES - 1], f"# ... {len(rows) - MOST_LINES + 1:,} more lines are in {name}"]
    return "\n".join(shown) + "\n"


def _row(row: str, name: str) -> str:
    row = _DATA.sub(lambda word: f"<{len(word[0]):,} characters of data, in {name}>" if _is_data(word[0]) else word[0], row)
    if len(row) <= MOST_CHARACTERS:
        return row
    return f"{row[:MOST_CHARACTERS]} ... <{len(row) - MOST_CHARACTERS:,} more characters are in {name}>"


def _is_data(word: str) -> bool:
    """Whether a long word is encoded bytes rather than a name that somebody wrote."""
    return all(any(test(character) for character in word) for test in (str.isupper, str.islower, str.isdigit))
