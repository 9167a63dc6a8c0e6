"""Workflow commands: lines that the runner of GitHub Actions obeys instead of printing, and the file of a step's outputs.

The engine and the Action both write them, so this module stands below both. The escapes are those of GitHub's own toolkit,
`packages/core/src/command.ts`.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Literal, TextIO

END_GROUP = "::endgroup::"


# A command begins a line behind blanks, one of the old form stands anywhere (actions/runner, ActionCommand.cs, TryParseV2 and TryParse).
_BEGINS = re.compile(r"^(\s*)(?=::)", re.MULTILINE)


def harmless(text: str) -> str:
    """`text` of others in which no line is a command, whichever line ends it has."""
    return _BEGINS.sub(r"\1> ", text.replace("\r", "\n")).replace("##[", "# #[")


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
