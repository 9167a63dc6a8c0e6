"""The tests in which Python died, from faulthandler's dump; and those that were still running when it was ended."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace

from bot.action.ci.failing_test import Failure, Seen, repository_path
from bot.action.ci.programs import Started
from bot.action.ci.pytest_log import running
from bot.action.ci.run_test import hinted
from bot.action.ci.written_ids import ids_in
from bot.failure.traceback import CRASH_SIGNALS, frame_place

MAX_DUMP = 2_000

_FATAL = re.compile(r"(?:^|[\s.sxXFER])Fatal Python error: (?P<what>[A-Za-z ]{1,60})$")
# Without `-v` pytest writes the file alone, and marks behind it.
_IN_FILE = re.compile(r"^(?P<file>[^\s:]{1,500}\.py) [.sxXFER]{0,300} {0,3}Fatal Python error: ")
_FRAME = re.compile("^  " + frame_place('(?P<path>[^"]{1,500})', r"\d+") + r" in (?P<function>\w{1,200})$")
# The program itself, where it is none that runs others.
_PROGRAM = re.compile(
    "^  "
    + frame_place(r'(?P<path>(?![^"]{0,500}(?:(?:site|dist)-packages|lib/python[\d.]{1,6}|bin)/)[^"]{1,500}\.py)', r"\d+")
    + " in <module>$"
)
_SIGNALS = "|".join(CRASH_SIGNALS)
# How a shell tells of a command of a script.
_OF_SHELL = re.compile(
    rf"^[^\s:]{{1,300}}: line \d{{1,7}}: {{1,4}}\d{{1,10}} (?P<what>{_SIGNALS}) {{1,30}}(?:\(core dumped\) {{1,4}})?"
    r"(?P<command>\S.{0,2000})$"
)
_CORE = re.compile(rf"(?P<what>{_SIGNALS})\s+\(core dumped\)")
# What libc, C++ and a debugger write: of the process, if it is the last that is heard of it.
_ABORTS = re.compile(r": Assertion `.{1,2000}' failed\.$|^terminate called after throwing an instance of ")
_STOPPED = re.compile(r"^(?:Thread \d{1,5} .{1,100}|Program) received signal (?P<signal>SIG(?:SEGV|ABRT|BUS|FPE|ILL)), ")
_WENT_ON = ("PASSED", "FAILED", "ERROR", "SKIPPED", "=")
_TIMEOUT = re.compile(r"^\++ Timeout \++$")


def failures(lines: list[str]) -> Iterator[Failure]:
    """The tests in `lines` in which Python died, and the programs, each with faulthandler's dump where there is one."""
    untold: Failure | None = None
    for each in _each(lines):
        if each.text and not each.test:
            # a shell may name the command
            yield from filter(None, [untold])
            untold = each
        elif untold is not None and (each.script or each.hint.program) and each.signal == untold.signal:
            yield replace(each, text=untold.text)
            untold = None
        else:
            yield each
    yield from filter(None, [untold])


def _each(lines: list[str]) -> Iterator[Failure]:
    """The same, with a dump and what a shell says of it apart. Every line is read once."""
    ran, last, i = "", "", 0
    programs = Started()
    while i < len(lines):
        line = lines[i]
        i += 1
        programs.see(line)
        if ".py::" in line and (begun := running(line)):
            ran, last = begun, ""
        if line.startswith("$ "):
            started = hinted(line.removeprefix("$ "))
            ran, last = started[0] if started else "", ""
        if line.startswith(_WENT_ON):
            last = ""
        last = _signal(line) or last
        if "Fatal Python error: " in line:
            # a heading is somebody's words
            fatal = None if line.startswith("#") else _FATAL.search(line[-200:])
            if fatal and fatal["what"] in CRASH_SIGNALS:
                end, last = _end(lines, i), ""
                inside = None if ran else _IN_FILE.match(line)
                signal = CRASH_SIGNALS[fatal["what"]]
                dumped = _dumped(lines[i - 1 : end], inside["file"] if inside else ran, lines[max(i - 4, 0) : i], signal)
                yield dumped if dumped.test else _of_program(dumped, lines[i - 1 : end], programs)
                i = end
        elif "(core dumped)" in line and ran:
            core = _CORE.search(line[-400:])
            if core:
                last = ""
                yield _died(ran, CRASH_SIGNALS[core["what"]])
        elif ": line " in line and (told := _of_shell(line)):
            yield told
        elif line.startswith("+++") and ran and _TIMEOUT.match(line):
            end = _end(lines, i)
            text = "\n".join(lines[i - 1 : end])
            yield Failure(ran.partition("::")[2].replace("::", "."), ran, text, seen=Seen.TIMEOUT)
            i = end
    if last and ran:
        yield _died(ran, last)


