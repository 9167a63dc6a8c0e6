"""The nearest passing program, said as the edit that leads to it."""

from __future__ import annotations

import difflib

# More lines than this are no longer one edit that a reader takes in.
MOST = 6


def edit_between(failing: str, passing: str) -> str | None:
    """The lines to take out (-) and to put in (+) that make the text `failing` the text `passing`; None where they are too many."""
    changed = [
        line
        for line in difflib.unified_diff(failing.splitlines(), passing.splitlines(), n=0, lineterm="")
        if line[:1] in "+-" and not line.startswith(("+++", "---")) and not _says_nothing(line[1:])
    ]
    return "\n".join(changed) if 0 < len(changed) <= MOST else None


def _says_nothing(line: str) -> bool:
    return not line.strip() or line.lstrip().startswith("#")
