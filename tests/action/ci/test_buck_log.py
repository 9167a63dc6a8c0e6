"""The failing tests that Buck names in a log."""

from __future__ import annotations

import pytest

from bot.action.ci import buck_log, lines
from bot.action.ci.failing_test import Failure, Seen
from bot.action.ci.tracebacks import Printed

RAISED = 'Traceback (most recent call last):\n  File "/w/a.py", line 3, in f\n    g()\nValueError: made up'
TARGET = "made/test/inductor:made_up"
METHOD = f"{TARGET} - test_b (made.test.inductor.test_a.TestA)"
TEST = "made/test/inductor/test_a.py::TestA::test_b"


def failures(log: str) -> list[Failure]:
    read = lines.read(log)
    return list(buck_log.failures(read.text, Printed(read)))


@pytest.mark.parametrize(
    ("said", "name", "test"),
    [
        (METHOD, "TestA.test_b", TEST),
        (f"made//{METHOD}", "TestA.test_b", TEST),
        (f"{TARGET} - test_\u00e9 (made.test_a.Test\u00c4)", "Test\u00c4.test_\u00e9", "made/test_a.py::Test\u00c4::test_\u00e9"),
        (
            f"{TARGET} - test_a.py::TestA::test_b[a (b) - c::d]",
            "TestA.test_b[a (b) - c.d]",
            "made/test/inductor/test_a.py::TestA::test_b[a (b) - c::d]",
        ),
        (f"{TARGET} - sub/test_a.py::test_b", "test_b", "made/test/inductor/sub/test_a.py::test_b"),
    ],
)
@pytest.mark.parametrize("duration", ["41.5s", "12ms", "1:03.4s", "2:01:03.4s"])
def test_how_a_test_is_named(said: str, name: str, test: str, duration: str) -> None:
    log = f"\u2717 Fail: {said} ({duration})\nmade up\n{RAISED}\n"
    assert failures(log) == [Failure(name, test, RAISED)]
    stamped = "".join(f"2026-07-30T10:37:27.7633921Z \x1b[31m{line}\x1b[0m\r\n" for line in log.splitlines())
    assert failures(stamped) == failures(log)


@pytest.mark.parametrize(
    ("mark", "expected"),
    [
        ("\u2717 Fail", (Seen.ERROR, RAISED)),
        ("\u2717 Fatal", (Seen.ERROR, RAISED)),
        ("\u26a0 Fatal", (Seen.ERROR, RAISED)),
        ("\u2717 Timeout", (Seen.TIMEOUT, "")),
        ("\u2709 Timeout", (Seen.TIMEOUT, "")),
    ],
)
def test_the_marks_of_a_test_that_failed(mark: str, expected: tuple[Seen, str]) -> None:
    (found,) = failures(f"{mark}: {METHOD} (600.0s)\n{RAISED}\n")
    assert (found.test, found.seen, found.text) == (TEST, *expected)


@pytest.mark.parametrize(
    "line",
    [
        f"\u2713 Pass: {METHOD} (1.0s)",
        f"\u21b7 Skip: {METHOD} (1.0s)",
        f"\u21bb Rerun: {METHOD} (1.0s)",
        f"\u26a0 Listing failed: {TARGET}",
        f"\u2717 Fail: {TARGET} - main (1.0s)",
        f"it says \u2717 Fail: {METHOD} (1.0s)",
    ],
)
def test_what_names_no_test_that_failed(line: str) -> None:
    assert failures(f"{line}\n{RAISED}\n") == []


@pytest.mark.parametrize(
    "ends", ["\u2713 Pass: x", "\u21bb Rerun: x", "\u2709 Timeout: x", "Tests finished: Pass 1. Fail 1", "Buck UI: x", "BUILD FAILED"]
)
def test_what_stands_below_the_next_line_of_bucks_is_not_the_tests(ends: str) -> None:
    last = RAISED.replace("made up", "the last")
    other = RAISED.replace("made up", "of another")
    (found,) = failures(f"{other}\n\n\u2717 Fail: {METHOD} (1.0s)\n{RAISED}\n\n{last}\n{ends}\n{other}\n")
    assert found.text.startswith(last)
    (named,) = failures(f"{other}\n\n\u2717 Fail: {METHOD} (1.0s)\n{ends}\n{other}\n")
    assert (named.seen, named.text) == (Seen.NAMED, "")
