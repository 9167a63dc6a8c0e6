"""The grammar of `/minify`."""

from __future__ import annotations

import argparse
import difflib
import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NoReturn

from bot.action.gate.page import COMMAND, command_lines
from bot.models.failure import Stage
from bot.models.request import RequestOptions
from bot.units import duration

Verb = Literal["minify", "help", "stop", "again", "doctor"]
VERBS: tuple[Verb, ...] = ("help", "stop", "again", "doctor")
MAX_COMMANDS = 3
MAX_LINE = 2_000
SHORTEST, LONGEST = 60.0, 6 * 3600.0

_RUN_URL = re.compile(
    r"(?P<server>https?://[\w.:-]+)/(?P<repository>[\w.-]+/[\w.-]+)/actions/runs/(?P<run>[0-9]{1,18})"
    r"(?:/attempts/(?P<attempt>[0-9]{1,6}))?(?:/jobs?/(?P<job>[0-9]{1,18}))?/?(?:[?#]\S*)?"
)
_PYTHON = re.compile(r"3\.[0-9]{1,2}")
_TORCH = re.compile(r"(?:nightly|[0-9]{1,2}\.[0-9]{1,2}(?:\.[0-9]{1,2})?(?:(?:a|b|rc|\.dev|\.post)[0-9]{1,10})?)(?:\+[a-z0-9]{1,20})?")
# Phones turn quotes and two dashes into these, and keyboards produce blanks that a shell does not know.
_TYPOGRAPHY = {0x201C: '"', 0x201D: '"', 0x2018: "'", 0x2019: "'"} | {one: " " for one in range(0x10000) if chr(one).isspace()}
# Words that look more like a different option than the one that is meant.
_MEANT = {"gpu": "cuda"}
_DASHES = re.compile(r"(?<!\S)[–—](?=[a-z])")


class CommandSyntaxError(Exception):
    """What is wrong with a command, in a sentence for its author."""


@dataclass(frozen=True)
class RunUrl:
    """A run, or an attempt of it or a job in it, as given by its address."""

    server: str
    repository: str
    run: int
    job: int | None = None
    attempt: int | None = None


@dataclass(frozen=True)
class Command:
    """One line that asks for something."""

    verb: Verb = "minify"
    url: RunUrl | None = None
    test: str | None = None
    options: RequestOptions = field(default_factory=RequestOptions)


class _Once(argparse.Action):
    """An option that may be given only once: otherwise the last of two would win silently."""

    def __call__(self, parser: argparse.ArgumentParser, namespace: argparse.Namespace, values: Any, option: str | None = None) -> None:
        if getattr(namespace, self.dest) is not None:
            raise CommandSyntaxError(f"{option} is given twice.")
        if values == []:  # for `--option=--`, which argparse took for the end of all options (python/cpython#109475)
            raise CommandSyntaxError(f"{option}: expected one argument.")
        setattr(namespace, self.dest, values)


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        message = message.removeprefix("argument ")
        raise CommandSyntaxError(f"{message.rstrip('.')}.{_suggest_choice(message)}")


def _suggest(word: str, known: Sequence[str]) -> str:
    near = difflib.get_close_matches(word.lower(), known, n=1, cutoff=0.5)
    return f" Did you mean `{near[0]}`?" if near else ""


def _suggest_choice(message: str) -> str:
    """A suggestion for argparse's message about a value that is not allowed."""
    found = re.match(r"(--[\w-]+): invalid choice: '([^']*)'", message)
    return _suggest(_MEANT.get(found[2].lower(), found[2]), _OPTIONS[found[1]]["choices"]) if found else ""


def _budget(text: str) -> float:
    seconds = duration(text)
    if not SHORTEST <= seconds <= LONGEST:
        raise argparse.ArgumentTypeError(f"{text!r} is not between 1m and 6h")
    return seconds


def _matching(pattern: re.Pattern[str], what: str) -> Any:
    def check(text: str) -> str:
        if not pattern.fullmatch(text):
            raise argparse.ArgumentTypeError(f"{text!r} is not {what}")
        return text

    return check


def nodeid(text: str) -> str:
    """A test's id (`text`) that can be part of a command line. Raises argparse.ArgumentTypeError if it would be read as an option or a
    file of options, or is not one line of printable text."""
    if not text or text.startswith(("-", "@")) or len(text) > 1000 or not text.isprintable():
        raise argparse.ArgumentTypeError(f"{text[:80]!r} is not a test's id, like tests/test_model.py::test_compiled")
    return text


