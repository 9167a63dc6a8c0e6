"""What the child of a test raised, where the test's own process only says that another one failed."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import cached_property

from bot.action.ci import lines, pytest_log, unittest_log
from bot.action.ci.cut_off import is_of_compiler
from bot.action.ci.failing_test import Failure, Seen
from bot.action.ci.lines import LOGGED, Lines
from bot.action.ci.pytest_log import PytestLog, ShownFailure
from bot.action.ci.tracebacks import Printed, PrintedTraceback, is_elsewhere, tracebacks

MAX_CHILDREN = 20

# How the end of a run of tests says that some passed.
TESTED = re.compile(r"(?:={2,} .{0,200}\b)?\d{1,9} passed.{0,200} in \d|Ran \d{1,9} tests? in \d|ok \(\d{1,9}\.\d{1,9}s\)$")
_STARTS = re.compile(r"={2,} test session starts ={2,}$")
_DIGITS = "123456789"


def running(line: str) -> str:
    """The id of the test that pytest, or unittest, was about to run by `line`; empty where there is none."""
    return pytest_log.running(line) or unittest_log.running(line)


class Children:
    """The tracebacks that were `printed` by the children of tests, in the log `read`, of which `pytest` tells."""

    def __init__(self, read: Lines, printed: Printed, pytest: PytestLog) -> None:
        self._text = read.text
        self._printed = printed
        self._pytest = pytest
        self._judged: dict[int, bool] = {}

    @cached_property
    def unnamed(self) -> Sequence[PrintedTraceback]:
        """What was printed before pytest's sections, where no test is named: by the child of the only one whose child failed."""
        shown = self._pytest.shown
        return self._above(shown[0][0].start, (each for _, each in shown)) if shown else ()

    @cached_property
    def _unshown(self) -> Sequence[PrintedTraceback]:
        """The same, before pytest's summary, where it shows no sections."""
        return () if self._pytest.shown else self._above(self._pytest.summary_at, self._pytest.summarized())

    def _above(self, end: int, failed: Iterable[Failure]) -> Sequence[PrintedTraceback]:
        """What was printed above the line `end` by the child of the only one of the `failed` tests whose child failed, in their run: an
        excerpt may begin within it."""
        text = self._text[:end]
        around = (i for i, line in enumerate(text) if line.startswith(("=", *_DIGITS)) and (_STARTS.match(line) or TESTED.match(line)))
        alone = sum(is_elsewhere(each.text) for each in failed) == 1 and not any(map(running, text))
        return self._printed.between(max(around, default=-1), end) if alone else ()

    def cause(self, section: ShownFailure, shown: Failure, before: Sequence[PrintedTraceback] = ()) -> Failure:
        """A test that is `shown` in a `section`, whose process only says that its child failed, with the child's own error: quoted,
        captured below it, printed as it ran or `before`."""
        if not is_elsewhere(shown.text):
            return shown
        for block in reversed(tracebacks(lines.read(shown.text))[-MAX_CHILDREN:]):
            if is_of_compiler(block):
                return replace(shown, text=block.text)
        captured = [block for block in self._printed.between(section.start, section.end)[-MAX_CHILDREN:] if block.text not in shown.text]
        printed = captured or before[-MAX_CHILDREN:] or self._printed_by.get(shown.test, ())
        children = [block for block in reversed(printed) if block.start < section.end]
        child = next(filter(self._is_of_compiler, children), None) or next((each for each in children if not is_elsewhere(each.text)), None)
        return replace(shown, text=child.text) if child else shown

    def told(self, named: Failure) -> Failure:
        """A `named` test of which the log tells no more than that it failed, or its child, with the compiler's error that was printed as
        it ran."""
        if named.seen is Seen.COUNT or (named.text and not is_elsewhere(named.text)):
            return named
        printed = self._printed_by.get(named.test, ()) or (self._unshown[-MAX_CHILDREN:] if named.text else ())
        printed = [block for block in printed if not block.who.endswith(LOGGED)]
        child = next(filter(self._is_of_compiler, reversed(printed)), None)
        return replace(named, text=child.text, seen=Seen.ERROR) if child else named

    @cached_property
    def _printed_by(self) -> dict[str, Sequence[PrintedTraceback]]:
        """The last tracebacks that were printed while pytest ran each test."""
        found: dict[str, Sequence[PrintedTraceback]] = {}
        ran, at = "", 0
        for block in self._printed.all:
            while at <= block.start:
                ran = running(self._text[at]) or ran
                at += 1
            found[ran] = [*found.get(ran, ())[-MAX_CHILDREN:], block]
        return found

    def _is_of_compiler(self, block: PrintedTraceback) -> bool:
        if block.start not in self._judged:
            self._judged[block.start] = is_of_compiler(block)
        return self._judged[block.start]
