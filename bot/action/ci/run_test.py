"""What PyTorch's own runner of test files, `test/run_test.py`, says in a log beside what pytest says.

It runs each file in a process of its own, in the directory `test`; a test that fails is run again alone, three times in all.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from bot.action.ci.failing_test import Failure, Hint, Seen, allowed_variables, pytest_id
from bot.action.ci.tracebacks import Printed

DIRECTORY = "test/"
MAX_SAME_NAME = 50

# Of a large file one job may run several parts. Before torch 2.2 the beginning of a long log was folded.
_BEGINS = re.compile(r"^(?:##\[group\])?PRINTING (?:BEGINNING OF )?LOG FILE of (?P<part>\S{1,300} \d{1,4}/\d{1,4}) \(")
_FAILED = re.compile(r"^(?P<part>[\w./-]{1,300} \d{1,4}/\d{1,4}) failed!(?: Received signal: (?P<signal>SIG[A-Z0-9]{1,10}))?$")
_CONSISTENT = re.compile(r"^FAILED CONSISTENTLY: (?P<id>\S.{0,1000})$")
# Somebody may quote it in a list.
_LISTED = re.compile(
    r"^(?:[-*] )?`?The following tests failed (?P<how>consistently: |and then succeeded when run in a new process)"
    r"(?P<ids>\[.{1,20000}\])`?$"
)
_EXIT = re.compile(r"^Got exit code (?P<code>-?\d{1,4})(?: \((?P<signal>SIG[A-Z0-9]{1,10})\))?")
_HINT = re.compile(
    r"^\s{0,8}(?P<variables>(?:[A-Za-z_][A-Za-z0-9_]{0,100}=\S{0,300} )*)"
    r"python[\d.]{0,6} (?P<file>(?!-)[\w./+\\-]{1,300}\.py)(?: (?P<select>-k )?(?P<test>\w[\w.:-]{0,500}))?`?\s*$"
)
# A command between words.
_AMONG_WORDS = re.compile(r"`([^`\n]{1,1000})`")
# Newer ones name the test that hung at once, and not only where it did so each time.
_TIMED_OUT = re.compile(r"^TIMED OUT: (?P<id>\S.{0,1000})$")
_MARKS = ("Running ", "Executing [", "PRINTING LOG FILE of ", "FAILED CONSISTENTLY: test/", "The following tests failed ")
_RUNNING = re.compile(
    r"^(?:Running \S{1,300} \d{1,4}/\d{1,4} \.\.\. \[|Running \d{1,9} items in this shard: test/|Executing \[.{1,300}'--shard-id=)"
)
# ended from outside: the runner's or the system's doing
KILLED = ("SIGKILL", "SIGTERM", "SIGINT", "SIGHUP")
# A file that Python cannot read or that does not find what it imports fails before any test of it does.
NOT_IMPORTED = ("SyntaxError", "IndentationError", "TabError", "ImportError", "ModuleNotFoundError")


def hinted(line: str) -> tuple[str, Hint] | None:
    """The test for which `line` is the command, and the command; None where it is none.

    Before torch 2.3 the commands of its suite selected the test with `-k`: the id is without the class then.
    """
    found = _HINT.match(line) if "python" in line[:2000] and ".py" in line[:3000] else None
    if found is None or found["test"] is None:
        return None
    file = found["file"].replace("\\", "/")
    return pytest_id(file, found["test"]), Hint(
        allowed_variables(found["variables"]), f"python {file} {found['select'] or ''}{found['test']}"
    )


@dataclass
class _FilePart:
    """What the log says of one part of a test file: the lines in which its own log is printed, how its processes ended."""

    start: int = 0
    end: int = 0
    timeouts: int = 0


@dataclass
class RunTestLog:
    """What `run_test.py` says in `lines`.

    `is_used`: the log is of that runner. `hints`: the commands that it names, by test. `passed`: tests that passed when they were
    run again. `consistent`: those that failed each time, with the signal or the time limit by which they ended, if any. `timed_out`: those
    that ran into the time limit, once or more.
    """

    lines: list[str]
    is_used: bool = False
    hints: dict[str, Hint] = field(default_factory=dict)
    passed: set[str] = field(default_factory=set)
    consistent: dict[str, Failure] = field(default_factory=dict)
    timed_out: dict[str, Failure] = field(default_factory=dict)
    _parts: dict[str, _FilePart] = field(default_factory=dict)
    _failed: dict[str, str] = field(default_factory=dict)
    _by_name: dict[str, list[str]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        current, ended = "", Failure("", "", "", seen=Seen.NAMED)
        for i, line in enumerate(self.lines):
            if not self.is_used and line.startswith(_MARKS):
                self.is_used = (not line.startswith("Running ") and not line.startswith("Executing [")) or bool(_RUNNING.match(line[:700]))
            if begins := _BEGINS.match(line) if line.startswith(("PRINTING", "##[group]PRINTING")) else None:
                current = begins["part"]
                self._parts[current] = _FilePart(i, len(self.lines))
            elif line.startswith("FINISHED PRINTING LOG FILE"):
                if current:
                    self._parts[current].end = i
                current = ""
            elif line.startswith("Command took >") and line.endswith("returning 124"):
                ended = Failure("", "", "", seen=Seen.TIMEOUT)
                if current:
                    self._parts[current].timeouts += 1
            elif exited := _EXIT.match(line) if line.startswith("Got exit code ") else None:
                ended = _ended(exited)
            elif named := _CONSISTENT.match(line) if line.startswith("FAILED CON") else None:
                self._named(named["id"], ended)
            elif timed_out := _TIMED_OUT.match(line) if line.startswith("TIMED OUT: ") else None:
                self._timed_out(timed_out["id"].strip('"'))
            elif listed := _LISTED.match(line) if "The following tests failed " in line[:40] else None:
                self._listed(listed)
            elif failed := _FAILED.match(line) if " failed!" in line[:400] else None:
                self._failed.setdefault(failed["part"], failed["signal"] or "")
            else:
                self._hinted(line)

    def _hinted(self, line: str) -> None:
        """Keep the command for a test on `line`, or those between its words."""
        commands = _AMONG_WORDS.findall(line[:5000]) if "`" in line and "python" in line[:5000] else [line]
        for test, command in filter(None, map(hinted, commands)):
            self.hints.setdefault(test, command)
            same = self._by_name.setdefault(test.partition("::")[2], [])
            if len(same) < MAX_SAME_NAME and test not in same:
                same.append(test)

    def _timed_out(self, test: str) -> None:
        if "::" in test:
            name = test.partition("::")[2].replace("::", ".")
            self.timed_out.setdefault(test, Failure(name, test, "", seen=Seen.TIMEOUT))

    def _named(self, test: str, ended: Failure) -> None:
        if "::" not in test:
            return
        name = test.partition("::")[2].replace("::", ".")
        self.consistent.setdefault(test, Failure(name, test, "", ended.signal, seen=ended.seen))

    def _listed(self, found: re.Match[str]) -> None:
        try:
            ids = ast.literal_eval(found["ids"])
        except (ValueError, SyntaxError, MemoryError, RecursionError):
            return
        for test in ids:
            if not isinstance(test, str):
                continue
            if found["how"].startswith("consistently"):
                self._named(test, Failure("", "", "", seen=Seen.NAMED))
            else:
                self.passed.add(test)

    def full(self, test: str) -> str:
        """The id `test` from the repository's root, where a command names it with more of its path, or with a path at all."""
        file, _, name = test.partition("::")
        if not file.endswith(".py"):
            named = self._by_name.get(test, ())
            return named[0] if len(named) == 1 else test
        same = (*self._by_name.get(name, ()), *self._by_name.get(name.rpartition("::")[2], ()))
        found = next((path for path in (full.partition("::")[0] for full in same) if path.endswith("/" + file)), file)
        return found + test[len(file) :]

    def hint(self, test: str) -> Hint | None:
        """The command that the log names for `test`."""
        file, _, name = test.partition("::")
        return self.hints.get(test) or self.hints.get(f"{file}::{name.rpartition('::')[2]}")

    def files(self, known: set[str], printed: Printed) -> Iterator[Failure]:
        """The test files that failed, beside those in `known` of which a test failed; with a traceback of `printed` where it has one."""
        for name, signal in self._failed.items():
            path = f"{DIRECTORY}{name.partition(' ')[0]}.py"
            if path in known:
                continue
            part = self._parts.get(name)
            if signal in KILLED:
                yield Failure(path, path, "", seen=Seen.FILE, note=f"ended from outside by {signal}")
            elif signal:
                yield Failure(path, path, "", "SIGABRT" if signal == "SIGIOT" else signal, seen=Seen.DEATH)
            elif part and part.timeouts:
                yield Failure(path, path, "", seen=Seen.TIMEOUT, note="the whole file ran into its time limit")
            else:
                inside = printed.between(part.start, part.end) if part else ()
                yield Failure(path, path, inside[-1].text if inside else "", seen=Seen.ERROR if inside else Seen.FILE)


def _ended(found: re.Match[str]) -> Failure:
    signal = found["signal"]
    if found["code"] == "124":
        return Failure("", "", "", seen=Seen.TIMEOUT)
    if signal and signal not in KILLED:
        return Failure("", "", "", "SIGABRT" if signal == "SIGIOT" else signal, seen=Seen.DEATH)
    return Failure("", "", "", seen=Seen.NAMED)
