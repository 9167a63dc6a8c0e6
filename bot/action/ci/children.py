"""What the child of a test raised, where the test's own process only says that another one failed."""

from __future__ import annotations

import bisect
import re
from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property

from bot.action.ci import lines, pytest_log, unittest_log
from bot.action.ci.cut_off import is_of_compiler
from bot.action.ci.failing_test import Failure, Seen
from bot.action.ci.judge import told_fault
from bot.action.ci.lines import LOGGED, Lines
from bot.action.ci.pytest_log import PytestLog, ShownFailure
from bot.action.ci.tracebacks import Printed, PrintedTraceback, is_elsewhere, tracebacks
from bot.failure.traceback import exceptions

MAX_CHILDREN = 20

# How the end of a run of tests says that some passed.
TESTED = re.compile(r"(?:={2,} .{0,200}\b)?\d{1,9} passed.{0,200} in \d|Ran \d{1,9} tests? in \d|ok \(\d{1,9}\.\d{1,9}s\)$")
_STARTS = re.compile(r"={2,} test session starts ={2,}$")
_DIGITS = "123456789"
# How pytest-xdist says which of its workers ran a test, behind it.
_WORKER = re.compile(r"\[(?P<name>gw\d{1,4})\] (?:\[ {0,2}\d{1,3}%\] )?(?:PASSED|FAILED|ERROR|SKIPPED|XFAIL|XPASS|RERUN) ")
_ONE_OF_SEVERAL = "another process failed, and what was printed before is the compiler's"


def running(line: str) -> str:
    """The id of the test that pytest, or unittest, was about to run by `line`; empty where there is none."""
    return pytest_log.running(line) or unittest_log.running(line)


def _raised(block: PrintedTraceback) -> str:
    """What was raised last in `block`, in one line: what stands below may be another's."""
    last = next(iter(exceptions(block.text)), None)
    return f"{last.name}: {last.message.partition(chr(10))[0]}" if last else ""


def _blames(block: PrintedTraceback) -> bool:
    """Whether the process that printed `block` said no more than that another one failed."""
    return is_elsewhere(_raised(block))


def _is_broken(block: PrintedTraceback) -> bool:
    """Whether the process that printed `block` died of a fault of the machine."""
    return told_fault(_raised(block)) is not None


class FailedChildren:
    """The tracebacks that were `printed` by the children of tests, in the log `read`, of which `pytest` tells."""

    def __init__(self, read: Lines, printed: Printed, pytest: PytestLog) -> None:
        self._text = read.text
        self._printed = printed
        self._pytest = pytest
        self._judged: dict[int, bool] = {}

    def at_once(self, line: int) -> bool:
        """Whether several workers ran tests at once in the run that the `line` with that index is of: what was printed there may be of a
        child of any of these, whichever was begun last."""
        return len(self._workers.get(bisect.bisect(self._starts, line), ())) > 1

    @cached_property
    def unnamed(self) -> Sequence[PrintedTraceback]:
        """What was printed before pytest's sections, where no test is named: by the child of the only one whose child failed."""
        return self._above if self._pytest.shown and self._blaming == 1 and not self.at_once(self._end) else ()

    @cached_property
    def _blaming(self) -> int:
        """How many of the tests that pytest shows, or names in its summary where it shows none, only say that another process failed."""
        shown = [each for _, each in self._pytest.shown] or self._pytest.summarized()
        return sum(is_elsewhere(each.text) for each in shown)

    @cached_property
    def _above(self) -> Sequence[PrintedTraceback]:
        """What was printed above what pytest says of these, in their run, where no test is named; an excerpt may begin within the run."""
        end = self._end
        text = self._text[:end]
        around = (i for i, line in enumerate(text) if line.startswith(("=", *_DIGITS)) and (_STARTS.match(line) or TESTED.match(line)))
        named = not self.at_once(end) and any(map(running, text))
        return () if named else self._printed.between(max(around, default=-1), end)

    @cached_property
    def _end(self) -> int:
        """Where pytest begins to say what failed."""
        return self._pytest.shown[0][0].start if self._pytest.shown else self._pytest.summary_at

    @cached_property
    def _starts(self) -> list[int]:
        return [i for i, line in enumerate(self._text) if line.startswith("==") and _STARTS.match(line)]

    @cached_property
    def _workers(self) -> dict[int, set[str]]:
        """The workers of each run of pytest, by the number of its line in `_starts`."""
        found: dict[int, set[str]] = {}
        for i, line in enumerate(self._text):
            if line.startswith("[gw") and (worker := _WORKER.match(line)):
                found.setdefault(bisect.bisect(self._starts, i), set()).add(worker["name"])
        return found

    @cached_property
    def _one_of_several(self) -> tuple[PrintedTraceback, bool] | None:
        """What the last child of several tests raised, and whether that is the compiler's: where all that was printed above is, or tells
        of faults of the machine; None where it is neither. Of tests that ran at once, one may be the only one that says so."""
        several = self._blaming > 1 or self.at_once(self._end)
        printed = [block for block in self._above[-MAX_CHILDREN:] if not _blames(block)] if several else []
        compiled = all(map(self._is_of_compiler, printed))
        return (printed[-1], compiled) if printed and (compiled or all(map(_is_broken, printed))) else None

    def _shared(self, failed: Failure) -> Failure:
        """One of several tests whose children `failed`, with the error of one of these."""
        if not is_elsewhere(failed.text) or self._one_of_several is None:
            return failed
        child, compiled = self._one_of_several
        shared = replace(failed, text=child.text, seen=Seen.ERROR)
        return replace(shared, seen=Seen.LOGGED, note=_ONE_OF_SEVERAL) if compiled else shared

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
        return replace(shown, text=child.text) if child else self._shared(shown)

    def told(self, named: Failure) -> Failure:
        """A `named` test of which the log tells no more than that it failed, or its child, with the compiler's error that was printed as
        it ran; that of the child's machine, too."""
        if named.seen is Seen.COUNT or (named.text and not is_elsewhere(named.text)):
            return named
        printed = self._printed_by.get(named.test, ())
        alone = named.text and not printed and not self._pytest.shown and self._blaming == 1 and not self.at_once(self._end)
        children = [block for block in (self._above[-MAX_CHILDREN:] if alone else printed) if not block.who.endswith(LOGGED)]
        child = next(filter(self._is_of_compiler, reversed(children)), None)
        child = child or (next(filter(_is_broken, reversed(children)), None) if named.text else None)
        return replace(named, text=child.text, seen=Seen.ERROR) if child else self._shared(named) if named.text else named

    @cached_property
    def _printed_by(self) -> dict[str, Sequence[PrintedTraceback]]:
        """The last tracebacks that were printed while pytest ran each test; none where it ran several at once."""
        found: dict[str, Sequence[PrintedTraceback]] = {}
        ran, at = "", 0
        for block in self._printed.all:
            while at <= block.start:
                ran = running(self._text[at]) or ran
                at += 1
            if not self.at_once(block.start):
                found[ran] = [*found.get(ran, ())[-MAX_CHILDREN:], block]
        return found

    def _is_of_compiler(self, block: PrintedTraceback) -> bool:
        if block.start not in self._judged:
            self._judged[block.start] = is_of_compiler(block)
        return self._judged[block.start]
