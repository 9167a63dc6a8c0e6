"""The ids of tests that pytest writes into a line, whose parameters may hold blanks."""

from __future__ import annotations

import re
from collections.abc import Iterator

# Characters of an id.
MAX_ID = 500

_COLONS = ".py::"
# The end of the path in front of it.
_WITHIN = re.compile(r"[^\s:`]+\Z")
_CLOSES = re.compile(r"\](?=\s|$)")
# What follows an id. It has brackets of its own, around the time or the percentage.
_OUTCOME = re.compile(r" (?:PASSED|FAILED|ERROR|SKIPPED|XFAIL|XPASS|RERUN|SUBPASS(?:ED)?|SUBFAIL(?:ED)?)(?: |$)")


def id_at(line: str, start: int) -> str:
    """The id that begins at the index `start` of `line`: up to a blank, or to the end of its parameters if one is open there."""
    word = line[start : start + MAX_ID].split(maxsplit=1)[0]
    if word.count("[") <= word.count("]"):
        return word
    closes = _CLOSES.search(line, start + len(word), start + MAX_ID)
    whole = line[start : closes.end()] if closes else word
    return word if _OUTCOME.search(whole) else whole


def ids_in(line: str) -> Iterator[str]:
    """Each id in `line`, in order."""
    at = line.find(_COLONS)
    while at >= 0:
        file = _WITHIN.search(line[max(0, at - MAX_ID) : at])
        if file and line[at + len(_COLONS) : at + len(_COLONS) + 1].strip():
            begun = id_at(line, at - len(file[0]))
            yield begun
            at += len(begun) - len(file[0])
        at = line.find(_COLONS, at + 1)
