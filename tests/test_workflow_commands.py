"""What the runner of Actions would read, and that no text of others becomes a command."""

from __future__ import annotations

import io
import re
import time
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.workflow_commands import Annotation, begin_group, harmless, log_group, outputs, visible

ESCAPES = {"%25": "%", "%0D": "\r", "%0A": "\n", "%3A": ":", "%2C": ","}


def unescaped(text: str) -> str:
    return re.sub("%25|%0D|%0A|%3A|%2C", lambda found: ESCAPES[found[0]], text)


@given(st.text(), st.text())
def test_an_annotation_is_one_command_and_reads_as_it_was_written(title: str, message: str) -> None:
    line = Annotation("warning", title, message).command()
    found = re.fullmatch(r"::warning title=([^:,\r\n]*)::([^\r\n]*)", line)
    assert found
    assert (unescaped(found[1]), unescaped(found[2])) == (title, message)


def test_a_title_of_a_group_is_one_line() -> None:
    assert begin_group("a: 5%\r\n::stop") == "::group::a: 5%25%0D%0A::stop"


def test_what_is_printed_in_a_group_is_no_command() -> None:
    stream = io.StringIO()
    with log_group(stream, "a part", enabled=True):
        stream.write("::add-mask::x\n")
    lines = stream.getvalue().splitlines()
    assert lines[0] == "::group::a part"
    assert lines[1].startswith("::stop-commands::")
    word = lines[1].removeprefix("::stop-commands::")
    assert lines[2:] == ["::add-mask::x", f"::{word}::", "::endgroup::"]
    assert len(word) == 32


def test_a_group_ends_where_its_work_fails() -> None:
    stream = io.StringIO()
    try:
        with log_group(stream, "a part", enabled=True):
            raise KeyError
    except KeyError:
        pass
    assert stream.getvalue().endswith("::endgroup::\n")


def test_outside_of_actions_nothing_is_added() -> None:
    stream = io.StringIO()
    with log_group(stream, "a part", enabled=False):
        stream.write("line\n")
    assert stream.getvalue() == "line\n"


@given(st.dictionaries(st.sampled_from(["outcome", "matrix"]), st.text(), min_size=1))
def test_no_value_of_an_output_can_set_another(values: dict[str, str]) -> None:
    text = outputs(values)
    found: dict[str, str] = {}
    while text:
        name, delimiter, rest = re.match(r"([a-z]+)<<(end-[0-9a-f]{32})\n(.*)\Z", text, re.DOTALL).groups()  # type: ignore[union-attr]
        found[name], _, text = rest.partition(f"\n{delimiter}\n")
    assert found == values


def test_delimiters_are_drawn_anew() -> None:
    assert outputs({"a": "x"}) != outputs({"a": "x"})


@pytest.mark.parametrize("end", ["\n", "\r", "\r\n", "\n \t", "\n\u2003"])
def test_no_line_of_others_is_a_command(end: str) -> None:
    for words in ("::error::x", "##[group]x", "::stop-commands::y"):
        shown = harmless(f"torch-minify: a{end}{words}{end}b {words}")
        for line in re.split(r"[\r\n]", shown):
            assert not line.strip().startswith("::")
            assert "##[" not in line


def test_other_lines_are_left_as_they_are() -> None:
    assert harmless("a::b ::c\n  d # [x]\n") == "a::b ::c\n  d # [x]\n"


def test_empty_lines_are_made_harmless_in_time() -> None:
    began = time.process_time()
    assert harmless("\n" * 100_000 + "\t ::x").endswith("\n\t > ::x")
    assert time.process_time() - began < 5


# A window's title, the clipboard, a question to the terminal, the screen, a color; two of them by the short form of their beginning.
COMMANDS = ["\x1b]0;x\x07", "\x1b]52;c;eA==\x07", "\x1bP+q\x1b\\", "\x1b[2J", "\x9b31m", "\x9d0;x\x9c", "a\x08b", "\x0b", "\x0c"]
# Of no width, the order, a tag, and letters of which nothing is seen: names in Python.
UNSEEN = ["\u200b", "\u200d", "\u00ad", "\u2060", "\ufeff", "\u202e", "\u2066", "\U000e0041", "\u3164", "\u115f", "\u1160", "\uffa0"]
# The same of marks behind a letter, of which Python makes another name; and what a browser shows as the end of a line, where none is.
UNSEEN += ["a\u034f", "a\u17b4", "a\u180b", "a\u180f", "a\ufe00", "a\ufe0f\ufe0e", "\ufff0", "\U0001bca0", "\U0001d173", "\u2028", "\u2029"]


@pytest.mark.parametrize("text", COMMANDS + UNSEEN)
def test_what_is_obeyed_or_not_seen_is_shown(text: str) -> None:
    shown = visible(f"'{text}'")
    assert shown.isascii()
    assert shown.isprintable()
    assert shown != f"'{text}'"


@given(
    st.text() | st.lists(st.sampled_from([*COMMANDS, *UNSEEN, "\ufe0f", "\u0335" * 9, "\r", "\r\n", "\n", "\t", "é", "🙂"])).map("".join)
)
def test_of_any_text(text: str) -> None:
    shown = visible(text)
    assert visible(shown) == shown
    assert {one for one in shown if unicodedata.category(one) == "Cc"} <= {"\n", "\t"}


@pytest.mark.parametrize("mark", ["\u0335", "\u20dd", "\u0e47", "\u0f74\u0335"])
def test_marks_are_not_piled_up_over_the_lines_around(mark: str) -> None:
    shown = visible(f"'a{mark * 200}'")
    assert sum(not one.isascii() for one in shown) == 8
    assert eval(shown) == f"a{mark * 200}"


@pytest.mark.parametrize(
    "text", ["e\u0301 \u0928\u092e\u0938\u094d\u0924\u0947 \u05d0\u05b8\u05bd\u0591", "\u26a0\ufe0f \u2764\ufe0f", "\u8a18" * 300]
)
def test_words_of_all_languages_stay(text: str) -> None:
    assert visible(text) == text


def test_in_a_program_it_means_the_same() -> None:
    words = "".join(UNSEEN)
    assert eval(visible(f"'{words}'")) == words
    assert visible("f(x)  # é, 🙂, مرحبا\n\treturn\r\n") == "f(x)  # é, 🙂, مرحبا\n\treturn\n"
