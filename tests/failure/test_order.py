"""Which of two runs came further, by their tracebacks."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.failure.order import further


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
    assert further(control, FAILED, "repro.py") is later


def test_frames_of_the_launcher_and_earlier_tracebacks_do_not_count() -> None:
    control = trace(("/b/repro.py", 1, "<module>")) + trace(("/x/boot.py", 7, "<module>"), ("/b/repro.py", 30, "<module>"))
    assert further(control, FAILED, "repro.py")


@given(st.text(), st.text())
def test_any_text_is_read(control: str, failed: str) -> None:
    assert not further(control, failed, "repro.py") or "Traceback" in control
