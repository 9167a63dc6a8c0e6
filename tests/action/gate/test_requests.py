"""What a request holds of one failing test."""

from __future__ import annotations

import pytest

from bot.action.ci.failing_test import Failure, Seen
from bot.action.ci.groups import group
from bot.action.ci.judge import fault, sign
from bot.action.gate.requests import of_failure, program_of, rows
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


@pytest.mark.parametrize(
    ("test", "located", "named"),
    [
        ("packages/core/tests/test_a.py::t", True, "pytest tests/test_a.py::t"),
        ("packages/other/tests/test_a.py::t", True, "pytest ../other/tests/test_a.py::t"),
        ("tests/test_a.py::t", True, "pytest ../../tests/test_a.py::t"),
        # nobody knows from where it counts
        ("tests/test_a.py::t", False, "pytest tests/test_a.py::t"),
    ],
)
def test_a_test_is_named_from_where_it_runs(test: str, *, located: bool, named: str) -> None:
    made = of_failure(Failure("t", test, "", located=located), settings(working_directory="packages/core"))
    assert (made["command"], made["directory"]) == (named, "packages/core")


def test_a_test_that_a_person_names_counts_from_the_checkout_too() -> None:
    given = settings(working_directory="packages", test_command="cd core && pytest {nodeid}")
    for test in ("packages/core/tests/test_a.py::t", "tests/test_a.py::t"):
        assert program_of(test, given)["command"] == "pytest tests/test_a.py::t"
    assert program_of("packages/core/-x.py::t", given)["command"] == "pytest ./-x.py::t"


def test_of_a_process_that_died_no_signal_is_told() -> None:
    failure = Failure("t", "tests/test_a.py::t", "", seen=Seen.DEATH, note="the process died while it ran the test")
    (cause,) = rows(group([failure], None, sign, fault), [])
    assert "SIG" not in cause.failure
    assert cause.failure == failure.note
