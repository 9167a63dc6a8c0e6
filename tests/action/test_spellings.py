"""Each way in which a program writes a secret of the machine is one that is looked for."""

from __future__ import annotations

import html
import json
import shlex
import urllib.parse
from collections.abc import Callable

import pytest

from bot.action.spellings import spellings

SECRET = "pa'ss \"w/örd\\<1>"


@pytest.mark.parametrize(
    "write",
    [
        str,
        lambda text: repr(text)[1:-1],
        lambda text: repr(text + "'\"")[1:-1].removesuffix("\\'\""),  # which quotation mark is escaped depends on others in the string
        lambda text: ascii(text)[1:-1],
        lambda text: repr(text.encode())[2:-1],
        lambda text: json.dumps(text)[1:-1],
        lambda text: json.dumps(text, ensure_ascii=False)[1:-1],
        lambda text: json.dumps(json.dumps(text)[1:-1])[1:-1],
        html.escape,
        lambda text: html.escape(text, quote=False),
        shlex.quote,
        urllib.parse.quote,
        urllib.parse.quote_plus,
        lambda text: urllib.parse.quote(text, safe=""),
    ],
)
def test_a_text_in_each_way(write: Callable[[str], str]) -> None:
    assert write(SECRET) in spellings(SECRET)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("first1234\n  second1234  ", {"first1234", "second1234"}),
        ("word\nanother word", set()),  # anybody could guess them
        (f"key\n{'x' * 32}", {"x" * 32}),
        ("short1\nx", set()),
    ],
)
def test_each_line_that_nobody_could_guess_is_looked_for_alone(text: str, found: set[str]) -> None:
    assert spellings(text) & {line.strip() for line in text.splitlines()} == found


def test_of_a_very_long_text_not_each_line_is_looked_for() -> None:
    found = spellings("\n".join(f"line-{number}" for number in range(1000, 2000)))
    assert "line-1000" in found
    assert "line-1999" not in found


def test_what_is_no_utf_8_is_written_too() -> None:
    assert "%FF-secret-1" in spellings("\udcff-secret-1")
