"""The failing tests that unittest shows in a log, and those that other runners of its tests do."""

from __future__ import annotations

import pytest

from bot.action.ci import candidates, unittest_log
from bot.action.ci.paths import CheckoutPaths

FRAMES = '  File "/w/tests/test_a.py", line 3, in test_b\n    f(x)\n'
RAISED = "torch._dynamo.exc.Unsupported: made up\n\n"
OTHER = "AssertionError: 1 != 2\n\n"
TESTTOOLS = f"{'=' * 70}\n{{how}}: {{name}}\n{'-' * 70}\nTraceback (most recent call last):\n{FRAMES}{{raised}}"
GREEN = f"{{how}} in {{name}}\n{FRAMES}{{raised}}"


@pytest.mark.parametrize(("form", "error", "fail"), [(TESTTOOLS, "ERROR", "FAIL"), (GREEN, "Error", "Failure")])
@pytest.mark.parametrize("case", ["", " (n=1, what='a b')"])
def test_a_test_by_its_dotted_name(form: str, error: str, fail: str, case: str) -> None:
    shown = form.format(how=error, name=f"tests.test_a.TestA.test_b{case}", raised=RAISED)
    log = f"{shown}{form.format(how=fail, name='tests.test_a.TestB.test_b', raised=OTHER)}\nRan 2 tests in 1.234s\n"
    found = candidates.rows(log, CheckoutPaths([]))
    assert [(row["test"], row["verdict"]) for row in found] == [
        ("tests/test_a.py::TestA::test_b", "suggested"),
        ("tests/test_a.py::TestB::test_b", "not a candidate"),
    ]
    assert "Unsupported: made up" in str(found[0]["why"])


@pytest.mark.parametrize("line", ["Error in made.up", "Error in tests.test_a.TestA.test_b: it is made up", "ERROR: made.up.test_a"])
def test_words_about_an_error(line: str) -> None:
    assert list(unittest_log.failures([line, "it goes on"])) == []


@pytest.mark.parametrize(
    ("line", "test"),
    [
        ("test_b_cpu (__main__.TestA) ... ", "TestA::test_b_cpu"),
        ("test_b_cpu (__main__.TestA.test_b_cpu) ... a/made_up.py:265: UserWarning: it is made up", "TestA::test_b_cpu"),
        ("test_b (tests.test_a.TestA) ...", "tests/test_a.py::TestA::test_b"),
        ("test_b (tests.test_a.TestA) ... skipped 'made up'", ""),
        ("test_b (tests.test_a.TestA) ... ok", ""),
        ("test_b (made up) ... it", ""),
        ("test_b (TestA) ... it", ""),
    ],
)
def test_what_was_printed_while_a_test_ran(line: str, test: str) -> None:
    assert unittest_log.running(line) == test
    cut = (
        f'Traceback (most recent call last):\n{FRAMES.replace("test_", "")}  File "/w/torch/_inductor/graph.py", line 314, in f\n    g()\n'
    )
    found = candidates.rows(f"{line}\n[2023-01-21 22:52:53,752] torch._inductor.graph: [ERROR] made up\n{cut}", CheckoutPaths([]))
    assert [row["test"] or "" for row in found] == [test]
