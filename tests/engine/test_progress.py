"""What a person sees while the job runs."""

from __future__ import annotations

import io
import re

import pytest

from bot.engine import progress as room
from bot.engine.progress import Progress


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("GITHUB_ACTIONS", "FORCE_COLOR", "NO_COLOR", "TTY_INTERACTIVE", "TTY_COMPATIBLE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm")


def run(stream: io.StringIO) -> str:
    progress = Progress(stream)
    progress.step("first [part]")
    progress.update("far [/off] 100%")
    progress.say("a line\nand ::error::another")
    progress.step("second\n::stop")
    progress.close()
    progress.close()
    return stream.getvalue()


def test_plain_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(room, "PLAIN_EVERY", -1.0)
    lines = run(io.StringIO()).splitlines()
    assert [re.fullmatch(r"\[ {3}0\.\d s\] (.*)", line)[1] for line in lines] == [  # type: ignore[index]
        "first [part]",
        "far [/off] 100%",
        "a line | and ::error::another",
        "second | ::stop",
    ]


def test_updates_are_rare() -> None:
    stream = io.StringIO()
    progress = Progress(stream)
    progress.step("part")
    for number in range(100):
        progress.update(f"query {number}")
    assert len(stream.getvalue().splitlines()) == 1


def test_groups_in_actions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    lines = run(io.StringIO()).splitlines()
    assert [line for line in lines if line.startswith("::")] == [
        "::group::first [part]",
        "::endgroup::",
        "::group::second%0A::stop",
        "::endgroup::",
    ]
    assert any(line.endswith("a line | and ::error::another") for line in lines)


def test_long_lines_are_not_broken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    stream = io.StringIO()
    Progress(stream).say("word " * 100)
    assert len(stream.getvalue().splitlines()) == 1


def test_a_terminal_has_a_live_line_and_no_markup() -> None:
    said = re.sub(r"\x1b\[[\d;?]*[A-Za-z]", "", run(Terminal()))
    assert "far [/off] 100%" in said
    assert "a line | and" in said


def test_words_of_others_are_no_commands(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(room, "PLAIN_EVERY", -1.0)
    for stream in (io.StringIO(), Terminal()):
        progress = Progress(stream)
        for say in (progress.step, progress.update, progress.say):
            say("a \x1b]0;title\x07 \x9b2J ##[add-mask]x")
        progress.close()
        assert not re.search(r"\x1b\]|[\x07\x9b]", stream.getvalue())


def test_no_line_of_a_log_is_a_command_of_the_old_form() -> None:
    stream = io.StringIO()
    Progress(stream).say("##[add-mask]x")
    assert "##[" not in stream.getvalue()
