from __future__ import annotations

import time
from pathlib import Path

import pytest

from bot.action.report import excerpt
from bot.failure.outcome import Outcome
from bot.failure.signature import signature_of

RECORDED = Path(__file__).resolve().parents[2] / "fixtures" / "tracebacks"
NAMES = sorted(path.stem for path in RECORDED.iterdir())


def cut(name: str) -> tuple[str, str]:
    text = (RECORDED / f"{name}.txt").read_text(encoding="utf-8")
    status = "signal" if "Fatal Python error" in text else "raised"
    signature = signature_of(Outcome(status=status, text=text, signal="SIGSEGV" if status == "signal" else None))
    assert signature is not None
    return text, excerpt.traceback(text, signature.frame)


def test_the_frames_that_matter() -> None:
    text, found = cut("lowering_assert")
    rows = found.split("\n")
    assert rows[:4] == [
        "Traceback (most recent call last):",
        '  File "repro.py", line 9, in <module>',
        "    torch.compile(Repro())(torch.ones(4))",
        "  [53 frames]",
    ]
    assert rows[8:12] == [
        '> File "torch/_inductor/lowering.py", line 521, in wrapped',
        "    out = decomp_fn(*args, **kwargs)",
        '  File "repro.py", line 5, in lower',
        "    assert len(x.get_size()) == 3",
    ]
    assert "target: aten.relu.default" in found
    assert len(found) < len(text) / 4


def test_a_crash_shows_the_stack_of_the_thread_that_died() -> None:
    _, found = cut("crash_lowering")
    assert found.startswith("Fatal Python error: Segmentation fault\n\nCurrent thread ")
    assert '\n> File "torch/_inductor/lowering.py", line 521, in wrapped\n' in found
    assert found.index("in string_at") < found.index("in wrapped") < found.index("[44 frames]")


@pytest.mark.parametrize("name", NAMES)
def test_of_each_recorded_failure_one_frame_is_marked(name: str) -> None:
    text, found = cut(name)
    if "Traceback (most" not in text and "most recent call first" not in text:
        assert found == ""
        return
    assert found.count("\n> File ") >= 1 or "\n  File " not in found
    assert len(found.split("\n")) < 60
    assert '> File "site-packages' not in found


def test_frames_of_ours_are_left_out() -> None:
    def frame(path: str, function: str) -> str:
        return f'  File "{path}", line 1, in {function}\n    {function}()\n'

    ours = "/usr/lib/python3.12/site-packages/bot/inside/"
    stack = frame(f"{ours}program.py", "execute") + frame("fail.py", "<module>") + frame(f"{ours}capture/hooks.py", "__call__")
    stack += (
        frame("/x/site-packages/torch/a.py", "first") + frame(f"{ours}hooks.py", "entry") + frame("/x/site-packages/torch/b.py", "second")
    )
    for named in ("torch/b.py:second", None):
        found = excerpt.traceback(f"Traceback (most recent call last):\n{stack}ValueError: x\n", named)
        assert [row for row in found.split("\n") if "bot/inside" in row] == []
        assert found.count("  [1 frame]") == 3
        assert 'torch/a.py", line 1, in first' in found
    # there is nothing else to show
    found = excerpt.traceback(f"Traceback (most recent call last):\n{frame(f'{ours}program.py', 'execute')}SyntaxError: x\n")
    assert "bot/inside/program.py" in found


def test_the_cause_comes_first_and_what_was_merely_being_handled_does_not() -> None:
    def one(name: str) -> str:
        return f'Traceback (most recent call last):\n  File "a.py", line 1, in f\n    x\n{name}: said\n'

    cause = "\nThe above exception was the direct cause of the following exception:\n\n"
    context = "\nDuring handling of the above exception, another exception occurred:\n\n"
    found = excerpt.traceback(one("First") + context + one("Second") + cause + one("Third"))
    assert "First" not in found
    assert found.index("Second: said") < found.index("direct cause") < found.index("Third: said")
    many = excerpt.traceback(cause.join(one(f"E{number}") for number in range(50)))
    assert many.count("Traceback") == excerpt.MOST_CAUSES


def test_what_python_only_reports_is_not_what_ended_the_program() -> None:
    """A finalizer prints its error behind the one that counts, by which the signature goes."""
    ended = 'Traceback (most recent call last):\n  File "fail.py", line 9, in <module>\n    f(x)\nValueError: first\n'
    late = 'Traceback (most recent call last):\n  File "fail.py", line 3, in __del__\n    self.close()\nOSError: late\n'
    found = excerpt.traceback(f"{ended}Exception ignored in: <function D.__del__ at 0x7f1>\n{late}")
    assert found == ended.replace("  File", "> File").rstrip()
    assert excerpt.traceback(f"Exception ignored in: <function D.__del__ at 0x7f1>\n{late}") == ""


def test_where_there_is_no_traceback_the_end_of_the_log_is_all() -> None:
    log = "".join(f"row {number}\n" for number in range(100))
    assert excerpt.traceback(log) == ""
    assert excerpt.tail(log).split("\n")[0] == f"row {100 - excerpt.TAIL}"
    assert excerpt.tail("") == ""


def test_long_lines_and_messages_are_cut() -> None:
    log = 'Traceback (most recent call last):\n  File "a.py", line 1, in f\nE: ' + "x" * 10_000 + "\n" + "more\n" * 100
    found = excerpt.traceback(log)
    assert found.endswith("more lines]")
    assert len(found) < 1_000


@pytest.mark.parametrize(
    "piece",
    [
        "Traceback (most recent call last):\n",
        '  File "a", line 1, in f\n',
        "Fatal Python error: x\n",
        "Current thread (most recent call first):\n",
    ],
)
def test_a_hostile_log_costs_linear_time(piece: str) -> None:
    log = piece * ((2 << 20) // len(piece))
    started = time.process_time()
    excerpt.traceback(log)
    excerpt.tail(log)
    assert time.process_time() - started < 10
