"""The failures in a log as a whole: each once, in its order, by whatever form tells most of it; none of hostile or empty text."""

from __future__ import annotations

import pytest

from bot.action.ci import logs
from bot.action.ci.failing_test import Seen

RAISED = "torch._dynamo.exc.Unsupported: made up"
FRAMES = """\
Traceback (most recent call last):
  File "/w/train.py", line 41, in <module>
    main(config)
  File "/w/lib/python3.12/site-packages/torch/_dynamo/convert_frame.py", line 986, in _compile
    guarded_code = compile_inner(code, one_graph, hooks, transform)
"""
PROGRAM = f"{FRAMES}{RAISED}\n"


def section(name: str, file: str = "tests/test_made_up.py", raised: str = RAISED) -> str:
    said, line = raised.partition(":")[0].rpartition(".")[2], 7
    return f"___ {name} ___\n\n>       f()\nE       {raised}\n\n{file}:{line}: {said}\n"


def shown(*sections: str) -> str:
    return f"=== FAILURES ===\n{''.join(sections)}"


def summary(*tests: str, raised: str = RAISED) -> str:
    return f"=== short test summary info ===\n{''.join(f'FAILED {test} - {raised}{chr(10)}' for test in tests)}=== 1 failed in 1.00s ===\n"


def ids(log: str) -> list[str]:
    return [failure.test for failure in logs.failures(log)]


@pytest.mark.parametrize(
    "log",
    [
        *("", "\n" * 50, "\0" * 50, "\x1b[0m\n" * 3, "\r\r\n", "made up", "\ufeff", "{" * 200, "[" * 200 + "\n" + "]" * 200),
        *("=== FAILURES ===", "Traceback (most recent call last):", "FAILED", "FAILED  - ", '  File "'),
        *("=== 3 passed in 1.00s ===", "Ran 3 tests in 1.0s\n\nOK\n", "##[error]Process completed with exit code 1."),
    ],
)
def test_where_nothing_is_told_nothing_is_found(log: str) -> None:
    assert logs.failures(log) == ()


def test_each_has_the_job_and_what_pytest_calls_its_root() -> None:
    log = "rootdir: /w/made_up, configfile: x.toml\n" + shown(section("test_a")) + summary("tests/test_made_up.py::test_a")
    (failure,) = logs.failures(log, "gpu")
    assert (failure.job, failure.root) == ("gpu", "/w/made_up")
    (failure,) = logs.failures(PROGRAM, "gpu")
    assert (failure.job, failure.root) == ("gpu", "")


def test_a_test_that_is_shown_and_named_is_one() -> None:
    test = "tests/test_made_up.py::test_a"
    (failure,) = logs.failures(f"{test} FAILED [100%]\n" + shown(section("test_a")) + summary(test))
    assert (failure.test, failure.seen) == (test, Seen.ERROR)
    assert 'File "tests/test_made_up.py", line 7' in failure.text


def test_those_that_are_shown_come_before_those_that_are_named() -> None:
    named = [f"tests/test_made_up.py::test_{letter}" for letter in "abc"]
    assert ids(shown(section("test_c"), section("test_b")) + summary(*named)) == [named[2], named[1], named[0]]


def test_one_name_in_two_files() -> None:
    """Each section has the file of its own place: none gets the other one's."""
    files = ["tests/test_one.py", "tests/test_two.py"]
    log = shown(*(section("test_it", file, f"{RAISED} in {file}") for file in files)) + summary(*(f"{file}::test_it" for file in files))
    found = {failure.test: failure.text for failure in logs.failures(log)}
    assert {test: test.partition("::")[0] in text for test, text in found.items()} == {f"{file}::test_it": True for file in files}


def test_what_failed_in_a_test_counts_and_not_its_teardown() -> None:
    test = "tests/test_made_up.py::test_a"
    torn = "=== ERRORS ===\n" + section("ERROR at teardown of test_a", "tests/conftest.py", "ValueError: made up")
    named = summary(test) + f"ERROR {test} - ValueError: made up\n"
    (failure,) = logs.failures(torn + shown(section("test_a")) + named)
    assert (failure.test, failure.text.rstrip().endswith(RAISED)) == (test, True)
    # where it alone failed
    (failure,) = logs.failures(torn + f"=== short test summary info ===\nERROR {test} - ValueError: made up\n")
    assert (failure.test, failure.text.rstrip().endswith("ValueError: made up")) == (test, True)


