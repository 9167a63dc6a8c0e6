"""How much one script differs from another."""

from __future__ import annotations

import difflib

# From this many lines on, comparing them one by one takes too long.
_LONG = 200


def distance(lines: list[str], text: str) -> int:
    """Number of lines in which a script (`lines`) and another (`text`) differ; for long scripts, the difference in length."""
    if len(lines) >= _LONG:
        return abs(len(lines) - text.count("\n"))
    return sum(1 for line in difflib.ndiff(lines, text.splitlines()) if line[0] in "+-")
