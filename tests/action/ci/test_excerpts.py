"""Excerpts of logs of which the words around, a title or a name above them, tell the rest."""

from __future__ import annotations

import pytest

from bot.action.ci import candidates
from bot.action.ci.paths import CheckoutPaths

PROGRAM = """\
Traceback (most recent call last):
  File "/w/train.py", line 41, in <module>
    main(config)
"""
LOWERING = """\
  File "/w/train.py", line 41, in f
    g(x)
  File "/w/lib/python3.12/site-packages/torch/_inductor/lowering.py", line 2020, in made_up
    return lowered(x)
"""


def verdicts(log: str) -> list[str | None]:
    return [row["verdict"] for row in candidates.rows(log, CheckoutPaths([])) if row["verdict"] != "not a candidate"]


@pytest.mark.parametrize(
    ("title", "expected"),
    [
        ("# [Bug]: torch._dynamo.exc.Unsupported: Made up", ["possible"]),
        ("# [made][up] `BackendCompilerFailed`: backend='made_up' raised", ["possible"]),
        ("# [made][up] torch._dynamo.exc.InternalTorchDynamoError: name 'made' is not defined", ["possible"]),
        ("# [Bug]: torch._dynamo.exc.Unsupported: Made up is fixed", []),
        ("# [Bug]: torch._dynamo.exc.Unsupported with a made-up model", ["possible"]),
        ("# `torch._dynamo.exc.Unsupported` when it is made up", ["possible"]),
        ("# torch._dynamo.exc.Unsupported should be made up", []),
        ("# torch._dynamo.exc.Unsupported in a made-up model is fixed", []),
        ("# torch._dynamo.exc.Unsupported: its message should be made up", []),
        ("# Made up torch._dynamo.exc.Unsupported", []),
        ("It is about torch._dynamo.exc.Unsupported: made up", []),
    ],
)
def test_a_title_that_begins_with_what_was_raised(title: str, expected: list[str]) -> None:
    assert verdicts(f"{title}\n\n```\n+ python train.py\n{PROGRAM}```\n") == expected
    assert verdicts(f"# A title\n\n{title}\n\n```\n{PROGRAM}```\n") == []
    # what was raised is there
    assert verdicts(f"{title}\n\n```\n{PROGRAM}KeyError: 1\n```\n") == []


def test_the_program_of_a_traceback_of_which_the_title_tells() -> None:
    log = f"# torch._dynamo.exc.Unsupported: Made up\n\n```\n+ python train.py\n{PROGRAM}```\n"
    assert [row["command"] for row in candidates.rows(log, CheckoutPaths([]))] == ["python train.py"]


def test_a_title_tells_what_the_process_raised_that_another_one_quotes() -> None:
    quoted = f"RuntimeError: Process 0 exited with error code 10 and exception:\n{PROGRAM}"
    log = f"{{}}\n\n```\n{PROGRAM}{quoted}```\n"
    assert verdicts(log.format("# torch._dynamo.exc.Unsupported: Made up")) == ["possible"]
    assert verdicts(log.format("# KeyError: Made up")) == []


@pytest.mark.parametrize(
    ("line", "name"),
    [
        ("test_made_up[1-a/b] ", "test_made_up[1-a/b]"),
        ("test_made_up", "test_made_up"),
        ("test_made_up is wrong", None),
        ("made_up", None),
    ],
)
def test_the_name_above_an_excerpt_of_what_pytest_shows(line: str, name: str | None) -> None:
    log = ">   raise made_up\nE   torch._dynamo.exc.Unsupported: made up\nE     Explanation: Dynamo is made up\n"
    assert [row["test"] for row in candidates.rows(f"1. It fails\n```\n\n{line}\n{log}```\n", CheckoutPaths([]))] == [name]


@pytest.mark.parametrize(("end", "expected"), [("FAILED (failures=1)", ["suggested"]), ("OK", [])])
def test_an_excerpt_of_what_unittest_shows_begins_below_the_name_of_the_test(end: str, expected: list[str]) -> None:
    again = "To execute this test, run the following from the base repo dir:\n    python test/a.py T.test_b_x:2_y-z\n"
    log = f"{LOWERING}torch._inductor.exc.InductorError: made up\n\n{again}\n{'-' * 70}\nRan 18 tests in 4.967s\n\n{end}\n"
    assert verdicts(log) == expected
    tests = ["test/a.py::T::test_b_x:2_y-z"] if expected else []
    assert [row["test"] for row in candidates.rows(log, CheckoutPaths([]))] == tests