def test_a_log_of_two_runs_has_the_failures_of_both() -> None:
    log = "".join(shown(section(name)) + summary(f"tests/test_made_up.py::{name}") for name in ("test_a", "test_b"))
    assert ids(log) == ["tests/test_made_up.py::test_a", "tests/test_made_up.py::test_b"]


def test_what_a_test_printed_is_no_failure_of_a_program() -> None:
    test = "tests/test_made_up.py::test_a"
    log = PROGRAM + shown(section("test_a", raised="ValueError: made up")) + summary(test, raised="ValueError: made up")
    (failure,) = logs.failures(log)
    assert failure.test == test
    assert "ValueError" in failure.text
    assert RAISED not in failure.text


def test_what_was_printed_before_tests_passed_ended_nothing() -> None:
    assert logs.failures(f"{PROGRAM}\n=== 3 passed in 1.00s ===\n") == ()
    assert logs.failures(f"{PROGRAM}\n----------\nRan 3 tests in 1.0s\n\nOK\n") == ()


def test_a_program_that_failed_and_how_it_was_started() -> None:
    (failure,) = logs.failures(f"+ python train.py --compile\n{PROGRAM}")
    assert (failure.test, failure.script, failure.hint.program) == ("", "/w/train.py", "python train.py --compile")
    assert failure.text.endswith(RAISED)


def test_a_program_of_which_its_parent_says_that_it_failed() -> None:
    parent = """Traceback (most recent call last):
  File "/w/all.py", line 3, in <module>
    subprocess.run(command, check=True)
  File "/w/lib/python3.12/subprocess.py", line 571, in run
    raise CalledProcessError(retcode, process.args,
subprocess.CalledProcessError: Command '['/w/bin/python', 'train.py', '--compile']' returned non-zero exit status 1.
"""
    (failure,) = logs.failures(f"+ python all.py\n{PROGRAM}{parent}")
    assert (failure.script, failure.hint.program) == ("/w/train.py", "python train.py --compile")
    # what the log shows as it began has its variables, too
    (failure,) = logs.failures(f"+ NGPU=2 python train.py --compile\n{PROGRAM}{parent}")
    assert failure.hint.variables == ("NGPU=2",)


def test_what_one_of_several_tests_printed_that_ran_at_once() -> None:
    """The log ends before any test fails: the one that was begun last may be another one."""
    begun = "====== test session starts ======\ntests/test_a.py::test_a \ntests/test_b.py::test_b \n"
    log = f"{begun}{PROGRAM}\n\n[gw0] [ 10%] PASSED tests/test_a.py::test_a \n[gw1] [ 20%] PASSED tests/test_c.py::test_c \n"
    assert [(found.test, found.seen) for found in logs.failures(log)] == [("", Seen.LOGGED)]
    alone = log.replace("[gw1]", "[gw0]")
    assert [(found.test, found.seen) for found in logs.failures(alone)] == [("tests/test_b.py::test_b", Seen.ERROR)]


def test_all_ranks_that_die_of_one_error_are_one_failure() -> None:
    ranks = "".join(f"[rank{rank}]: {line}\n" for line in PROGRAM.splitlines() for rank in range(4))
    assert len(logs.failures(f"+ torchrun --nproc_per_node 4 train.py\n{ranks}")) == 1


def test_what_was_handled_is_no_failure() -> None:
    eager = 'Traceback (most recent call last):\n  File "/w/train.py", line 50, in <module>\n    save()\nOSError: made up\n'
    assert logs.failures(f"+ python train.py\n{PROGRAM}trying again in eager\n{eager}") == ()


def test_failures_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logs, "MAX_FAILURES", 3)
    named = [f"tests/test_made_up.py::test_{i}" for i in range(10)]
    assert ids(summary(*named)) == named[:3]


@pytest.mark.parametrize("cut", range(10))
def test_a_log_that_is_cut_anywhere_is_read(cut: int) -> None:
    whole = (shown(section("test_a")) + summary("tests/test_made_up.py::test_a")).splitlines(keepends=True)
    for part in (whole[cut:], whole[:cut], whole[cut:] + whole[:cut]):
        assert set(ids("".join(part))) <= {"test_a", "tests/test_made_up.py::test_a"}
