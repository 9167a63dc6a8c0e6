"""JUnit XML as writers other than pytest's own leave it."""

from __future__ import annotations

import time

import pytest

from bot.action.ci import archive, junit
from bot.action.ci.failing_test import Seen
from bot.action.ci.judge import sign
from tests.action.gate.memory import zipped


def report(case: str) -> bytes:
    return f"<testsuites><testsuite>{case}</testsuite></testsuites>".encode()


CASE = '<testcase classname="tests.test_a" name="test_b"><failure message="{}">{}</failure></testcase>'
ERROR = "torch._inductor.exc.InductorError: LoweringException: AssertionError: made up"


def test_a_report_in_a_zip_file_in_the_artifact() -> None:
    whole = report(CASE.format("", "made up"))
    assert len(junit.in_archive(zipped({"reports.zip": zipped({"a.xml": whole}), "b.xml": whole}))) == 2
    # no deeper: each would unpack to more
    assert junit.in_archive(zipped({"a.zip": zipped({"b.zip": zipped({"a.xml": whole})})})) == ()


def test_no_zip_file_takes_the_place_of_a_report(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archive, "MAX_FILES", 3)
    traces = {f"trace{number}.zip": zipped({"trace.txt": b"t"}) for number in range(9)}
    assert len(junit.in_archive(zipped({**traces, "junit.xml": report(CASE.format("", "made up"))}))) == 1


def test_a_name_of_any_length_is_read_in_time() -> None:
    """A few hundred bytes in an artifact took minutes, whatever the time for reading was."""
    named = report(CASE.format("", "made up").replace("test_b", "t" + " (" * 500_000))
    began = time.process_time()
    assert len(junit.in_archive(zipped({"junit.xml": named}))) == 1
    assert time.process_time() - began < 5


def test_what_is_read_of_zip_files_in_an_artifact_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    inner = zipped({f"{number}.xml": report(CASE.format("", "made up")) for number in range(5)})
    monkeypatch.setattr(archive, "MAX_FILES", 7)
    assert len(junit.in_archive(zipped({"a.zip": inner, "b.zip": inner}))) == 5
    monkeypatch.setattr(archive, "MAX_FILES", 99)
    monkeypatch.setattr(archive, "MAX_ALL", len(inner) + 400)
    assert len(junit.in_archive(zipped({"a.zip": inner, "b.zip": inner}))) == 2
    monkeypatch.setattr(archive, "MAX_ALL", 1 << 20)
    monkeypatch.setattr(archive, "MAX_PACKED", len(inner) + 10)
    assert len(junit.in_archive(zipped({"a.zip": inner, "b.zip": inner}))) == 5


@pytest.mark.parametrize(
    ("message", "said"), [(ERROR, "InductorError: LoweringException: AssertionError: made up"), ("assert 1 == 2", None)]
)
def test_an_error_without_its_traceback(message: str, said: str | None) -> None:
    """As pytest's `--tb=no` leaves it."""
    (failure,) = junit.failures(report(CASE.format(message, "")))
    signature = sign(failure)
    assert signature is not None
    if said:
        assert signature.line().endswith(said)
        assert signature.exception[0].endswith("InductorError")
    else:
        assert "InductorError" not in signature.line()


def test_a_worker_that_died() -> None:
    said = "worker 'gw0' crashed while running 'tests/test_a.py::test_b'"
    (failure,) = junit.failures(report(CASE.format(said, said)))
    assert (failure.test, failure.seen, failure.gone) == ("tests/test_a.py::test_b", Seen.DEATH, True)


def test_a_file_that_fails_as_it_is_imported() -> None:
    """As pytest leaves it, which gives such a case no class."""
    said = 'tests/test_a.py:2: in &lt;module&gt;\n    raise ValueError("made up")\nE   ValueError: made up'
    xml = report(f'<testcase classname="" name="tests.test_a"><error message="collection failure">{said}</error></testcase>')
    (failure,) = junit.failures(xml)
    assert (failure.name, failure.test) == ("tests/test_a.py", "tests/test_a.py")
    assert failure.text.endswith("ValueError: made up")
    (other,) = junit.failures(report('<testcase classname="" name="test_b"><error message="made up">made up</error></testcase>'))
    assert (other.name, other.test) == ("test_b", "")


@pytest.mark.parametrize(
    ("where", "name", "test"),
    [
        ("tests.test_a.TestA", "test_b (i=0)", "tests/test_a.py::TestA::test_b"),
        ("tests.test_a.TestA", "test_b [made up] (i=0)", "tests/test_a.py::TestA::test_b"),
        ("tests.test_a", "test_b[x (y)]", "tests/test_a.py::test_b[x (y)]"),
        ("", "setUpClass (tests.test_a.TestA)", "tests/test_a.py::TestA"),
    ],
)
def test_what_unittest_calls_a_part_of_a_test(where: str, name: str, test: str) -> None:
    """As unittest-xml-reporting leaves it."""
    (failure,) = junit.failures(report(f'<testcase classname="{where}" name="{name}"><error message="x">made up</error></testcase>'))
    assert failure.test == test


@pytest.mark.parametrize(
    ("where", "test"),
    [
        ("tests.test_a", "tests/test_a.py::test_b"),
        ("tests.test_a.TestA", "tests/test_a.py::TestA::test_b"),
        ("tests.test_a._TestA", "tests/test_a.py::_TestA::test_b"),
        ("Tests.Unit.test_a", "Tests/Unit/test_a.py::test_b"),
        ("Tests.a_test.TestA", "Tests/a_test.py::TestA::test_b"),
    ],
)
def test_a_directory_may_begin_with_a_capital(where: str, test: str) -> None:
    (failure,) = junit.failures(report(CASE.format("", "made up").replace("tests.test_a", where)))
    assert failure.test == test
