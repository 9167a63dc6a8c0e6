"""Logs of several writers that print at the same time: branches of a pipeline, containers, processes that a launcher has started.

What shows all of them puts the name of its writer before each line. What runners of tests report is read line by line, so the lines of
each writer are put together there. A rank's mark says too little: it stands in what one test printed, too.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

# Behind the name of a branch of Jenkins' pipelines.
BRANCH = "(branch)"

# No level of a logger is written in small letters.
_WRITER = re.compile(
    rf"[^\n]{{1,100}}?{re.escape(BRANCH)}|[a-z\d][\w.-]{{0,60}} {{0,40}}\||\[default\d{{1,5}}\]:|\[\d{{1,4}},\d{{1,5}}\](?=<std)"
)
_STARTS = re.compile(r"={3,200} test session starts ={3,200}$")
_BEGINS = re.compile(r"={3,200} (?:FAILURES|ERRORS|short test summary info) ={3,200}$")
# unittest's, above these words.
_DOUBLE = "=" * 70
_HEADS = ("ERROR", "FAIL")
_ENDS = re.compile(
    r"(?:={2,200} )?(?:\d{1,9} (?:failed|passed|errors?|skipped|deselected|xfailed|xpassed|warnings?)\b|no tests ran\b).{0,200} in \d"
    r"|Ran \d{1,9} tests? in \d"
)
_FIRST = tuple("=Rn123456789")
# More of them are not read apart.
MAX_WRITERS = 16
# So many lines below its last one unittest says how many failed.
MAX_BELOW = 2


@dataclass
class _Writer:
    """Whose lines begin with `first`, and end with `last`; where it reports on tests, of which the report that has `begun` is not ended."""

    first: int
    last: int
    above: str = ""
    runs_tests: bool = False
    reports: list[range] = field(default_factory=list)
    begun: int | None = None
    below: int = 0

    def see(self, i: int, line: str) -> None:
        """Take in its `line` with the index `i`."""
        if self.below:
            self.below -= 1
            self.reports[-1] = range(self.reports[-1].start, i + 1)
        if self.begun is None and self.above == _DOUBLE and line.startswith(_HEADS):
            self._begin(self.last)
        elif line.startswith("===") and (begins := _is_rule(line)):
            self.runs_tests = True
            if self.begun is None and begins == "report":
                self._begin(i)
        elif self.begun is not None and line.startswith(_FIRST) and _ENDS.match(line):
            self.reports.append(range(self.begun, i + 1))
            self.begun = None
            self.below = MAX_BELOW if line.startswith("Ran ") else 0
        self.above, self.last = line, i

    def _begin(self, i: int) -> None:
        self.runs_tests, self.begun, self.below = True, i, 0


def _is_rule(line: str) -> str:
    """What a runner of tests begins with `line`: a "run" or a "report"; empty where it begins none."""
    return "report" if _BEGINS.match(line) else "run" if _STARTS.match(line) else ""


def names(who: Iterable[str]) -> Iterator[str]:
    """The writer of each line, by `who` printed it; empty where that tells no more than a rank, or nothing."""
    known: dict[str, str] = {"": ""}
    for each in who:
        if each not in known:
            found = _WRITER.match(each)
            known[each] = found[0] if found else ""
        yield known[each]


def apart(text: list[str], who: list[str]) -> list[list[str]]:
    """Those of the lines `text` that each writer printed, by `who` did, with those that nobody's name stands before.

    All of them where there is one writer, or where there are more than a few.
    """
    writers = list(names(who))
    found = list(dict.fromkeys(filter(None, writers)))
    if not 1 < len(found) <= MAX_WRITERS:
        return [text]
    return [[line for line, by in zip(text, writers, strict=True) if by in ("", name)] for name in found]


def put_together(text: list[str], who: list[str]) -> None:
    """Put the lines of `text` together that one writer printed, with those of `who`, where others stand within a report on tests.

    Where several run tests at once, all of theirs; else those of the report, so that a server's error stays in the test that ran then.
    A line without a name stays below the one that it follows.
    """
    writers = list(names(who))
    if len(set(writers) - {""}) < 2:
        return
    found: dict[str, _Writer] = {}
    others: list[int] = []
    for i, (line, name) in enumerate(zip(text, writers, strict=True)):
        if name:
            found.setdefault(name, _Writer(i, i)).see(i, line)
        elif line.startswith("===") and (line == _DOUBLE or _is_rule(line)):
            others.append(i)
    end = max(each.last for each in found.values()) + 1
    for lines, above in _places([each for each in found.values() if each.runs_tests], end):
        # who has no name runs tests there, too
        if bisect_left(others, lines.start) == bisect_left(others, lines.stop):
            order = _order(lines, writers, found, above=above)
            text[lines.start : lines.stop] = [text[i] for i in order]
            who[lines.start : lines.stop] = [who[i] for i in order]


def _places(testers: list[_Writer], end: int) -> Iterator[tuple[range, bool]]:
    """Where the lines of each of the `testers`, who run tests, belong together, and whether what others print there goes above these.

    Above, where several run tests at once, and where a report does not end: that goes on to the `end` of what has writers.
    """
    at = 0
    while at < len(testers):
        # those that begin before all above them have ended
        first, last, start = testers[at], testers[at].last, at
        is_open = first.begun is not None
        at += 1
        while at < len(testers) and testers[at].first < last:
            last = max(last, testers[at].last)
            is_open = is_open or testers[at].begun is not None
            at += 1
        if at - start > 1:
            yield range(first.first, end if is_open else last + 1), True
        else:
            yield from ((report, False) for report in first.reports)
            if first.begun is not None:
                yield range(first.begun, end), True
        if is_open:
            return


def _order(lines: range, writers: list[str], found: dict[str, _Writer], *, above: bool) -> list[int]:
    """The indices of `lines` in a new order: those of a writer whose report does not end come last, lest it goes on in another's."""
    groups: dict[str, list[int]] = {}
    name = ""
    for i in lines:
        name = writers[i] or name
        groups.setdefault(name, []).append(i)

    def rank(name: str) -> int:
        writer = found[name]
        if not writer.runs_tests:
            return 0 if above else 2
        return 1 if writer.begun is None else 3

    return [i for each in sorted(groups, key=rank) for i in groups[each]]
