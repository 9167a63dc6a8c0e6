"""Tests that a text names, without what they raise."""

from __future__ import annotations

import pytest

from bot.action.ci import candidates
from bot.action.ci.paths import CheckoutPaths


def verdicts(log: str) -> list[str | None]:
    return [row["verdict"] for row in candidates.rows(log, CheckoutPaths([])) if row["verdict"] != "not a candidate"]


@pytest.mark.parametrize(
    ("heading", "line", "words", "expected"),
    [
        ("### Name of failing test", "`tests/compile/test_a.py::test_b[1-x]`", "It fails each night.", ["possible"]),
        ("Failing tests:", "- tests/test_dynamo.py::test_b", "", ["possible"]),
        ("### Name of failing test", "`tests/models/test_a.py::test_b[1-x]`", "It fails each night.", []),
        ("### Name of failing test", "`tests/compile/test_a.py::test_b[1-x]`", "It is out of memory.", []),
        ("### Name of failing test", "`tests/compile/test_a.py::test_b[1-x]`", "It says `MadeUpError`.", []),
        (
            "### Name of failing test",
            "tests/models/test_a.py::test_b[1-x] and two more",
            "It says `torch._inductor.exc.InductorError`.",
            ["possible"],
        ),
        ("### Name of failing test", "`tests/models/test_a.py::test_b`", "An InductorError, then a MadeUpError.", []),
        ("### Name of failing test", "`pytest tests/compile/test_a.py::test_b[1-x]`", "", []),
        ("### New tests", "`tests/compile/test_a.py::test_b[1-x]`", "", []),
        ("## [made up 1.2] the runs of a day, on what they ran / test failures", "tests/compile/test_a.py::test_b", "", ["possible"]),
        ("All 2 of the following tests fail alike:", "A=1  python3 -m pytest -v tests/compile/test_a.py::test_b", "", ["possible"]),
        ("The following tests are failing:", "> pytest tests/compile/test_a.py::test_b", "", ["possible"]),
        ("The following tests are failing:", "> pytest tests/compile/test_a.py", "", []),
        ("The following tests pass:", "pytest tests/compile/test_a.py::test_b", "", []),
        ("# Skip the failing tests", "tests/compile/test_a.py::test_b", "", []),
        ("### Fixed test failures", "tests/compile/test_a.py::test_b", "", []),
        ("Of the test failures", "tests/compile/test_a.py::test_b", "", []),
    ],
)
def test_a_test_that_is_named_below_a_heading(heading: str, line: str, words: str, expected: list[str]) -> None:
    assert verdicts(f"# A title\n\n{heading}\n\n{line}\n\n### More\n\n{words}\n") == expected
    # no heading speaks for what stands below another one
    assert verdicts(f"# A title\n\n{heading}\n\n### More\n\n{line}\n") == []


@pytest.mark.parametrize(
    ("title", "line", "expected"),
    [
        ("# Some tests of a model fail with 1.2", "RUN=1 python3 -m pytest -v tests/compile/test_a.py::test_b", ["possible"]),
        ("# 1.2 fails some cases", "> git checkout 012ab && RUN=1 python3 -m pytest -v tests/compile/test_a.py::test_b", ["possible"]),
        ("# test_a.py torch._dynamo.exc.TorchRuntimeError: MadeUpError made up", "pytest -v tests/models/test_a.py::test_b", ["possible"]),
        ("# Its torch._dynamo.exc.TorchRuntimeError is made up", "pytest -v tests/models/test_a.py::test_b", []),
        ("# `test_b` failed", "$ pytest tests/compile/test_a.py::test_b", ["possible"]),
        ("# `test_b` failed", "pytest tests/models/test_a.py::test_b", []),
        # nothing says that it fails, nor does its name in the text
        ("# Some tests of a model", "pytest tests/compile/test_a.py::test_b", []),
        ("# `test_b` failed", "tests/compile/test_a.py::test_b", []),
        ("# Fix a test that fails", "pytest tests/compile/test_a.py::test_b", []),
    ],
)
def test_commands_in_a_report_whose_title_tells_of_a_failure(title: str, line: str, expected: list[str]) -> None:
    assert verdicts(f"{title}\n\n### To reproduce\n\n{line}\n\ngives\n") == expected
    assert verdicts(f"# A title\n\n{title}\n\n### To reproduce\n\n{line}\n\ngives\n") == []


@pytest.mark.parametrize(
    ("raised", "expected"),
    [
        ("torch._inductor.exc.InductorError: RecursionError: made up", ["suggested"]),
        ("AssertionError: torch._inductor.exc.InductorError: made up", []),
        ("AssertionError: made up", []),
    ],
)
def test_a_report_that_tells_below_each_test_what_it_raised(raised: str, expected: list[str]) -> None:
    other = "tests/test_c.py::test_d\n(line 5)  AssertionError: made up\n"
    assert verdicts(f"# A title\n\n```\n{other}\ntests/test_a.py::T::test_b[1]\n(line 49)  {raised}\n```\n") == expected


