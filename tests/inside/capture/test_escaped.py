"""Exceptions that leave the compiler for a program that may hide them. Without torch: the compiler is a file with a path like its."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import Any

import pytest

from bot.inside.capture import escaped as module
from bot.inside.capture.escaped import Escaped, watch_threads, whole_text
from bot.inside.protocol import ESCAPED_FILE

COMPILER = "/v/site-packages/torch/_dynamo/convert_frame.py"


def compiled(text: str = "raise KeyError('in the compiler')", path: str = COMPILER, **names: Any) -> BaseException:
    """What `text` raises in the file `path`."""
    try:
        exec(compile(text, path, "exec"), names)
    except Exception as error:
        return error
    raise AssertionError("nothing was raised")


def written(tmp_path: Path) -> str | None:
    path = tmp_path / ESCAPED_FILE
    return json.loads(path.read_text(encoding="utf-8"))["text"] if path.exists() else None


def test_what_passes_is_written_down_and_goes_on(tmp_path: Path) -> None:
    escaped = Escaped(str(tmp_path))

    def deeper() -> None:
        with escaped.noted():
            raise KeyError("x")

    with pytest.raises(KeyError):
        deeper()
    text = written(tmp_path)
    assert text is not None
    assert text.startswith("Traceback (most recent call last):\n")
    assert text.endswith("KeyError: 'x'\n")
    # the frames that it has not passed yet stand before those that it has
    assert text.index("in test_what_passes_is_written_down_and_goes_on") < text.index("in deeper")


def test_the_end_of_the_interpreter_is_no_error_of_the_compiler(tmp_path: Path) -> None:
    escaped = Escaped(str(tmp_path))
    with pytest.raises(KeyboardInterrupt), escaped.noted():
        raise KeyboardInterrupt
    assert written(tmp_path) is None


def test_an_error_counts_where_it_was_first_seen(tmp_path: Path) -> None:
    escaped = Escaped(str(tmp_path))
    error = compiled()
    escaped.note(error)
    (tmp_path / ESCAPED_FILE).unlink()
    escaped.note(error)
    assert written(tmp_path) is None
    escaped.note(compiled("raise KeyError('another')"))
    assert "another" in (written(tmp_path) or "")


def test_the_last_one_can_be_forgotten(tmp_path: Path) -> None:
    escaped = Escaped(str(tmp_path))
    first, last = compiled(), compiled()
    escaped.note(first)
    escaped.note(last)
    assert not escaped.forget(first)
    assert written(tmp_path) is not None
    assert escaped.forget(last)
    assert written(tmp_path) is None
    assert not escaped.forget(last)


def test_a_thread_that_nobody_waits_for_may_end_with_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    escaped, told = Escaped(str(tmp_path)), list[object]()
    monkeypatch.setattr(threading, "excepthook", lambda given: told.append(given.exc_type))
    watch_threads(escaped)

    def ends(note: bool) -> bool:
        def work() -> None:
            if note:
                with escaped.noted():
                    raise KeyError("x")
            raise ValueError

        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
        return escaped.ended_thread

    assert not ends(note=False)
    assert ends(note=True)
    assert told == [ValueError, KeyError]  # which the program sees as before
    escaped.note(compiled())  # a later one, which it catches
    assert not escaped.ended_thread


def test_in_a_process_that_the_program_started_a_listener_is_told_instead(tmp_path: Path) -> None:
    escaped, told = Escaped(str(tmp_path)), []
    escaped.listener = told.append
    error = compiled()
    escaped.note(error)
    assert (told, written(tmp_path)) == ([error], None)


def test_our_own_frames_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_OURS", __file__)
    assert "in test_our_own_frames_are_left_out" not in whole_text(compiled())


HANDLES = "try:\n    error()\nexcept Exception:\n    raise SystemError('gave up')"
CAUSE = "try:\n    error()\nexcept Exception as first:\n    raise SystemError('gave up') from first"
HIDES = "try:\n    error()\nexcept Exception:\n    raise SystemError('gave up') from None"
EXPECTS = "try:\n    error()\nexcept Exception:\n    assert False"


def raises(error: BaseException) -> Any:
    def call() -> None:
        raise error

    return call


@pytest.mark.parametrize(
    ("program", "told"),
    [
        (HANDLES, True),
        (HIDES, True),
        (CAUSE, False),  # its own traceback shows it
        (EXPECTS, False),  # a program that asserts something of an error expects one
    ],
)
def test_what_a_program_hid_when_it_ended(tmp_path: Path, program: str, told: bool) -> None:
    escaped = Escaped(str(tmp_path))
    error = compiled()
    escaped.note(error)
    text = escaped.behind(compiled(program, "/home/me/program.py", error=raises(error)))
    assert bool(text) is told
    assert not told or text.endswith("KeyError: 'in the compiler'\n")


def test_one_that_nobody_noted_is_known_by_its_frames(tmp_path: Path) -> None:
    hidden = compiled(HANDLES, "/home/me/program.py", error=raises(compiled()))
    assert Escaped(str(tmp_path)).behind(hidden).endswith("KeyError: 'in the compiler'\n")
    own = compiled(HANDLES, "/home/me/program.py", error=raises(compiled(path="/home/me/torch_like/_dynamo.py")))
    assert Escaped(str(tmp_path)).behind(own) == ""


def test_what_passes_the_compiler_itself_hides_nothing(tmp_path: Path) -> None:
    escaped = Escaped(str(tmp_path))
    error = compiled()
    escaped.note(error)
    assert escaped.behind(compiled(HANDLES, error=raises(error))) == ""


def test_a_chain_that_never_ends_is_none(tmp_path: Path) -> None:
    one, two = SystemError(1), SystemError(2)
    one.__context__, two.__context__ = two, one
    assert Escaped(str(tmp_path)).behind(one) == ""
