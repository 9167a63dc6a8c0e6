"""What to run and how: the user's program, as a command line names it."""

from __future__ import annotations

import ast
import os
import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import takewhile
from pathlib import Path

from bot.sandbox import environment
from bot.sandbox.sandbox import Sandbox

# Python's own options: those that take a value, and those that do not. None of them changes what the compiler does.
_VALUED, _FLAGS = "WX", "bBdEiIOPqRsSuvx"
_ASSIGNMENT = re.compile(r"[A-Za-z_][A-Za-z0-9_]*=")


# Launchers that start one process for each rank, and their modules.
_LAUNCHERS = {"torchrun": "torch.distributed.run", "accelerate": "accelerate.commands.launch"}


class CommandError(Exception):
    """A `--command` that does not start a Python program."""


@dataclass(frozen=True)
class Target:
    """What to run: a script with arguments, or a module (`python -m NAME`), with `variables` of the environment set."""

    script: Path | None
    module: str | None
    argv: tuple[str, ...]
    variables: tuple[tuple[str, str], ...] = ()

    @property
    def file(self) -> str | None:
        """The program's own file, if the command names one."""
        if self.script:
            return str(self.script)
        if self.starts_ranks:
            return next((word for word in self.argv if word.endswith(".py")), None)
        named = {test.partition("::")[0] for test in self.tests or ()}
        return named.pop() if len(named) == 1 else None

    @property
    def tests(self) -> tuple[str, ...] | None:
        """The tests that it names, or their files, as pytest does: `FILE::CLASS::TEST`. Dotted names for `unittest` are looked up from the
        working directory. None if it runs no tests."""
        if self.module == "unittest":
            return tuple(found for word in self.argv if (found := _in_file(word)))
        return tuple(word for word in self.argv if ".py" in word) if self.module == "pytest" else None

    @property
    def starts_ranks(self) -> bool:
        """Whether it starts its file once for each rank of a distributed program."""
        return self.module in _LAUNCHERS.values()

    @property
    def arguments(self) -> tuple[str, ...]:
        """The `sys.argv[1:]` of the program's own file."""
        if self.starts_ranks:
            return self.argv[self.argv.index(self.file) + 1 :] if self.file is not None else ()
        return self.argv if self.tests is None else ()

    @property
    def text(self) -> str:
        """The content of the program's own file; empty if there is none."""
        file = self.file
        return Path(file).read_text(encoding="utf-8", errors="replace") if file is not None and os.path.isfile(file) else ""

    @property
    def names_a_gpu(self) -> bool:
        """Whether the program's own file mentions CUDA."""
        return "cuda" in self.text

    def hand_over_variables(self) -> None:
        """Set the variables of the command for everything that is started from here on: the program, its control, the candidates. Variables
        that the program's own file names are passed on as well, as when it runs alone: often, one of them is what switches it on."""
        environment.hand_over(dict(self.variables), os.environ)
        environment.pass_what_is_named(self.text, os.environ)

    @property
    def name(self) -> str:
        """What tracebacks call the program's own file."""
        if self.script:
            return self.script.name
        if self.module == "pytest":
            return next((Path(test.partition("::")[0]).name for test in self.tests or ()), self.module)
        return Path(self.file).name if self.file else (self.module or "").rpartition(".")[2] + ".py"


@dataclass(frozen=True)
class Launch:
    """How a program is started: the interpreter, the working directory, the whole environment, the arguments, the sandbox (`box`), and the
    directories that it may `write` to there. `linked`: it starts in a directory of its own, with links to the content of `cwd`."""

    python: str
    cwd: Path
    env: Mapping[str, str]
    argv: tuple[str, ...] = ()
    box: Sandbox | None = None
    write: tuple[Path, ...] = ()
    linked: bool = False


def only_defines_tests(text: str) -> bool:
    """Whether the script `text` has tests, as pytest or unittest find them, and calls nothing that would run them."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    bodies = (tree.body, *(node.body for node in tree.body if isinstance(node, ast.ClassDef)))
    tests = {node.name for body in bodies for node in body if isinstance(node, ast.FunctionDef) and node.name.startswith("test")}
    calls = [node.func for node in ast.walk(tree) if isinstance(node, ast.Call)]
    called = {call.attr if isinstance(call, ast.Attribute) else call.id for call in calls if isinstance(call, (ast.Attribute, ast.Name))}
    return bool(tests) and not called & {*tests, "main", "run_tests", "run"}


def _in_file(name: str) -> str | None:
    """What `python -m unittest NAME` runs, as `FILE::CLASS::TEST`; None if there is no such file here."""
    if name.endswith(".py") and os.path.isfile(name):
        return name
    parts = name.split(".")
    files = ((count, Path(*parts[: count - 1], f"{parts[count - 1]}.py")) for count in range(len(parts), 0, -1))
    return next(("::".join([str(file), *parts[count:]]) for count, file in files if os.path.isfile(file)), None)


def target_of_command(command: str) -> Target:
    """The Python program that the command line `command` runs. Assignments may come before it, as in a shell and after `env`. Raises
    CommandError if it is not `pytest ...`, `python SCRIPT ...`, `python -m MODULE ...`, `torchrun ...` or `accelerate launch ...`."""
    try:
        words = shlex.split(command)
    except ValueError as error:
        raise CommandError(f"cannot read the command: {error}") from error
    if not words:
        raise CommandError("the command is empty")
    words = words[1:] if words[0] == "env" else words
    variables = [(name, value) for name, _, value in (word.partition("=") for word in takewhile(_ASSIGNMENT.match, words))]
    words = words[len(variables) :]
    if not words:
        raise CommandError("the command names no program")
    return replace(_program(words), variables=tuple(variables))


def _program(words: list[str]) -> Target:
    """What the words of a command run. Raises CommandError if that is not a Python program."""
    first, rest = Path(words[0]).name, words[1:]
    if first in ("pytest", "py.test"):
        return Target(None, "pytest", tuple(rest))
    if first in _LAUNCHERS and (first != "accelerate" or rest[:1] == ["launch"]):
        return Target(None, _LAUNCHERS[first], tuple(rest[first == "accelerate" :]))
    if re.fullmatch(r"python[0-9.]*", first):
        found = _of_python(rest)
        if found is not None:
            return found
    known = "'pytest ...', 'python SCRIPT ...', 'python -m MODULE ...', 'torchrun ...' or 'accelerate launch ...'"
    raise CommandError(f"{words[0]!r} is not a Python program: use {known}")


def _of_python(words: list[str]) -> Target | None:
    """What an interpreter's arguments run; None for code in the command or on standard input. Raises CommandError if one of them is not a
    known option."""
    while words and words[0].startswith("-") and words[0] != "-":
        word, words = words[0], words[1:]
        for place, letter in enumerate(word[1:], 2):
            tail = [word[place:]] if word[place:] else []
            if letter == "c":
                return None
            if letter == "m":
                module = [*tail, *words]
                return Target(None, module[0], tuple(module[1:])) if module else None
            if letter in _VALUED:
                words = words if tail else words[1:]
                break
            if letter not in _FLAGS:
                raise CommandError(f"{word!r} is no option that torch-minify knows of Python's")
    return Target(Path(words[0]), None, tuple(words[1:])) if words and words[0] != "-" else None
