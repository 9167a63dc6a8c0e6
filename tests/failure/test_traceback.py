"""What is read from tracebacks and dumps: frames with their lines, and which of two runs failed later."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.failure.traceback import (
    GROUP_HEADER,
    Frame,
    exceptions,
    failed_later_than,
    fault_frames,
    final_stack,
    last_path,
    short_path,
    ungrouped,
)

# Between two tracebacks of a chain, as Python prints them.
CAUSE = "The above exception was the direct cause of the following exception:"
CONTEXT = "During handling of the above exception, another exception occurred:"


def trace(*frames: tuple[str, int, str], error: str = "KeyError: 7") -> str:
    listed = "".join(f'  File "{path}", line {line}, in {function}\n    code()\n' for path, line, function in frames)
    return f"printed before\nTraceback (most recent call last):\n{listed}{error}\n"


TORCH = ("/x/site-packages/torch/_dynamo/eval_frame.py", 5, "compile_wrapper")
FAILED = trace(("/tmp/a/repro.py", 20, "<module>"), ("/tmp/a/repro.py", 9, "main"), TORCH, ("/tmp/a/repro.py", 3, "forward"))


@pytest.mark.parametrize(
    ("control", "later"),
    [
        (trace(("/b/repro.py", 21, "<module>")), True),
        (trace(("/b/repro.py", 20, "<module>"), ("/b/repro.py", 10, "main")), True),
        (trace(("/b/repro.py", 20, "<module>"), ("/b/repro.py", 8, "main")), False),
        (trace(("/b/repro.py", 19, "<module>"), ("/b/repro.py", 99, "main")), False),
        # eager fails inside the statement that fails compiled: no later one
        (trace(("/b/repro.py", 20, "<module>"), ("/b/repro.py", 9, "main"), ("/b/repro.py", 30, "forward")), False),
        (trace(("/b/repro.py", 20, "<module>"), ("/b/repro.py", 30, "other")), False),
        (trace(("/b/other.py", 99, "<module>")), False),
        ("no traceback", False),
        ("", False),
    ],
)
def test_later_statements(control: str, later: bool) -> None:
    assert failed_later_than(control, FAILED, "repro.py") is later


def test_frames_of_the_launcher_and_earlier_tracebacks_do_not_count() -> None:
    control = trace(("/b/repro.py", 1, "<module>")) + trace(("/x/boot.py", 7, "<module>"), ("/b/repro.py", 30, "<module>"))
    assert failed_later_than(control, FAILED, "repro.py")


FRAMES = st.tuples(
    st.sampled_from(("/tmp/a/repro.py", "/b/repro.py", "/x/boot.py")), st.integers(1, 4), st.sampled_from(("<module>", "main"))
)
ENDS = st.text(max_size=20) | st.lists(FRAMES, max_size=4).map(lambda frames: trace(*frames))


@given(ENDS, ENDS)
def test_of_two_runs_one_failed_later_at_most(first: str, second: str) -> None:
    later = failed_later_than(first, second, "repro.py")
    assert not later or ("Traceback" in first and not failed_later_than(second, first, "repro.py"))


def test_a_frame_knows_its_line() -> None:
    (raised,) = exceptions(FAILED)
    assert [(frame.path, frame.line, frame.function) for frame in raised.frames][1:3] == [
        ("/tmp/a/repro.py", 9, "main"),
        ("torch/_dynamo/eval_frame.py", 5, "compile_wrapper"),
    ]


@pytest.mark.parametrize("digits", ["9" * 10, "9" * 5000])
def test_a_line_number_of_too_many_digits_is_none(digits: str) -> None:
    (raised,) = exceptions(FAILED.replace("line 20", f"line {digits}"))
    assert raised.frames[0] == Frame("/tmp/a/repro.py", "<module>", None)


DUMP = """Fatal Python error: Segmentation fault

Thread 0x01 (most recent call first):
  File "/x/other.py", line 1 in <module>

Current thread 0x02 (most recent call first):
  File "/x/repro.py", line ??? in hidden
  File "/x/repro.py", line 5 in forward
