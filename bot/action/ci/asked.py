"""The commands of pytest's in a log, and the tests that they name."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise, takewhile

from bot.action.ci.failing_test import NO_HINT, Hint, allowed_variables, repository_path

_PYTEST = "pytest "
# Of a command, between words or not.
_ID = re.compile(
    r"""(?<![^\s`])(?:(?P<quote>['"])(?P<quoted>[^\s'"-][^\s'"]{0,500}\.py::[^'"]{1,500})(?P=quote)"""
    r"""|(?P<bare>[^\s:`'"-][^\s:`'"]{0,500}\.py::[^\s`'"]{1,500}))"""
)
_FILE = re.compile(r"[\w./][\w./-]{0,500}\.py", re.ASCII)
# One test, and not the beginning of the names of some.
_NAME = re.compile(r"""(?P<quote>['"]?)(?P<name>test_\w{1,200})(?P=quote)`?""", re.ASCII)
# A test of a file, which some command selects by a part of its name.
_OF_FILE = re.compile(
    r"(?P<variables>(?:[A-Za-z_]\w{0,100}=\S{0,300} {1,3}){0,9})(?:python3? {1,3})?(?P<file>[\w./-]{1,300}\.py)"
    r"""(?: {1,3}-\S{1,60}){0,5}? {1,3}-k {1,3}(?P<quote>['"]?)(?P<name>test_\w{1,200})(?P=quote)(?![\w'"]| (?:or|and) )""",
    re.ASCII,
)
# What a sentence has behind a command.
_PUNCTUATION = ").,;:"
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w{0,100}=\S{0,300}", re.ASCII)


@dataclass(frozen=True)
class CommandedTest:
    """A test that a command names: what pytest calls it, without its class where the command has none, with a `hint` then."""

    test: str
    hint: Hint = NO_HINT

    @property
    def name(self) -> str:
        """The test's own, without its file and class."""
        return self.test.rpartition("::")[2]


def commanded(lines: list[str]) -> Iterator[str]:
    """The ids that commands in `lines` tell pytest to run."""
    for line in lines:
        if ".py::" in line[:2000] and _PYTEST in line[:2000]:
            yield from (found["quoted"] or found["bare"] for found in _ID.finditer(line[line.index(_PYTEST) : 4000]))


def asked(lines: list[str]) -> CommandedTest | None:
    """The test that the only command in `lines` names, by its id or by `-k`; None where there is none, or another one."""
    found = {CommandedTest(test) for test in commanded(lines)} or set(_selected(lines))
    return found.pop() if len(found) == 1 else None


def alone(lines: list[str]) -> CommandedTest | None:
    """The test that the only command in `lines` names, of pytest's or of a program that selects it with `-k`; None where there is none."""
    by_programs = {test for line in lines if (test := _selected_by_program(line))}
    return asked(lines) or (by_programs.pop() if len(by_programs) == 1 else None)


def _selected_by_program(line: str) -> CommandedTest | None:
    """The test that the first command of another program than pytest on a `line` selects with `-k`; None where there is none."""
    found = _OF_FILE.search(line[:2000]) if " -k " in line[:2000] else None
    if found is None:
        return None
    file = repository_path(found["file"])
    return CommandedTest(
        f"{file}::{found['name']}", Hint(allowed_variables(found["variables"]), f"python {shlex.quote(file)} -k {found['name']}")
    )


def _selected(lines: list[str]) -> Iterator[CommandedTest]:
    for line in lines:
        if " -k " not in line[:2000] or _PYTEST not in line[:2000]:
            continue
        before, _, behind = line[:4000].partition(_PYTEST)
        words = behind.split()
        files = [word for word in words if _FILE.fullmatch(word)]
        names = [_NAME.fullmatch(name.rstrip(_PUNCTUATION)) for option, name in pairwise(words) if option == "-k"]
        if len(files) == len(names) == 1 and names[0] and not before[-1:].strip(" `$+>/"):
            file, name = repository_path(files[0]), names[0]["name"]
            left = before.removesuffix("python -m ").removesuffix("python3 -m ").replace("`", " ").split()
            variables = takewhile(_ASSIGNMENT.fullmatch, reversed(left))
            hint = Hint(allowed_variables(" ".join([*variables][::-1])), f"pytest {shlex.quote(file)} -k {name}")
            yield CommandedTest(f"{file}::{name}", hint)
