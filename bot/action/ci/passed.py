"""The tests of which pytest says that they passed: what they printed, and what is shown of them, is no failure."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator

# Before the id, in the summary of `-rA`; alone on a line, with `-s`, below what the test printed.
_WORDS = ("PASSED", "XFAIL", "XPASS", "SKIPPED")
_SUMMARY = re.compile(r"(?:PASSED|XFAIL|XPASS) (?P<id>[^\s:]{1,500}\.py::\S{1,500}(?: [^\s-]\S{0,300}){0,9})(?: - .{0,2000})?$")
# A reason stands there once: it may hold brackets and anything else.
_MARKS = r"(?: {1,80}\[ {0,3}\d{1,3}%\]| \[\d{1,9}\.\d{1,9}s\])*"
_ENDED = re.compile(rf"(?:PASSED|XFAIL|XPASS|SKIPPED){_MARKS}(?: \([^\n]{{0,500}}\))?{_MARKS}$")
# What begins the line of a test, and ends it where the test printed nothing.
_BEGUN = re.compile(r"[^\s:`]{1,500}\.py::\S{1,500}(?: |$)")
# Above what is shown of those that did not fail, or that were run again; and above, or below, anything else.
NO_FAILURES = re.compile(r"^=+ (?:PASSES|XPASSES|XFAILURES|RERUNS|rerun test summary info) =+$")
_RULE = re.compile(r"={2,} .{0,200} ={2,}$")
_TOLD = re.compile(r" (?:PASSED|FAILED|ERROR|XFAIL|XPASS|SKIPPED|RERUN)\b[^\n]{0,600}$")


def summarized(lines: list[str]) -> Iterator[str]:
    """The ids of those that the summary in `lines` lists, as `-rA` does."""
    for line in lines:
        if line.startswith(_WORDS) and (found := _SUMMARY.match(line)):
            yield found["id"]


def printed(lines: list[str], starts: list[int]) -> set[int]:
    """Those of the indices `starts`, which ascend, at which a test printed something in `lines` that passed, as they say below or above."""
    found: set[int] = set()
    shown = False
    waiting = deque(starts)
    # what was printed since a test began; None where none runs
    since: list[int] | None = None
    for i, line in enumerate(lines):
        if ".py::" in line and _BEGUN.match(line):
            since = None if _TOLD.search(line) else []
        if line.startswith("==") and _RULE.match(line):
            shown = bool(NO_FAILURES.match(line))
        if waiting and waiting[0] == i:
            waiting.popleft()
            if shown:
                found.add(i)
            elif since is not None:
                since.append(i)
        if since is not None and line.startswith(_WORDS) and _ENDED.match(line):
            found.update(since)
            since = None
    return found