"""


def test_a_dump_is_read_of_the_thread_that_was_hit() -> None:
    assert fault_frames(DUMP) == (Frame("/x/repro.py", "forward", 5), Frame("/x/repro.py", "hidden"))
    assert final_stack(DUMP).frames == (Frame("/x/repro.py", "forward", 5),)
    assert final_stack(DUMP).whole
    assert not final_stack(DUMP + "  ...\n").whole


def test_what_is_printed_last_tells_of_the_end() -> None:
    assert [frame.line for frame in final_stack(FAILED + DUMP).frames] == [5]
    assert [frame.line for frame in final_stack(DUMP + FAILED).frames] == [20, 9, 5, 3]


def test_a_traceback_in_a_message_is_read_too() -> None:
    quoted = trace(("/b/repro.py", 2, "<module>"), error='Failed:\n    File "/b/repro.py", line 7, in inner')
    assert [frame.line for frame in final_stack(quoted).frames] == [2, 7]
    assert not failed_later_than(quoted, trace(("/b/repro.py", 2, "<module>"), ("/b/repro.py", 6, "inner")), "repro.py")


def test_the_last_file_that_is_shown() -> None:
    printed = trace(("/a/first.py", 1, "f"), ("/b/last.py", 22, "g"))
    assert last_path(printed) == "/b/last.py"
    assert last_path(f'{printed}      File "<quoted>", line 3\n') == "<quoted>"
    assert last_path('File "/at/the/margin.py", line 1\n') == ""
    assert last_path("") == ""


@pytest.mark.parametrize(
    ("path", "short"),
    [
        ("/v/lib/python3.12/site-packages/triton/compiler/compiler.py", "triton/compiler/compiler.py"),
        ("/w/triton/python/triton/backends/made/compiler.py", "triton/backends/made/compiler.py"),
        ("/w/triton/python/triton/code_gen.py", "triton/code_gen.py"),
        ("/w/buck-out/v2/gen/5f/made/__up__/up#link-tree/triton/compiler/compiler.py", "triton/compiler/compiler.py"),
        # somebody's own
        ("/w/triton/backends/made.py", "/w/triton/backends/made.py"),
        ("/w/python/triton/kernels/made.py", "/w/python/triton/kernels/made.py"),
    ],
)
def test_a_triton_that_is_not_among_the_installed_packages(path: str, short: str) -> None:
    assert short_path(path) == short


def group(*inside: str, depth: int = 0) -> str:
    """A group as Python prints it, with these tracebacks of the exceptions `inside` it."""
    margin = "  " * depth + "  "
    head = f"{margin}+ Exception Group Traceback (most recent call last):\n" if not depth else ""
    stack = ['  File "/tmp/a/repro.py", line 30, in main', "    go()", "ExceptionGroup: tasks (n sub-exceptions)"]
    text = head + "".join(f"{margin}| {line}\n" for line in stack)
    if depth:
        text = f"{margin}| Exception Group Traceback (most recent call last):\n{text}"
    for place, one in enumerate(inside, 1):
        text += f"{margin}+-+{'-' * 16} {place} {'-' * 16}\n" if place == 1 else f"{margin}  +{'-' * 16} {place} {'-' * 16}\n"
        text += one if one.startswith(" ") else "".join(f"{margin}  | {line}\n" for line in one.rstrip("\n").split("\n"))
    return f"{text}{margin}  +{'-' * 36}\n"


ONE = trace(("/tmp/a/repro.py", 9, "check"), error="Mismatch: off\nby one").removeprefix("printed before\n")
OTHER = trace(("/tmp/a/repro.py", 12, "other")).removeprefix("printed before\n")


@pytest.mark.parametrize(
    "text", [group(ONE, OTHER), group(ONE), group(group(ONE, OTHER, depth=1), OTHER), group(group(ONE, depth=1), OTHER, OTHER)]
)
def test_a_group_of_exceptions_is_the_first_that_is_in_it(text: str) -> None:
    assert ungrouped(f"printed\n{text}printed\n") == f"printed\n{ONE}printed\n"
    (found,) = exceptions(text)
    assert (found.name, found.message.strip(), found.frames) == ("Mismatch", "off\nby one", (Frame("/tmp/a/repro.py", "check", 9),))
    assert final_stack(text).frames == found.frames


def test_one_of_a_group_that_nobody_raised_has_the_stack_of_the_group() -> None:
    for text in (group("ValueError: 7", OTHER), group(group("ValueError: 7", depth=1))):
        (found,) = exceptions(text)
        assert (found.name, found.frames) == ("ValueError", (Frame("/tmp/a/repro.py", "main", 30),))


def test_what_is_raised_for_a_group_has_its_first_as_the_cause() -> None:
    for how, causes in ((CAUSE, ["Failed", "Mismatch"]), (CONTEXT, ["Failed"])):
        text = f"{group(ONE, OTHER)}\n{how}\n\n{trace(('/tmp/a/repro.py', 40, 'end'), error='Failed: no').removeprefix('printed before')}"
        assert [one.name for one in exceptions(text)] == causes


@given(st.text(alphabet="+-| \n1aF:", max_size=200))
def test_no_text_is_too_odd_for_a_group(text: str) -> None:
    odd = f"{GROUP_HEADER}\n{text}"
    assert isinstance(ungrouped(odd), str)
    assert len(exceptions(odd)) <= 1


@pytest.mark.parametrize("above", ["Exception ignored in: <function D.__del__ at 0x7f1>", "Error in atexit._run_exitfuncs:"])
def test_what_ends_no_program_is_no_error_of_it(above: str) -> None:
    late = f"{above}\n{OTHER}\n{CAUSE}\n\n{OTHER}"
    assert ungrouped(f"{ONE}{late}{late}printed\n") == f"{ONE}printed\n"
    assert exceptions(late) == ()


def test_a_class_may_be_called_by_any_letters() -> None:
    (found,) = exceptions(trace(("/tmp/a/repro.py", 9, "check"), error="Überlauf: 7"))
    assert (found.name, found.message.strip()) == ("Überlauf", "7")
