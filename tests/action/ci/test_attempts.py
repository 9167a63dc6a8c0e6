"""Steps that try again: what the last attempt did not fail by is no failure of the job.

The lines are those of nick-fields/retry, by `src/index.ts` at 0711ba3d7808574133d713a0d92d2941be03a350.
"""

from __future__ import annotations

import pytest

from bot.action.ci import logs

STEP, NEXT = "##[group]Run nick-fields/retry@v3\n##[endgroup]\n", "##[group]Run ruff check\n##[endgroup]\n"
AGAIN = "##[warning]Attempt 1 failed. Reason: Child_process exited with error code 1\n"
DONE, FINAL = "Command completed after 2 attempt(s).\n", "##[error]Final attempt failed. Child_process exited with error code 1\n"


def shown(name: str) -> str:
    error = "torch._inductor.exc.InductorError: LoweringException: AssertionError: made up"
    return (
        f"=========== FAILURES ===========\n___________ {name} ___________\n\n    def {name}():\n>       f(1)\n\ntests/test_a.py:6:\n"
        f"/lib/site-packages/torch/_inductor/graph.py:9: in run_node\n    result = f()\nE   {error}\n\n"
        f"/lib/site-packages/torch/_inductor/lowering.py:4: InductorError\n"
        f"=========== short test summary info ===========\nFAILED tests/test_a.py::{name} - {error}\n"
        "======= 1 failed, 1 passed in 3.21s =======\n"
    )


@pytest.mark.parametrize(
    ("log", "expected"),
    [
        (f"{STEP}{shown('test_a')}{AGAIN}==== 1 passed in 3.21s ====\n{DONE}{NEXT}made up\n", []),
        (f"{STEP}{shown('test_a')}{AGAIN}{shown('test_b')}{FINAL}", ["test_b"]),
        # with continue_on_error, and without warning_on_retry
        (f"{STEP}{shown('test_a')}{AGAIN[11:]}{shown('test_b')}{FINAL.replace('error', 'warning', 1)}", ["test_b"]),
        (f"{STEP}{shown('test_a')}{AGAIN}{shown('test_a')}{AGAIN}==== 1 passed in 3.21s ====\n{DONE}", []),
        # nobody knows how the other attempt would have ended
        (f"{STEP}{shown('test_a')}{AGAIN}##[error]The operation was canceled.\n", ["test_a"]),
        (f"{STEP}{shown('test_a')}{AGAIN}{NEXT}{DONE}", ["test_a"]),
        # a step before it, which goes on though it failed
        (f"{NEXT}{shown('test_c')}{STEP}{shown('test_a')}{AGAIN}{DONE}", ["test_c"]),
        (f"{STEP}{shown('test_a')}{DONE}", ["test_a"]),
    ],
)
def test_of_the_attempts_of_a_step_the_last_one_counts(log: str, expected: list[str]) -> None:
    stamped = "".join(f"2026-11-20T10:11:12.1234567Z {line}\n" for line in log.splitlines())
    assert [failure.name for failure in logs.failures(stamped)] == expected


@pytest.mark.parametrize(
    ("title", "end"),
    [
        ("=========== RERUNS ===========\n___ test_a ___", "1 passed, 1 rerun"),
        ("====== rerun test summary info ======\nRERUN tests/test_a.py::test_a", "1 passed, 1 rerun"),
        ("=========== XFAILURES ===========\n___ test_a ___", "1 xfailed"),
    ],
)
def test_what_is_shown_of_tests_that_did_not_fail_in_the_end(title: str, end: str) -> None:
    stack = shown("test_a").partition("tests/test_a.py:6:")[2].partition("=====")[0]
    log = f"{title}\n\n    def test_a():\n>       f(1)\n\ntests/test_a.py:6:{stack}====== {end} in 3.21s ======\n"
    assert [failure.name for failure in logs.failures(log)] == []