_OPTIONS: dict[str, dict[str, Any]] = {
    "--stage": {"choices": ["auto", *(stage.value for stage in Stage)], "help": "the form to minimize in"},
    "--accuracy": {"choices": ["off", "auto", "on", "strict"], "help": "whether to look for wrong numbers"},
    "--device": {"choices": ["cpu", "cuda"], "help": "refuse to run without this device"},
    "--test": {"type": nodeid, "metavar": "NODEID", "help": "a test of this repository, instead of code in the comment"},
    "--budget": {"type": _budget, "metavar": "TIME", "help": "time for everything, like 90s, 30m or 1h"},
    "--python-version": {"type": _matching(_PYTHON, "a version like 3.12"), "metavar": "3.12", "help": "the Python to run with"},
    "--torch-version": {
        "type": _matching(_TORCH, "a version like 2.13.0, 2.13.0+cpu or nightly"),
        "metavar": "2.13.0|nightly",
        "help": "the torch to run with",
    },
}


def _grammar() -> _Parser:
    grammar = _Parser(prog=COMMAND, add_help=False, allow_abbrev=False, usage=argparse.SUPPRESS)
    for name, how in _OPTIONS.items():
        grammar.add_argument(name, action=_Once, **how)
    return grammar


def help_text() -> str:
    """The grammar, for people: plain text, for a code block."""
    first = (
        f"{COMMAND} [help|stop|again|doctor] [JOB-OR-RUN-URL] [OPTIONS]\n\n"
        "At the start of a line, at most three in a comment. The code is taken from the comment, else from the issue,\n"
        "else (on a pull request) from the failing tests of its CI.\n\n"
        "help    this text\n"
        "stop    end what is running for this issue or pull request\n"
        "again   the last command here once more\n"
        "doctor  look at this repository's set-up, and say what to change\n\n"
    )
    # not format_help(), whose width is the terminal's
    rows = [(f"{name} {how.get('metavar') or '|'.join(how['choices'])}", how["help"]) for name, how in _OPTIONS.items()]
    width = max(len(left) for left, _ in rows)
    return first + "\n".join(f"{left:<{width}}  {right}" for left, right in rows) + "\n"


def parse(line: str) -> Command:
    """Parse what follows the command on its `line`. Raises CommandSyntaxError if it is not understood."""
    if len(line) > MAX_LINE:
        raise CommandSyntaxError(f"The command is longer than {MAX_LINE} characters.")
    try:
        words = shlex.split(_DASHES.sub("--", line.translate(_TYPOGRAPHY)))
    except ValueError as error:
        raise CommandSyntaxError(f"A quotation mark or a backslash is not closed ({error}).") from None
    known, rest = _grammar().parse_known_args(words)
    verb: Verb | None = None
    url: RunUrl | None = None
    for word in rest:
        match = _RUN_URL.fullmatch(word.strip("<>"))  # Markdown makes a link of it inside these
        if word.startswith("-"):
            name = word.partition("=")[0]
            raise CommandSyntaxError(f"There is no option {name[:100]!r}.{_suggest(name, (*_OPTIONS, *VERBS))}")
        if match and url is None:
            run, job, attempt = (int(match[name]) if match[name] else None for name in ("run", "job", "attempt"))
            url = RunUrl(match["server"], match["repository"], run or 0, job, attempt)
        elif match:
            raise CommandSyntaxError("There are two addresses; one run or job is enough.")
        elif word in VERBS and verb is None:
            verb = word
        elif word in VERBS:
            raise CommandSyntaxError(f"`{verb}` and `{word}` do not go together.")
        elif "://" in word:
            raise CommandSyntaxError(f"{word[:200]!r} is not the address of a run or a job of GitHub Actions.")
        else:
            raise CommandSyntaxError(f"{word[:100]!r} is not understood.{_suggest(word, VERBS)}")
    given = {name: value for name, value in vars(known).items() if value is not None}
    if verb in ("help", "stop", "doctor") and (url or given):
        raise CommandSyntaxError(f"`{verb}` takes nothing else.")
    test = given.pop("test", None)
    if test and url:
        raise CommandSyntaxError("Either a test or an address, not both.")
    if given.get("stage") == "auto":
        given["stage"] = None  # set explicitly, so that it overrides that of the workflow or of an earlier command
    return Command(verb or "minify", url, test, RequestOptions(**given))


def commands(body: str) -> tuple[Command, ...]:
    """All commands in a comment with the text `body`, without duplicates; empty if there are none. Raises CommandSyntaxError if one of
    them is not understood, or if there are too many."""
    lines = command_lines(body)
    if len(lines) > MAX_COMMANDS:
        raise CommandSyntaxError(f"There are {len(lines)} commands in this comment; at most {MAX_COMMANDS} are taken.")
    # each one takes a machine; an option set to its default may differ from the workflow's
    parsed = tuple({(each, frozenset(each.options.model_fields_set)): each for each in map(parse, lines)}.values())
    if len(parsed) > 1:
        for command in parsed:
            if command.verb != "minify":
                raise CommandSyntaxError(f"`{command.verb}` stands alone in a comment.")
    return parsed
