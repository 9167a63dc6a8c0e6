"""The nearest passing program, given as the edit that leads to it."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Sequence
from contextlib import suppress

from bot.models.failure import Verdict
from bot.reduce.candidate import BudgetSpent

# More lines than this are not an edit that a reader takes in at once.
MOST = 6
# A statement by which a program reports that it fails.
_COMPLAINS = re.compile(r"(?:raise|assert)\b|(?:[\w.]*\.)?assert\w*\(|(?:sys\.|os\.)?_?exit\(")


def edit_between(failing: str, passing: str) -> str | None:
    """The lines to remove (-) and to add (+) that turn the text `failing` into the text `passing`; None if they are too many, or only
    remove what reports the failure: any program passes that way."""
    changed = [
        line
        for line in difflib.unified_diff(failing.splitlines(), passing.splitlines(), n=0, lineterm="")
        if line[:1] in "+-" and not line.startswith(("+++", "---")) and not _says_nothing(line[1:])
    ]
    return "\n".join(changed) if 0 < len(changed) <= MOST and not _silences(changed) else None


def nearest_passing(failing: str, others: Sequence[str], ask: Callable[[str], Verdict]) -> tuple[str, str] | None:
    """The text `failing` and the first of the `others`, most similar first, that passes and is a short edit away. None if there is none, or
    no time to `ask`. A text that was asked before costs no query."""
    with suppress(BudgetSpent):
        for text in others:
            if ask(text) is Verdict.PASSES and edit_between(failing, text):
                return failing, text
    return None


def _silences(changed: Sequence[str]) -> bool:
    # a block that was nothing but its complaint is left with `pass`
    gone = [line[1:].lstrip() for line in changed if line.startswith("-")]
    left = [line[1:].strip() for line in changed if line.startswith("+")]
    return not set(left) - {"pass"} and any(map(_COMPLAINS.match, gone))


def _says_nothing(line: str) -> bool:
    return not line.strip() or line.lstrip().startswith("#")
