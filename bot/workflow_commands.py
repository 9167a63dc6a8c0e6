"""Workflow commands: lines that the runner of GitHub Actions obeys instead of printing, and the file of a step's outputs; text of others,
of which neither the runner nor a terminal obeys anything.

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
# What a terminal obeys (all control characters but the tab and the end of a line), what turns the order of what follows, and what takes no
# room: some of that makes another name of a name, or is one by itself (the fillers of Hangul). And what browsers
# take for the end of a line, as no program does.
_UNSEEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164\ufeff\uffa0"
    "\ufff0-\ufffb\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)
# Behind other characters than those of names they say which of an emoji's forms it is.
_VARIANT = re.compile("(?<=\\w)[\ufe00-\ufe0f]+")
# Marks that stand over the character before them, one over the other, cover the lines around: no language has that many.
_MOST_MARKS = 8
_MAY_PILE = re.compile(f"[^\x00-\x7f]{{{_MOST_MARKS + 1},}}")
# What follows so many blanks, tabs as eight, lies out of sight where a page scrolls a block of code sideways.
_FAR = re.compile(r"(?<![^\S\n])[^\S\n]{80,}(?=\S)")


# A command begins a line behind blanks, one of the old form stands anywhere (actions/runner, ActionCommand.cs, TryParseV2 and TryParse).
_BEGINS = re.compile(r"^([^\S\n]*)(?=::)", re.MULTILINE)


def visible(text: str) -> str:
    """`text` with its Python escapes in place of such characters, which mean the same in a string; a carriage return ends a line."""
    text = _UNSEEN.sub(_escaped, text.replace("\r\n", "\n").replace("\r", "\n"))
    return _MAY_PILE.sub(lambda found: _flat(found[0]), _VARIANT.sub(_escaped, text))


def _escaped(found: re.Match[str]) -> str:
    return ascii(found[0])[1:-1]


def _flat(text: str) -> str:
    """`text` with escapes in place of marks behind many others."""
    kept, piled = [], 0
    for one in text:
        piled = piled + 1 if unicodedata.category(one) in ("Mn", "Me") else 0
        kept.append(one if piled <= _MOST_MARKS else ascii(one)[1:-1])
    return "".join(kept)


def near(line: str) -> str:
    """A `line` of code in which nothing lies far behind blanks."""
    return _FAR.sub(" … ", _wide(line))


def unseen(line: str) -> str:
    """What a page does not show of a `line` of code though it is there: what lies far behind blanks; the line, where characters in it take
    no room, or turn the order of others. Empty where it shows all."""
    wide = _wide(line)
    far = _FAR.search(wide)
    return wide[far.end() :] if far else line.strip() if visible(line) != line else ""


def _wide(line: str) -> str:
    # braille's empty cell is a letter, and blank
    return line.replace("\u2800", " ").expandtabs()


def harmless(text: str) -> str:
    """`text` of others in which no line is a command to the runner, whichever line ends it has, and no character one to a terminal."""
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
        """The line that makes it."""
        return f"::{self.level} title={_property(self.title)}::{_data(self.message)}"


@contextmanager
def log_group(stream: TextIO, title: str, *, enabled: bool) -> Iterator[None]:
    """A group named `title` in the log, in which the runner obeys no line of `stream`: programs of others print there.

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
