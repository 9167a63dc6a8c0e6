"""How a repository runs one of its tests: the input `test-command`, split into what the engine can run.

The engine only starts Python programs, so whatever surrounds one is taken off here: a directory, variables, a shell, and programs like `uv
run` that choose the interpreter. Anything left over is refused now, not an hour later by the machine with the GPU.
"""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import PurePosixPath

NODEID = "{nodeid}"

_ASSIGNMENT = re.compile(r"[A-Za-z_][A-Za-z0-9_]*=")
_INTERPRETER = re.compile(r"python[0-9.]*")
_PYTEST = ("pytest", "py.test")
# Python's own options that take a value; `-m` is separate, since its value is the program. `-c` leaves no file to minimize.
_VALUED = ("-W", "-X")
# Programs that run another one in an environment of theirs: the words before that other one.
_LAUNCHERS = (("uv", "run"), ("poetry", "run"), ("pdm", "run"), ("hatch", "run"), ("pipenv", "run"), ("rye", "run"))
# Their options that take a value as a separate word.
_LAUNCHER_VALUED = frozenset({"--python", "-p", "--extra", "--group", "--package", "--project", "--directory", "--with", "-e", "--env"})
_SHELLS = ("bash", "sh", "dash", "zsh")


class TemplateError(ValueError):
    """A command that the engine cannot run. The message is for people."""


@dataclass(frozen=True)
class CommandTemplate:
    """A test command split into its parts.

    `words` is a Python program with `{nodeid}` in it; `assignments` (`NAME=value`) come before it, `directory` is where it runs, relative
    to the checkout, and `launcher` what has to come before it so that it finds its interpreter.
    """

    words: tuple[str, ...]
    assignments: tuple[str, ...] = ()
    directory: str = ""
    launcher: tuple[str, ...] = ()

    def command(self, test: str) -> str:
        """The command for the id `test`, which comes from logs: it stays one word, however the template is quoted."""
        if _runs_unittest(self.words):
            test = _dotted(test)
        filled = [word.replace(NODEID, test) for word in self.words]
        names = [(name, value) for name, _, value in (each.partition("=") for each in self.assignments)]
        return " ".join([*(f"{name}={shlex.quote(value)}" for name, value in names), shlex.join(filled)])


def parse(text: str) -> CommandTemplate:
    """The template in `text`. Raises TemplateError if it cannot be run."""
    if text.count(NODEID) != 1:
        raise TemplateError("must hold {nodeid} once")
    if f"{{{NODEID}" in text or f"{NODEID}}}" in text:
        raise TemplateError("must hold {nodeid} with one brace on each side")
    return _parse(text, CommandTemplate(()), 0)


def _runs_unittest(words: tuple[str, ...]) -> bool:
    """Whether unittest runs the test. To pytest the same words are an expression of marks."""
    options = set(pairwise(words))
    return ("-m", "unittest") in options and ("-m", "pytest") not in options and PurePosixPath(words[0]).name not in _PYTEST


def _dotted(test: str) -> str:
    """Unittest's name for the test with pytest's id `test`."""
    file, colons, qualified = test.partition("::")
    module = file.removesuffix(".py").removeprefix("./").replace("/", ".")
    return f"{module}.{qualified.replace('::', '.')}" if colons else file


def _parse(text: str, around: CommandTemplate, depth: int) -> CommandTemplate:
    if depth > 3:
        raise TemplateError("has too many shells in each other")
    *before, last = _commands(text)
    for part in before:
        words = shlex.split(part)
        if len(words) == 2 and words[0] == "cd":
            around = replace(around, directory=inner_path(around.directory, words[1]))
        elif words and words[0] == "export" and all(_ASSIGNMENT.match(word) for word in words[1:]):
            around = replace(around, assignments=(*around.assignments, *words[1:]))
        else:
            raise TemplateError(f"runs {part.strip()[:60]!r} first; put what prepares the checkout into the input `setup`")
    words = shlex.split(last)
    if words and words[0] == "env":
        words = words[1:]
    while words and _ASSIGNMENT.match(words[0]):
        around, words = replace(around, assignments=(*around.assignments, words[0])), words[1:]
    if not words:
        raise TemplateError("names no program")
    if PurePosixPath(words[0]).name in _SHELLS:
        return _parse(_inside_shell(words), around, depth + 1)
    return _program(words, around)


