"""What PyTorch's `run_test.py` says in a log."""

from __future__ import annotations

import pytest

from bot.action.ci import lines
from bot.action.ci.failing_test import Failure, Hint, Seen
from bot.action.ci.run_test import RunTestLog, hinted
from bot.action.ci.tracebacks import Printed

STAMP = "2026-07-30T10:37:27.7633921Z "
TEST = "test/inductor/test_a.py::TestA::test_b"
RAISED = 'Traceback (most recent call last):\n  File "/w/test/inductor/test_a.py", line 3, in <module>\n    f()\nValueError: made up\n'


def begins(shard: str = "1/1") -> str:
    return f"\nPRINTING LOG FILE of inductor/test_a {shard} (test/test-reports/inductor.test_a_{shard.replace('/', '.')}_.log)\n"


def ends(shard: str = "1/1") -> str:
    return begins(shard).replace("PRINTING", "FINISHED PRINTING").lstrip()


def read(log: str) -> RunTestLog:
    return RunTestLog(lines.read(log).text)


def files(log: str, known: set[str] | None = None) -> list[Failure]:
    read_lines = lines.read(log)
    return list(RunTestLog(read_lines.text).files(known or set(), Printed(read_lines)))


@pytest.mark.parametrize(
    ("line", "test", "hint"),
    [
        ("python test/inductor/test_a.py TestA.test_b", TEST, Hint((), "python test/inductor/test_a.py TestA.test_b")),
        ("    python test/inductor/test_a.py TestA.test_b  ", TEST, Hint((), "python test/inductor/test_a.py TestA.test_b")),
        ("python3.12 test\\inductor\\test_a.py TestA.test_b", TEST, Hint((), "python test/inductor/test_a.py TestA.test_b")),
        (
            "PYTORCH_TEST_WITH_DYNAMO=1 LD_PRELOAD=/made/up.so python test/inductor/test_a.py TestA.test_b",
            TEST,
            Hint(("PYTORCH_TEST_WITH_DYNAMO=1",), "python test/inductor/test_a.py TestA.test_b"),
        ),
        (
            "python test/test_ops.py -k test_b_cpu_float32",
            "test/test_ops.py::test_b_cpu_float32",
            Hint((), "python test/test_ops.py -k test_b_cpu_float32"),
        ),
    ],
)
def test_the_command_for_a_test(line: str, test: str, hint: Hint) -> None:
    assert hinted(line) == (test, hint)


@pytest.mark.parametrize(
    "line",
    [
        "python test/run_test.py",
        "python test/test_a.py --verbose",
        "python -m pytest test/test_a.py",
        "python test/test_a.py TestA.test_b; rm -r made_up",
        "python test/test_a.py TestA.test_b TestA.test_c",
        "run python test/test_a.py TestA.test_b",
    ],
)
def test_what_is_no_command_for_one_test(line: str) -> None:
    assert hinted(line) is None


@pytest.mark.parametrize(
    ("line", "is_used"),
    [
        ("Running inductor/test_a 1/4 ... [2026-07-30 10:07:22.140715][4098327.38]", True),
        ("Running 796 items in this shard: test/inductor/test_a.py::TestA::test_b", True),
        ("Executing ['/made/up/python', '-bb', 'inductor/test_a.py', '--shard-id=4', '--num-shards=10'] ... [2026-07-30]", True),
        (f"FAILED CONSISTENTLY: {TEST}", True),
        ("Running tests in this directory", False),
        ("Executing ['made', 'up']", False),
        ("FAILED CONSISTENTLY: made up", False),
    ],
)
def test_whether_a_log_is_of_that_runner(line: str, is_used: bool) -> None:
    assert read(f"made up\n{STAMP}{line}\r\n").is_used is is_used


@pytest.mark.parametrize(
    ("how", "seen", "signal"),
    [
        ("Got exit code 1", Seen.NAMED, None),
        ("Got exit code -11 (SIGSEGV)", Seen.DEATH, "SIGSEGV"),
        ("Got exit code -6 (SIGIOT)", Seen.DEATH, "SIGABRT"),
        ("Got exit code -9 (SIGKILL)", Seen.NAMED, None),
        ("Command took >30min, returning 124\nGot exit code 124", Seen.TIMEOUT, None),
    ],
)
def test_a_test_that_failed_each_time(how: str, seen: Seen, signal: str | None) -> None:
    log = f"{begins()}Got exit code -4 (SIGILL)\nRetrying single test...\n{how}\nFAILED CONSISTENTLY: {TEST}\n{ends()}"
    assert read(log).consistent == {TEST: Failure("TestA.test_b", TEST, "", signal, seen=seen)}
    assert read("".join(f"{STAMP}\x1b[31m{line}\x1b[0m\r\n" for line in log.splitlines())).consistent == read(log).consistent


def test_lists_of_tests_whose_parameters_hold_anything() -> None:
    failed = "test/test_a.py::TestA::test_b[a b::c, 'd' - \u00e9]"
    flaky = "test/test_a.py::TestA::test_c[x]"
    log = (
        f"The following tests failed and then succeeded when run in a new process{[flaky]}\n"
        f"The following tests failed consistently: {[failed, 'made up', 7]}\n"
    )
    found = read(log)
    assert found.passed == {flaky}
    assert [(test, each.name, each.seen) for test, each in found.consistent.items()] == [
        (failed, "TestA.test_b[a b.c, 'd' - \u00e9]", Seen.NAMED)
    ]


