"""What tests printed, and what is shown of them, that passed, where the log ends before it says how many did."""

from __future__ import annotations

import time

import pytest

from bot.action.ci import candidates
from bot.action.ci.paths import CheckoutPaths

PRINTED = """\
Traceback (most recent call last):
  File "/w/tests/test_a.py", line 7, in test_a
    f(x)
  File "/w/site-packages/torch/_inductor/lowering.py", line 8, in made_up
    return g(x)
torch._inductor.exc.InductorError: LoweringException: AssertionError: made up
"""
NEXT = "tests/test_a.py::test_b "


def named(log: str) -> list[str | None]:
    return [row["test"] for row in candidates.rows(log, CheckoutPaths([])) if row["verdict"] != "not a candidate"]


@pytest.mark.parametrize("begun", ["tests/test_a.py::test_a ", "tests/test_a.py::test_a \n", "tests/test_a.py::test_a[made up] made up\n"])
@pytest.mark.parametrize(
    "end",
    [
        *(
            "PASSED",
            "PASSED                                   [ 50%]",
            "XFAIL (made up) [ 50%]",
            "SKIPPED (made up)",
            "PASSED [1.5s] [ 5%]",
        ),
        *("SKIPPED (made (up) x) (y)", "PASSED [0.1s] (made up) [ 5%]"),
    ],
)
def test_a_test_that_passed_afterwards(begun: str, end: str) -> None:
    assert named(f"{begun}{PRINTED}{end}\n{NEXT}") == []


@pytest.mark.parametrize("end", ["", "FAILED\n", "PASSED it on\n", f"{NEXT}PASSED\n", f"{NEXT}\nPASSED\n"])
def test_a_test_that_did_not(end: str) -> None:
    assert named(f"tests/test_a.py::test_a {PRINTED}{end}") == ["tests/test_a.py::test_a"]


def test_a_line_that_only_begins_as_such_an_end_is_read_in_time() -> None:
    """A test may print it, and the gate reads the log."""
    began = time.process_time()
    assert named(f"tests/test_a.py::test_a \n{PRINTED}PASSED{' ()' * 400} made up\n") == ["tests/test_a.py::test_a"]
    assert time.process_time() - began < 5


def test_what_is_shown_of_those_that_passed() -> None:
    shown = f"____________ test_a ____________\n------- Captured stdout call -------\n{PRINTED}"
    assert named(f"=========== PASSES ===========\n{shown}") == []
    assert named(f"=========== PASSES ===========\n{shown}=========== made up ==========\n{PRINTED}") == ["tests/test_a.py::test_a"]


@pytest.mark.parametrize(
    ("summary", "expected"),
    [
        ("PASSED tests/test_a.py::test_compiled", []),
        ("XFAIL tests/test_a.py::test_compiled - made up", []),
        ("PASSED tests/test_a.py::TestA::test_compiled", ["test_compiled"]),
        ("PASSED tests/test_a.py::test_compiled\nFAILED tests/test_a.py::test_compiled - made up", ["tests/test_a.py::test_compiled"]),
    ],
)
def test_what_is_shown_below_a_title_that_is_cut_off(summary: str, expected: list[str]) -> None:
    shown = "made up\n____________ test_compiled ____________\n------- Captured stdout call -------\nmade up\n"
    assert named(f"{shown}=========== short test summary info ===========\n{summary}\n") == expected