def _commands(text: str) -> list[str]:
    """The commands joined by `&&`. Anything else that a shell would do is refused, since no shell runs the command."""
    lexer = shlex.shlex(text, posix=False, punctuation_chars="&|;<>()")
    lexer.whitespace_split, lexer.commenters = True, ""
    parts: list[list[str]] = [[]]
    try:
        for token in lexer:
            if token == "&&":
                parts.append([])
            elif set(token) <= set("&|;<>()"):
                raise TemplateError(
                    f"has {token!r} in it, which takes a shell: only `cd DIRECTORY &&` and variables may stand before the program"
                )
            else:
                if not token.startswith("'") and re.search(r"`|\$[({\w]", token):
                    raise TemplateError(f"has {token[:40]!r} in it, which takes a shell")
                parts[-1].append(token)
        found = [" ".join(part) for part in parts]
        for part in found:
            shlex.split(part)
    except ValueError as error:
        if isinstance(error, TemplateError):
            raise
        raise TemplateError(f"has a quotation mark that is not closed ({error})") from None
    return found


def _inside_shell(words: list[str]) -> str:
    """The command passed to a shell with `-c`, alone or combined with other letters."""
    for place, word in enumerate(words[1:], 1):
        if re.fullmatch(r"-[a-z]*c", word) and place + 1 < len(words):
            if len(words) > place + 2:
                raise TemplateError("gives a shell arguments behind its command")
            return words[place + 1]
        if not word.startswith("-"):
            break
    raise TemplateError(f"runs {words[0]!r} without -c: a script cannot be taken apart")


def inner_path(base: str, path: str) -> str:
    """The directory `path` relative to `base`, both below the checkout. Raises TemplateError if it leads out of the checkout."""
    joined = PurePosixPath(base, path)
    parts: list[str] = []
    for part in joined.parts:
        if part == "..":
            if not parts:
                raise TemplateError(f"changes to {path!r}, outside of the checkout")
            parts.pop()
        else:
            parts.append(part)
    if joined.is_absolute() or path.startswith("~"):
        raise TemplateError(f"changes to {path!r}, outside of the checkout")
    return str(PurePosixPath(*parts)) if parts else ""


def _program(words: list[str], around: CommandTemplate) -> CommandTemplate:
    for launcher in _LAUNCHERS:
        if tuple(words[:2]) == launcher:
            end = 2
            while end < len(words) and words[end].startswith("-"):
                if words[end] == "--":
                    end += 1
                    break
                end += 2 if words[end] in _LAUNCHER_VALUED else 1
            return _program(words[end:], replace(around, launcher=tuple(words[:end])))
    if words and words[0] == "tox":
        return _tox(words, around)
    if not words:
        raise TemplateError("names no program")
    first = PurePosixPath(words[0]).name
    ranks = first == "torchrun" or (first == "accelerate" and words[1:2] == ["launch"])
    if not ranks and first not in _PYTEST and not (_INTERPRETER.fullmatch(first) and _runs_a_file(words[1:])):
        raise TemplateError(f"runs {words[0]!r}, which is no Python program: use pytest, python SCRIPT, python -m MODULE or torchrun")
    if not any(NODEID in word for word in words[1:]):
        raise TemplateError("has {nodeid} where no argument of the program is")
    return replace(around, words=tuple(words))


def _runs_a_file(words: list[str]) -> bool:
    """Whether an interpreter with these arguments runs a script or a module."""
    while words and words[0].startswith("-"):
        if words[0] == "-m":
            return len(words) > 1
        if re.fullmatch(r"-[bBdEiIOPqRsSuvx]+", words[0]):
            words = words[1:]
        elif words[0] in _VALUED:
            words = words[2:]
        elif words[0].startswith(_VALUED):
            words = words[1:]
        else:
            return False
    return bool(words)


def _tox(words: list[str], around: CommandTemplate) -> CommandTemplate:
    """`tox -e ENV -- ARGUMENTS`: pytest with these arguments in that environment, as in nearly every tox.ini."""
    if "--" not in words or not any(NODEID in word for word in words[words.index("--") :]):
        raise TemplateError("runs tox without the test behind `--`")
    end = words.index("--")
    options, rest = words[1:end], words[end + 1 :]
    if options[:1] in (["run"], ["r"]):
        options = options[1:]
    return replace(around, words=("pytest", *rest), launcher=("tox", "exec", *options, "--"))