def _of_shell(line: str) -> Failure | None:
    """The program, or the test, of whose death a shell tells in a `line`; None where it is no program of Python's."""
    found = _OF_SHELL.match(line)
    if found is None:
        return None
    signal = CRASH_SIGNALS[found["what"]]
    if started := hinted(found["command"]):
        return replace(_died(started[0], signal), hint=started[1])
    begun = Started()
    begun.see(f"$ {found['command']}")
    script = next(iter(re.findall(r"(?<!\S)[\w./-]{1,300}\.py(?!\S)", found["command"])), "")
    return Failure(found["command"], "", "", signal=signal, seen=Seen.DEATH, hint=begun.last, script=script) if script else None


def _died(test: str, signal: str) -> Failure:
    return Failure(test.partition("::")[2].replace("::", "."), test, "", signal=signal, seen=Seen.DEATH)


def _signal(line: str) -> str:
    """The signal of which `line` tells, without a dump; empty where it tells of none."""
    if "Assertion `" in line or line.startswith("terminate called "):
        return "SIGABRT" if _ABORTS.search(line) else ""
    stopped = _STOPPED.match(line) if " received signal SIG" in line else None
    return stopped["signal"] if stopped else ""


def _end(lines: list[str], start: int) -> int:
    """The index behind the dump whose first line stands before `start`."""
    for i in range(start, min(start + MAX_DUMP, len(lines))):
        line = lines[i]
        if (
            line.startswith(("##[", "Extension modules:"))
            or "Fatal Python error: " in line
            or (": line " in line and _OF_SHELL.match(line))
        ):
            return i
    return min(start + MAX_DUMP, len(lines))


def _dumped(dump: list[str], ran: str, above: list[str], signal: str) -> Failure:
    frames = [match for text in dump if (match := _FRAME.match(text))]
    frame = next((match for match in frames if match["function"].startswith("test") and "test" in match["path"].rpartition("/")[2]), None)
    text = "\n".join(dump)
    if frame is None:
        return Failure(ran.partition("::")[2].replace("::", ".") or ran or signal, ran, text, signal=signal, seen=Seen.DEATH)
    test = _last_id([*above, ran], frame) or f"{repository_path(frame['path'])}::{frame['function']}"
    return Failure(frame["function"], test, text, signal=signal, seen=Seen.DEATH)


def _of_program(dumped: Failure, dump: list[str], started: Started) -> Failure:
    """The death of no test, with the program whose frame is the outermost in the `dump`, and the command that `started` it."""
    path = next((found["path"] for line in reversed(dump) if (found := _PROGRAM.match(line))), "")
    return replace(dumped, script=repository_path(path), hint=started.find(path)) if path else dumped


def _last_id(lines: list[str], frame: re.Match[str]) -> str:
    """The id that pytest wrote before it ran the test (with `-v`): the dump knows of functions alone.

    Torch's own parametrizing puts the parameters into the method's name, and leaves the function's as it was.
    """
    ids = [each for line in lines for each in ids_in(line)]
    function, file = frame["function"], repository_path(frame["path"])
    whole = [word for word in ids if word.partition("[")[0].endswith("::" + function)]
    made = [word for word in ids if f"::{function}_" in word.partition("[")[0] and _same_file(word.partition("::")[0], file)]
    return (whole or made or [""])[-1]


def _same_file(one: str, other: str) -> bool:
    """Whether two paths may be of one file: logs have them from several directories."""
    return f"/{one}".endswith(f"/{other}") or f"/{other}".endswith(f"/{one}")
