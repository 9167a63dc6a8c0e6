"""What the child of a test raised."""

from __future__ import annotations

import pytest

from bot.action.ci import lines
from bot.action.ci.children import FailedChildren, running
from bot.action.ci.failing_test import Failure, Seen
from bot.action.ci.pytest_log import PytestLog
from bot.action.ci.tracebacks import Printed

OWN = """\
Traceback (most recent call last):
  File "/x/site-packages/torch/_inductor/graph.py", line 3, in f
    g()
torch._inductor.exc.InductorError: LoweringException: AssertionError: made up"""
OTHER = 'Traceback (most recent call last):\n  File "/w/a.py", line 3, in f\n    g()\nKeyError: made up'
FULL = 'Traceback (most recent call last):\n  File "/w/a.py", line 3, in f\n    g()\ntorch.OutOfMemoryError: CUDA out of memory.'
FAILED = "subprocess.CalledProcessError: Command 'made up' returned non-zero exit status 1."
BLAMES = f'Traceback (most recent call last):\n  File "/w/a.py", line 3, in f\n    run()\n{FAILED}'
STARTS = "=========== test session starts ===========\n"
SUMMARY = "=========== short test summary info ===========\n"


def section(name: str, said: str = FAILED, below: str = "") -> str:
    shown = f"    def {name}():\n>       run()\nE       {said}\n\ntests/test_a.py:7: CalledProcessError\n"
    return f"____________ {name} ____________\n\n{shown}{below}"


class Read:
    """A log, and what is known of the children of its tests."""

    def __init__(self, log: str) -> None:
        read = lines.read(log)
        self.pytest = PytestLog(read.text)
        self.children = FailedChildren(read, Printed(read), self.pytest)

    def causes(self) -> list[tuple[str, Seen, str]]:
        """The last line of each test that pytest shows, with what its child raised."""
        found = [self.children.cause(where, shown, self.children.unnamed) for where, shown in self.pytest.shown]
        return [(each.name, each.seen, each.text.strip().partition("\n\n")[0].rpartition("\n")[2]) for each in found]


RAISED = OWN.rpartition("\n")[2]


@pytest.mark.parametrize(
    ("line", "test"),
    [
        ("tests/test_a.py::TestA::test_b[a::b-c] ", "tests/test_a.py::TestA::test_b[a::b-c]"),
        ("test_b (tests.test_a.TestA.test_b) ... ", "tests/test_a.py::TestA::test_b"),
        ("test_b (tests.test_a.TestA.test_b) ... ok", ""),
        ("made up", ""),
    ],
)
def test_the_test_that_is_about_to_run(line: str, test: str) -> None:
    assert running(line) == test


@pytest.mark.parametrize("stamp", ["", "2026-07-30T10:37:27.7633921Z "])
def test_a_child_of_a_test_that_the_log_names_as_it_ran(stamp: str) -> None:
    log = (
        f"{STARTS}tests/test_a.py::test_b \n{OTHER}\n\nFAILED\ntests/test_a.py::test_c \n{OWN}\n\nFAILED\n"
        f"=========== FAILURES ===========\n{section('test_c')}{SUMMARY}FAILED tests/test_a.py::test_c - made up\n"
    )
    stamped = "".join(f"{stamp}{line}\r\n" for line in log.splitlines())
    assert Read(stamped).causes() == [("test_c", Seen.ERROR, RAISED)]


def test_what_was_captured_counts_before_what_was_printed() -> None:
    captured = f"----------- Captured stderr call -----------\n{OWN.replace('made up', 'captured')}\n"
    log = f"{STARTS}tests/test_a.py::test_b \n{OWN}\n\nFAILED\n=========== FAILURES ===========\n{section('test_b', below=captured)}"
    assert Read(log).causes() == [("test_b", Seen.ERROR, RAISED.replace("made up", "captured"))]


def test_a_test_that_raised_something_itself_keeps_it() -> None:
    log = f"{STARTS}{OWN}\n\n=========== FAILURES ===========\n{section('test_b', 'ValueError: of its own')}"
    assert Read(log).causes() == [("test_b", Seen.ERROR, "ValueError: of its own")]


def test_the_compilers_error_counts_before_what_came_later() -> None:
    """Of several children, and of what only says that another one failed."""
    log = f"{STARTS}{OWN}\n\n{OTHER}\n\n{BLAMES}\n\n=========== FAILURES ===========\n{section('test_b')}"
    assert Read(log).causes() == [("test_b", Seen.ERROR, RAISED)]
    log = f"{STARTS}{OTHER}\n\n{BLAMES}\n\n=========== FAILURES ===========\n{section('test_b')}"
    assert Read(log).causes() == [("test_b", Seen.ERROR, "KeyError: made up")]