@pytest.mark.parametrize("ids", ["['test/test_a.py::test_b'", "[made_up()]", "[" * 5000 + "]"])
def test_a_list_that_is_cut_off_or_hostile(ids: str) -> None:
    assert read(
        f"The following tests failed consistently: {ids}\nThe following tests failed consistently: ['test/test_a.py::test_c']\n"
    ).consistent.keys() == {"test/test_a.py::test_c"}


def test_a_test_that_hung_once() -> None:
    found = read(f'TIMED OUT: "{TEST}"\nTIMED OUT: test/inductor/test_a.py\n')
    assert found.timed_out == {TEST: Failure("TestA.test_b", TEST, "", seen=Seen.TIMEOUT)}


def test_an_id_with_less_of_its_path() -> None:
    found = read(
        "To execute this test, run the following from the base repo dir:\n    python test/inductor/test_a.py TestA.test_b\n"
        "or `PYTORCH_TEST_WITH_DYNAMO=1 python test/dynamo/test_c.py -k test_d` and `python test/dynamo/test_c.py -k test_e`\n"
    )
    assert found.full("inductor/test_a.py::TestA::test_b") == TEST
    assert found.full("test_a.py::TestA::test_b") == TEST
    assert found.full("TestA::test_b") == TEST
    assert found.full("TestA::test_x") == "TestA::test_x"
    assert found.full("other/test_a.py::TestA::test_b") == "other/test_a.py::TestA::test_b"
    # the command has no class
    assert found.full("test_c.py::TestC::test_d") == "test/dynamo/test_c.py::TestC::test_d"
    assert found.hint("test/dynamo/test_c.py::TestC::test_d") == Hint(
        ("PYTORCH_TEST_WITH_DYNAMO=1",), "python test/dynamo/test_c.py -k test_d"
    )
    assert found.hint("test/dynamo/test_c.py::TestC::test_x") is None


def test_a_name_that_two_files_have() -> None:
    found = read("python test/a/test_a.py TestA.test_b\npython test/c/test_a.py TestA.test_b\n")
    assert found.full("TestA::test_b") == "TestA::test_b"
    assert found.full("c/test_a.py::TestA::test_b") == "test/c/test_a.py::TestA::test_b"


@pytest.mark.parametrize(
    ("printed", "said", "expected"),
    [
        ("Got exit code 1\n", "", Failure("", "", "", seen=Seen.FILE)),
        (RAISED, "", Failure("", "", RAISED.rstrip())),
        (RAISED, " Received signal: SIGBUS", Failure("", "", "", "SIGBUS", seen=Seen.DEATH)),
        ("", " Received signal: SIGIOT", Failure("", "", "", "SIGABRT", seen=Seen.DEATH)),
        ("", " Received signal: SIGKILL", Failure("", "", "", seen=Seen.FILE, note="ended from outside by SIGKILL")),
        (
            "Command took >30min, returning 124\nGot exit code 124\n",
            "",
            Failure("", "", "", seen=Seen.TIMEOUT, note="the whole file ran into its time limit"),
        ),
    ],
)
def test_a_file_that_failed_as_a_whole(printed: str, said: str, expected: Failure) -> None:
    other = RAISED.replace("made up", "of another")
    log = f"{other}{begins()}{printed}{ends()}inductor/test_a 1/1 failed!{said}\n{other}"
    path = "test/inductor/test_a.py"
    (found,) = files(log)
    assert (found.test, found.text, found.signal, found.seen, found.note) == (
        path,
        expected.text,
        expected.signal,
        expected.seen,
        expected.note,
    )
    assert files(log, {path}) == []


@pytest.mark.parametrize("order", [("1/4", "3/4"), ("3/4", "1/4")])
def test_two_parts_of_one_file(order: tuple[str, str]) -> None:
    """One job may run several parts of a large file: one that passed when it was run again is printed, too."""
    hung = f"{begins('1/4')}Command took >30min, returning 124\nGot exit code 124\n{ends('1/4')}"
    passed = f"{begins('3/4')}{RAISED}==== 8 passed in 3.21s ====\n{ends('3/4')}"
    log = "".join({"1/4": hung, "3/4": passed}[shard] for shard in order)
    assert [each.seen for each in files(f"{log}inductor/test_a 1/4 failed!\n")] == [Seen.TIMEOUT]
    assert [each.seen for each in files(f"{log}inductor/test_a 1/4 failed!\ninductor/test_a 3/4 failed! Received signal: SIGSEGV\n")] == [
        Seen.TIMEOUT,
        Seen.DEATH,
    ]


def test_the_last_lines_of_a_long_log_stand_below_a_group() -> None:
    """Before torch 2.2 its beginning was in one, of a failing file."""
    log = begins().lstrip().replace("PRINTING", "##[group]PRINTING BEGINNING OF")
    assert [each.text for each in files(f"{log}it runs\n##[endgroup]\n{RAISED}{ends()}inductor/test_a 1/1 failed!\n")] == [RAISED.rstrip()]
