"""Tracebacks that stand alone in a log."""

from __future__ import annotations

import pytest

from bot.action.ci import lines, python_words
from bot.action.ci.tracebacks import HEADER, MAX_SAID, is_elsewhere, tracebacks

JOINT = f"\n{python_words.JOINTS[1]}\n\n"


def texts(log: str) -> list[str]:
    return [block.text for block in tracebacks(lines.read(log))]


def raised(said: str, path: str = "/w/a.py") -> str:
    return f'{HEADER}\n  File "{path}", line 7, in f\n    g()\n{said}\n'


@pytest.mark.parametrize("deep", [3, MAX_SAID, 4 * MAX_SAID])
def test_a_message_that_quotes_a_stack(deep: int) -> None:
    quoted = '  File "/w/b.py", line 8, in g\n    h()\n' * deep
    log = raised(f"RayTaskError(ValueError): made up\n{quoted}ValueError: made up")
    assert texts(log) == [log.rstrip()]


@pytest.mark.parametrize("other", ["py:7] Loading took 9 s", "INFO: made up", "loss: 0.5", "a line", "cut off:7"])
def test_a_line_of_somebody_else_between_two_frames(other: str) -> None:
    below = '  File "/w/b.py", line 8, in g\n    h()\nValueError: made up'
    log = f'{HEADER}\n  File "/w/a.py", line 7, in f\n    g()\n{{}}{below}'
    assert texts(log.format(f"{other}\n      ^^^\n")) == [log.format("")]


@pytest.mark.parametrize(
    "mark", ["[W801 10:00:00.123456789 ProcessGroupNCCL.cpp:1553]", "[I1101 10:00:00.1 a.cpp:7]", "W0801 10:00:00.123000 77 torch/a.py:7]"]
)
def test_what_torch_logs_behind_a_message_is_none_of_it(mark: str) -> None:
    log = "".join(f"[rank3]: {line}\n" for line in raised("AssertionError: ").splitlines())
    assert texts(f"{log}[rank3]:{mark} Warning: made up\n") == [raised("AssertionError:").rstrip()]


@pytest.mark.parametrize(("before", "mark"), [(" ", ""), ("   ", ""), (">  ", "> 2026-05-13T21:07:00.8492308Z "), ("    ", "    ")])
def test_a_header_with_other_blanks_before_it(before: str, mark: str) -> None:
    head, *below = raised("ValueError: made up").splitlines()
    assert texts("\n".join(["words", f"{before}{head}", *(f"{mark}{line}" for line in below)])) == ["\n".join([head, *below])]


@pytest.mark.parametrize(
    "said", ["ValueError: made up", "zmq.error.Again: made up", "socket.timeout: made up", "made.up.Gone(ValueError): made up"]
)
def test_a_class_of_an_exception_ends_the_frames(said: str) -> None:
    log = raised(f"{said}\nmore of it")
    assert texts(log) == [log.rstrip()]


@pytest.mark.parametrize(
    ("handled", "last", "repeats"),
    [
        ("ValueError: made up", raised("Exception: it failed: made up"), True),
        ("ValueError: made up\n\nmore of it", raised("Exception: it failed: made up"), True),
        ("ValueError: made up", raised("OSError: the disk"), False),
        ("ValueError", raised("Exception: it failed"), False),
        # what torch itself raises then has words for its users
        ("GuardError: made up", raised("UserError: made up", "/x/site-packages/torch/_dynamo/a.py"), False),
        ("ValueError: made up", "the log goes on", False),
    ],
)
def test_an_error_that_repeats_the_one_that_was_handled(handled: str, last: str, repeats: bool) -> None:
    first = raised(handled)
    assert texts(first + JOINT + last) == [first.rstrip() if repeats else (first + JOINT + last).rstrip()]


def test_a_helper_of_the_interpreter_is_another_process() -> None:
    assert is_elsewhere(raised("KeyError: '/a'", "/usr/lib/python3.12/multiprocessing/resource_tracker.py"))
    assert not is_elsewhere(raised("KeyError: '/a'"))
