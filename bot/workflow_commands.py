"""Workflow commands: lines that the GitHub Actions runner obeys instead of printing, and the file of a step's outputs. Also other people's
text, made harmless: neither the runner nor a terminal obeys anything in it.

The engine and the Action both write them, so this module stands below both. The escapes are those of GitHub's own toolkit,
`packages/core/src/command.ts`.
"""

from __future__ import annotations

import re
import secrets
import unicodedata
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Literal, TextIO

END_GROUP = "::endgroup::"
# What a terminal obeys (all control characters except tab and newline), what changes the order of what follows, and what has no width: some
# of these make another name of a name, or are one by themselves (the Hangul fillers). Also what only browsers take for the end of a line.
_UNSEEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164\ufeff\uffa0"
    "\ufff0-\ufffb\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)
# Variation selectors. Except after the characters of a name, they select the form of an emoji.
_VARIANT = re.compile("(?<=\\w)[\ufe00-\ufe0f]+")
# Marks that are stacked on the character before them cover the lines around: no language has that many.
_MOST_MARKS = 8
_MAY_PILE = re.compile(f"[^\x00-\x7f]{{{_MOST_MARKS + 1},}}")
# What follows this many blanks (a tab is eight) is out of sight where a page scrolls a block of code sideways.
_FAR = re.compile(r"(?<![^\S\n])[^\S\n]{80,}(?=\S)")


# A command begins a line, after blanks; one of the old form may be anywhere (actions/runner, ActionCommand.cs, TryParseV2 and TryParse).
_BEGINS = re.compile(r"^([^\S\n]*)(?=::)", re.MULTILINE)


def visible(text: str) -> str:
    """`text` with Python escapes for such characters, which mean the same in a string; a carriage return ends a line."""
    text = _UNSEEN.sub(_escaped, text.replace("\r\n", "\n").replace("\r", "\n"))
    return _MAY_PILE.sub(lambda found: _flat(found[0]), _VARIANT.sub(_escaped, text))


def _escaped(found: re.Match[str]) -> str:
    return ascii(found[0])[1:-1]


def _flat(text: str) -> str:
    """`text` with escapes for marks that follow many others."""
    kept, piled = [], 0
    for one in text:
        piled = piled + 1 if unicodedata.category(one) in ("Mn", "Me") else 0
        kept.append(one if piled <= _MOST_MARKS else ascii(one)[1:-1])
    return "".join(kept)


def near(line: str) -> str:
    """A `line` of code in which nothing is out of sight behind blanks."""
    return _FAR.sub(" … ", _wide(line))


def unseen(line: str) -> str:
    """What a page does not show of a `line` of code: what lies far behind blanks, or the line itself if characters in it have no width, or
    change the order of others. Empty if it shows everything."""
    wide = _wide(line)
    far = _FAR.search(wide)
    return wide[far.end() :] if far else line.strip() if visible(line) != line else ""


def _wide(line: str) -> str:
    # the empty braille cell counts as a letter, and is blank; the blank of Chinese and Japanese is as wide as two
    return line.replace("\u2800", " ").replace("\u3000", "  ").expandtabs()


def harmless(text: str) -> str:
    """Other people's `text` in which no line is a command to the runner, whatever line ends it has, and no character is one to a
    terminal."""
    return _BEGINS.sub(r"\1> ", visible(text)).replace("##[", "# #[")


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")


def begin_group(title: str) -> str:
    """The line that begins a group in the log with the given `title`; `END_GROUP` ends it."""
    return f"::group::{_data(title)}"


@dataclass(frozen=True)
class Annotation:
    """A message that GitHub shows on the page of the run."""

    level: Literal["notice", "warning", "error"]
    title: str
    message: str

    def command(self) -> str:
        """The line that creates it."""
        return f"::{self.level} title={_property(self.title)}::{_data(self.message)}"


@contextmanager
def log_group(stream: TextIO, title: str, *, enabled: bool) -> Iterator[None]:
    """A group named `title` in the log, in which the runner obeys no line of `stream`: other people's programs print there.

    Nothing is written unless `enabled`.
    """
    if not enabled:
        yield
        return
    token = secrets.token_hex(16)
    stream.write(f"{begin_group(title)}\n::stop-commands::{token}\n")
    stream.flush()
    try:
        yield
    finally:
        stream.write(f"::{token}::\n{END_GROUP}\n")
        stream.flush()


def outputs(values: Mapping[str, str]) -> str:
    """The lines for `GITHUB_OUTPUT` that set each name in `values`.

    The delimiter is random, so that no value can end itself and set another.
    """
    lines = []
    for name, value in values.items():
        delimiter = f"end-{secrets.token_hex(16)}"
        lines.append(f"{name}<<{delimiter}\n{value}\n{delimiter}\n")
    return "".join(lines)
