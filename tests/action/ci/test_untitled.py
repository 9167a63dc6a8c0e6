"""What pytest shows of a failure, in an excerpt that begins below its title."""

from __future__ import annotations

import pytest

from bot.action.ci.failing_test import Hint
from bot.action.ci.untitled import shown_in

LONG = """\
>       f(x)

tests/test_a.py:7:
_ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _ _

    def f(x):
>       raise ValueError("made up")
E       ValueError: made up

lib/b.py:3: ValueError"""
SHORT = """\
tests/test_a.py:7: in test_b
    f(x)
lib/b.py:3: in f
    raise ValueError("made up")
E   ValueError: made up"""
TRACEBACK = """\
Traceback (most recent call last):
  File "tests/test_a.py", line 7, in {}
  File "lib/b.py", line 3, in f
ValueError: made up"""


@pytest.mark.parametrize(("shown", "function"), [(LONG, "<unknown>"), (SHORT, "test_b")])
def test_the_file_of_the_test(shown: str, function: str) -> None:
    found = shown_in(shown.split("\n"))
    assert found is not None
    assert (found.name, found.test, found.script, found.text) == ("a test", "", "tests/test_a.py", TRACEBACK.format(function))


@pytest.mark.parametrize(
    ("above", "test"),
    [
        ("tests/test_a.py::TestA::test_b[a-b] FAILED", "tests/test_a.py::TestA::test_b[a-b]"),
        ("$ pytest -x tests/test_a.py::test_b", "tests/test_a.py::test_b"),
        ("$ pytest 'tests/test_a.py::test_b[a b - c]'", "tests/test_a.py::test_b[a b - c]"),
        ("`tests/test_a.py::TestA::test_b[x]`:", "tests/test_a.py::TestA::test_b[x]"),
        ("What `TestA::test_b` shows:", "TestA::test_b"),
        ("test_\u00e9", "test_\u00e9"),
        # two of them, or words
        ("tests/test_a.py::test_b FAILED\ntests/test_a.py::test_c FAILED", ""),
        ("$ pytest tests/test_a.py::test_b tests/test_a.py::test_c", ""),
        ("test_b is made up", ""),
    ],
)
def test_the_name_of_the_test(above: str, test: str) -> None:
    found = shown_in(f"{above}\n\n{LONG}".split("\n"))
    assert found is not None
    assert (found.test, found.name, found.script) == (test, test.partition("::")[2] or "a test", "" if test else "tests/test_a.py")


def test_the_command_that_selects_it() -> None:
    found = shown_in(f"$ TORCHINDUCTOR_X=1 pytest tests/test_a.py -k test_b\n{LONG}".split("\n"))
    assert found is not None
    assert (found.test, found.hint) == ("tests/test_a.py::test_b", Hint(("TORCHINDUCTOR_X=1",), "pytest tests/test_a.py -k test_b"))


@pytest.mark.parametrize("line", ["E: Unable to locate package", "made up", "", "E  made up"])
def test_what_pytest_did_not_show(line: str) -> None:
    assert shown_in([line]) is None


def test_a_chain_and_an_end_that_is_cut_off() -> None:
    chain = f"{SHORT}\n\nDuring handling of the above exception, another exception occurred:\n{SHORT.replace('made up', 'the last')}"
    found = shown_in(chain.split("\n"))
    assert found is not None
    one = TRACEBACK.format("test_b")
    assert (
        found.text
        == f"{one}\n\nDuring handling of the above exception, another exception occurred:\n\n{one.replace('made up', 'the last')}"
    )
    cut = shown_in(SHORT.split("\n")[:4])
    assert cut is not None
    assert cut.text == one.rpartition("\n")[0]
