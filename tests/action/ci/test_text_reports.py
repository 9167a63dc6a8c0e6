"""Reports that are text: the parts of a job make one log, those of another job another one."""

from __future__ import annotations

import pytest

from bot.action.ci import logs, text_reports
from bot.action.ci.failing_test import Failure
from tests.action.gate.memory import zipped

RAISED = "torch._dynamo.exc.Unsupported"


def long(name: str, said: str = "made up") -> bytes:
    place = f"tests/models/test_made_up.py:7: {RAISED.rpartition('.')[2]}"
    return f"=== FAILURES ===\n___ TestMadeUp.{name} ___\n\n>       f()\nE       {RAISED}: {said}\n\n{place}\n".encode()


def summary(*names: str) -> bytes:
    lines = (f"FAILED tests/models/test_made_up.py::TestMadeUp::{name} - {RAISED}: made up\n" for name in names)
    return f"=== short test summary info ===\n{''.join(lines)}".encode()


def found(files: dict[str, bytes], job: str = "") -> list[Failure]:
    return list(text_reports.in_archive(zipped(files), job))


def ids(files: dict[str, bytes]) -> list[str]:
    return [failure.test for failure in found(files)]


TEST = "tests/models/test_made_up.py::TestMadeUp::test_it"


@pytest.mark.parametrize("before", ["", "reports/", "reports/tests_gpu_", "a/b/c/", "made\nup/"])
def test_the_parts_of_a_job(before: str) -> None:
    (failure,) = found({f"{before}failures_long.txt": long("test_it"), f"{before}summary_short.txt": summary("test_it")}, "made up")
    assert (failure.test, failure.job) == (TEST, "made up")
    assert failure.text.rstrip().endswith(f"{RAISED}: made up")


def test_each_part_alone() -> None:
    assert ids({"summary_short.txt": summary("test_it")}) == [TEST]
    for part in ("failures_long", "failures_short"):
        (failure,) = found({f"{part}.txt": long("test_it")})
        assert failure.name == "TestMadeUp.test_it"


def test_an_error_around_a_test() -> None:
    raised = b"=== ERRORS ===\n___ ERROR at setup of TestMadeUp.test_it ___\n\nE   " + f"{RAISED}: made up\n".encode()
    said = f"ERROR tests/models/test_made_up.py::TestMadeUp::test_it - {RAISED}: made up\n".encode()
    (failure,) = found({"errors.txt": raised, "summary_short.txt": said})
    assert failure.test == TEST


def test_the_short_form_is_left_out_where_the_long_one_is() -> None:
    (failure,) = found({"failures_short.txt": long("test_of_the_short_form"), "failures_long.txt": long("test_it")})
    assert failure.name == "TestMadeUp.test_it"


def test_jobs_stay_apart() -> None:
    """A section has no file: the summary of another job must not give it one."""
    files = {
        "one/failures_long.txt": long("test_it"),
        "one/summary_short.txt": summary("test_it"),
        "two/failures_long.txt": long("test_it", "another"),
        "two/summary_short.txt": summary("test_it").replace(b"models", b"others"),
    }
    assert ids(files) == [TEST, TEST.replace("models", "others")]


def test_jobs_in_zip_files_of_their_own_stay_apart() -> None:
    one = zipped({"failures_long.txt": long("test_it"), "summary_short.txt": summary("test_it")})
    two = zipped({"failures_long.txt": long("test_b"), "summary_short.txt": summary("test_b")})
    assert ids({"one.zip": one, "two.zip": two}) == [TEST, TEST.replace("test_it", "test_b")]


@pytest.mark.parametrize("name", ["stats.txt", "failures_line.txt", "xsummary_short.txt", "summary_short.txt.bak", "summary_short.txt/x"])
def test_other_files_are_none(name: str) -> None:
    assert ids({name: summary("test_it")}) == []


@pytest.mark.parametrize(
    "content", [b"", b"\0" * 100, b"\xff\xfe" * 50, b"=== FAILURES ===", b"FAILED", b"=== short test summary info ===\n"]
)
def test_what_is_empty_or_spoiled_holds_nothing(content: bytes) -> None:
    assert ids({"summary_short.txt": content, "failures_long.txt": content}) == []


def test_what_is_no_zip_file_holds_nothing() -> None:
    assert text_reports.in_archive(b"made up") == ()
    assert text_reports.in_archive(b"") == ()


def test_bytes_that_are_no_text_do_not_hide_a_failure() -> None:
    assert ids({"summary_short.txt": b"\xff\xfe\n" + summary("test_it")}) == [TEST]


def test_the_end_of_a_large_job_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    said = summary("test_it")
    monkeypatch.setattr(text_reports, "MAX_JOB", len(said))
    assert ids({"failures_long.txt": long("test_early"), "summary_short.txt": said}) == [TEST]


def test_failures_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logs, "MAX_FAILURES", 3)
    files = {f"job{i}/summary_short.txt": summary(f"test_{i}a", f"test_{i}b") for i in range(5)}
    assert len(ids(files)) == 3


def test_reading_ends_when_it_is_late() -> None:
    packed = zipped({f"job{i}/summary_short.txt": summary(f"test_{i}") for i in range(5)})
    left = iter([False] * 5 + [False, False, True])
    assert len(text_reports.in_archive(packed, "", lambda: next(left))) == 2