@pytest.mark.parametrize(
    ("printed", "seen", "last"),
    [
        (f"{OWN}\n\n{BLAMES}\n", Seen.LOGGED, RAISED),
        (f"{FULL}\n\n{FULL}\n", Seen.ERROR, FULL.rpartition("\n")[2]),
        (f"{OWN}\n\n{OTHER}\n", Seen.ERROR, BLAMES.rpartition("\n")[2]),
        ("made up\n", Seen.ERROR, BLAMES.rpartition("\n")[2]),
    ],
)
def test_several_tests_whose_children_failed(printed: str, seen: Seen, last: str) -> None:
    """Nobody knows whose child printed what: they share it where it is all the compiler's, or the machine's."""
    log = f"{STARTS}{printed}\n=========== FAILURES ===========\n{section('test_b')}{section('test_c')}"
    assert Read(log).causes() == [("test_b", seen, last), ("test_c", seen, last)]


def test_what_an_earlier_run_printed_is_not_the_childs() -> None:
    log = f"{STARTS}{OWN}\n\n======= 8 passed in 3.21s =======\n{STARTS}\n=========== FAILURES ===========\n{section('test_b')}"
    assert Read(log).causes() == [("test_b", Seen.ERROR, BLAMES.rpartition("\n")[2])]


def test_a_test_that_is_named_alone() -> None:
    named = Failure("test_b", "tests/test_a.py::test_b", "", seen=Seen.NAMED)
    log = f"{STARTS}tests/test_a.py::test_b \n{{}}\n\ntests/test_a.py::test_c \n{SUMMARY}FAILED tests/test_a.py::test_b\n"
    told = Read(log.format(OWN)).children.told(named)
    assert (told.seen, told.text.startswith(OWN), told.test) == (Seen.ERROR, True, named.test)
    # another error may have been caught, and what is counted is none
    assert Read(log.format(OTHER)).children.told(named) == named
    counted = Failure("test_b", "tests/test_a.py::test_b", "", seen=Seen.COUNT)
    assert Read(log.format(OWN)).children.told(counted) == counted


PRINTED = f"{OWN}\n\n"


def workers(last: str, *others: str) -> str:
    """What pytest-xdist writes of two workers whose tests run at once; the last one announced fails, and `others` are printed."""
    begun = f"{STARTS}tests/test_a.py::test_first \ntests/test_b.py::{last} \n"
    return f"{begun}{''.join(others)}[gw0] [ 50%] PASSED tests/test_a.py::test_first \n[gw1] [100%] FAILED tests/test_b.py::{last} \n"


@pytest.mark.parametrize(
    ("printed", "seen", "last"),
    [
        ((PRINTED,), Seen.LOGGED, RAISED),
        ((PRINTED, f"{OTHER}\n\n"), Seen.ERROR, FAILED),
        ((f"{FULL}\n\n",), Seen.ERROR, FULL.rpartition("\n")[2]),
        ((f"{OTHER}\n\n",), Seen.ERROR, FAILED),
    ],
)
def test_nobody_knows_whose_child_printed_what_where_tests_run_at_once(printed: tuple[str, ...], seen: Seen, last: str) -> None:
    log = f"{workers('test_b', *printed)}=========== FAILURES ===========\n{section('test_b')}{SUMMARY}"
    assert Read(log).causes() == [("test_b", seen, last)]


def test_a_test_that_is_named_alone_where_tests_run_at_once() -> None:
    log = f"{workers('test_b', PRINTED)}{SUMMARY}FAILED tests/test_b.py::test_b"
    named = Failure("test_b", "tests/test_b.py::test_b", "", seen=Seen.NAMED)
    assert Read(log).children.told(named) == named
    blaming = Failure("test_b", "tests/test_b.py::test_b", BLAMES)
    told = Read(f"{log} - {FAILED}\n").children.told(blaming)
    assert (told.seen, told.text.startswith(OWN), bool(told.note)) == (Seen.LOGGED, True, True)


def test_one_worker_runs_one_test_at_a_time() -> None:
    log = f"{workers('test_b', PRINTED).replace('[gw1]', '[gw0]')}=========== FAILURES ===========\n{section('test_b')}{SUMMARY}"
    assert Read(log).causes() == [("test_b", Seen.ERROR, RAISED)]


def test_tests_that_ran_one_by_one_above_others() -> None:
    above = f"{STARTS}tests/test_a.py::test_c \n{PRINTED}FAILED\n=========== FAILURES ===========\n{section('test_c')}{SUMMARY}"
    log = f"{above}FAILED tests/test_a.py::test_c - made up\n{workers('test_b', PRINTED)}"
    assert Read(log).causes() == [("test_c", Seen.ERROR, RAISED)]
