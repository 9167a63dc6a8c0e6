"""What a request holds of one failing test."""

from __future__ import annotations

import pytest

from bot.action.ci.failing_test import Failure, Seen
from bot.action.gate.requests import of_failure
from tests.action.gate.memory import settings


@pytest.mark.parametrize(("signal", "known"), [(None, False), ("SIGSEGV", True)])
def test_a_death_of_which_nobody_knows_the_cause_is_not_what_ci_showed(signal: str | None, known: bool) -> None:
    """The signal that the test dies of here would be another failure than the one that CI is said to have shown: SIGKILL, a guess."""
    failure = Failure("test_a", "tests/test_a.py::test_a", "", signal=signal, seen=Seen.DEATH)
    made = of_failure(failure, settings())
    assert (made["shown"] is not None) is known
    assert (made["expected"] is not None and "SIGSEGV" in made["expected"]) is known


@pytest.mark.parametrize(
    ("test", "named"),
    [("python/test_a.py::t", "test_a.py::t"), ("python/-pno.py::t", "./-pno.py::t"), ("python/@options.py::t", "./@options.py::t")],
)
def test_an_id_is_no_option_in_a_directory_either(test: str, named: str) -> None:
    made = of_failure(Failure("t", test, ""), settings(working_directory="python"))
    assert (made["command"], made["directory"]) == (f"pytest {named}", "python")