@pytest.mark.parametrize(
    ("title", "expected"),
    [
        ("# [release 1.2][made up] test_a.py::TestExport::test_b", ["tests/test_a.py::TestExport::test_b"]),
        ("# tests/test_a.py::TestExport::test_b", ["tests/test_a.py::TestExport::test_b"]),
        ("# [release 1.2] test_a.py::TestEager::test_b", []),
        ("# Skip test_a.py::TestExport::test_b", []),
        ("# test_a.py::TestExport::test_b is slow", []),
    ],
)
def test_a_title_that_is_the_id_of_a_test(title: str, expected: list[str]) -> None:
    log = f"{title}\n\nIt runs here:\ntests/test_a.py::TestExport::test_b\n"
    rows = candidates.rows(log, CheckoutPaths([]))
    assert [row["test"] for row in rows if row["verdict"] == "possible"] == expected


@pytest.mark.parametrize(
    ("title", "line", "expected"),
    [
        ("# It fails to export", "python test/test_a.py -k  test_export_b", ["test/test_a.py::test_export_b"]),
        ("# It runs", "Run `python test/test_a.py -k test_compile_b` and the test fails when made up", ["test/test_a.py::test_compile_b"]),
        ("# It runs", "A shard is failing (repro: `PYTORCH_TEST_WITH_DYNAMO=1 python test_a.py -k test_b`).", ["test_a.py::test_b"]),
        ("# Inductor breaks them", "2. (with all of it) test/test_a.py -k test_b", ["test/test_a.py::test_b"]),
        ("# torch.compile is broken", "pytest -q test/test_a.py -k 'test_b'", ["test/test_a.py::test_b"]),
        # nothing says that it fails, or that it compiles; several; what a change is tried with, and what it does
        ("# It exports", "python test/test_a.py -k test_export_b", []),
        ("# It fails", "python test/test_a.py -k test_b", []),
        ("# It fails to export", "python test/test_a.py -k 'test_export_b or test_export_c'", []),
        ("# It fails to export", "python test/test_a.py -k test_export_b\npython test/test_a.py -k test_export_c", []),
        ("# It fails to export", "Test Plan:\npython test/test_a.py -k test_export_b", []),
        ("# Fix what fails to export", "python test/test_a.py -k test_export_b", []),
        ("# Report what fails to export", "python test/test_a.py -k test_export_b", []),
        ("# It runs", "If `python test/test_a.py -k test_export_b` fails, it is made up.", []),
        # one of them may pass
        ("# It fails to export", "pytest -q test/test_a.py -k test_export_b\npytest -q test/test_a.py", []),
    ],
)
def test_the_only_command_of_a_text_that_says_that_it_fails(title: str, line: str, expected: list[str]) -> None:
    rows = candidates.rows(f"{title}\n\nSome words.\n{line}\n", CheckoutPaths([]))
    assert [row["test"] for row in rows if row["verdict"] == "possible"] == expected


@pytest.mark.parametrize(
    "row",
    [
        "test.made.test_up.TestMade | test_{}",
        "| test.made.test_up.TestMade | test_{} |",
        "op_ut,test.made.test_up.TestMade,test_{}",
        "- test/made/test_up.py::TestMade::test_{}",
    ],
)
@pytest.mark.parametrize("raised", ["torch._dynamo.exc.Unsupported: made up", "MadeUpError: made up"])
def test_the_tests_of_a_table_below_the_error_of_all(row: str, raised: str) -> None:
    text = f"# A title\n\nerror:\n{raised}\n\ncases\nClass name | Test name\n-- | --\n{row.format('a')}\n{row.format('b')}\n"
    rows = [each for each in candidates.rows(text, CheckoutPaths([])) if each["verdict"] != "not a candidate"]
    ids = ["test/made/test_up.py::TestMade::test_a", "test/made/test_up.py::TestMade::test_b"]
    assert [each["test"] for each in rows] == ([] if raised.startswith("MadeUp") else ids)
    assert all("Unsupported: made up" in str(each["why"]) for each in rows)


@pytest.mark.parametrize(
    ("job", "expected"),
    [
        (
            "[inductor / unit-test / test (default, 1, 2, made.up)](https://hud.made.up/pr/1#2) ([gh](https://github.com/a/b/actions/runs/1/job/2))",
            1,
        ),
        ("inductor / unit-test / test (default, 1, 2, made.up)", 0),
    ],
)
def test_the_tests_below_the_jobs_in_which_they_failed(job: str, expected: int) -> None:
    text = f"# A title\n\n{job}\ntest/inductor/test_a.py::TestA::test_b\n{job}\n`test/test_a.py::TestA::test_b`\n{job}\nmade_up_net\n"
    rows = candidates.rows(text, CheckoutPaths([]))
    assert [row["test"] for row in rows if row["verdict"] == "possible"] == ["test/inductor/test_a.py::TestA::test_b"] * expected


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        (
            "Broke a job: dynamo/test_a.py::TestA::test_b [GH job link](https://github.com/a/b/actions/runs/1/job/2) [HUD](https://hud.made.up)",
            1,
        ),
        ("`inductor/test_a.py::TestA::test_b` [GH job link](https://github.com/a/b/actions/runs/1/job/2)", 1),
        ("made_up/test_a.py::TestA::test_b [GH job link](https://github.com/a/b/actions/runs/1/job/2)", 0),
        ("A job: dynamo/test_a.py::TestA::test_b [a link](https://github.com/a/b/actions/runs/1/job/2)", 0),
    ],
)
def test_a_test_before_the_link_of_its_job(line: str, expected: int) -> None:
    rows = candidates.rows(f"# A title\n\nSome words.\n{line}\nMore of them.\n", CheckoutPaths([]))
    assert len([row for row in rows if row["verdict"] == "possible" and str(row["test"]).endswith("test_a.py::TestA::test_b")]) == expected
