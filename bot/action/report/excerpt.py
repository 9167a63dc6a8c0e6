"""The part of a log that a maintainer reads first: the last traceback, cut to the frames that matter, with the raising one marked."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from bot.failure.traceback import HEADER, frame_place, plain, short_path, ungrouped

# Frames to keep: of the program, before the raising one, and at the end of each stack.
OF_PROGRAM, BEFORE, AT_END = 3, 2, 2
# Maximum lines of one exception's message, characters per line, and lines of a log's end.
MOST_SAID, LONGEST, TAIL = 16, 300, 40
# Maximum number of exceptions, each the cause of the next.
MOST_CAUSES = 5
_CAUSE = "The above exception was the direct cause of the following exception:"
_FRAME = re.compile("^  " + frame_place(r'(?P<path>[^"\n]{1,4000})', r"(?P<line>\d{1,9}|\?\?\?)") + ",? in (?P<function>.{1,300})$")
_DUMP = re.compile(r"^(?:Fatal Python error: |Timeout \()", re.MULTILINE)
_THREAD = re.compile(r"^(?:Current thread|Thread|Stack)\b.*\(most recent call first\):$")
# Frames that Python's startup and its libraries put around a program, and those that only forward calls.
_AROUND = re.compile(r"<frozen |(?:^|/)lib/python3\.\d+/(?!site-packages)|(?:^|/)(?:runpy|contextlib)\.py$|(?:^|/)bot/inside/")
# Those that are ours, and in no run of the program alone.
_OURS = re.compile(r"(?:^|/)bot/inside/")
_ADVICE = re.compile(r"^\s*(?:Set TORCHDYNAMO_VERBOSE|You can suppress this exception|For even more developer context|Use tlparse)")


@dataclass(frozen=True)
class _Entry:
    """A frame of a printed stack: its location, and the source below it."""

    path: str
    line: str
    function: str
    source: tuple[str, ...]

    @property
    def of_program(self) -> bool:
        return not self.path.startswith(("torch/", "functorch/", "triton/")) and not _AROUND.search(self.path)

    def shown(self, *, marked: bool) -> list[str]:
        return [f'{">" if marked else " "} File "{self.path}", line {self.line}, in {self.function}'[:LONGEST], *self.source]


def traceback(log: str, frame: str | None = None) -> str:
    """The last traceback in `log` that can have ended the program, or the dump of a crash; empty if there is none.

    `frame` is the raising frame as it is in a signature, `torch/path.py:function`.
    """
    text = ungrouped(plain(log))
    lines = text.split("\n")
    starts = [index for index, line in enumerate(lines) if line == HEADER]
    if starts:
        first = len(starts) - 1
        while first and first > len(starts) - MOST_CAUSES and _CAUSE in lines[starts[first - 1] : starts[first]]:
            first -= 1
        ends = [*starts[1:], len(lines)]
        parts = [_raised(lines[starts[index] + 1 : ends[index]], frame) for index in range(first, len(starts))]
        return "\n".join(parts).strip("\n")
    return _dumped(text, frame)


def tail(log: str) -> str:
    """The last lines of `log`."""
    rows = [line[:LONGEST] for line in plain(log).rstrip().split("\n")]
    return "\n".join(rows[-TAIL:]).strip("\n")


def _raised(lines: Sequence[str], frame: str | None) -> str:
    entries, index = _entries(lines)
    said = [line[:LONGEST] for line in lines[index:] if line.strip()]
    link = [_CAUSE] if _CAUSE in said else []
    said = [line for line in said if line != _CAUSE and not _ADVICE.match(line)]
    if len(said) > MOST_SAID:
        said = [*said[:MOST_SAID], f"[{len(said) - MOST_SAID} more lines]"]
    return "\n".join([HEADER, *_cut(entries, frame), *said, *(["", *link, ""] if link else [])])


def _entries(lines: Sequence[str]) -> tuple[list[_Entry], int]:
    """The frames at the beginning of `lines`, and the index of the line after them."""
    entries: list[_Entry] = []
    index = 0
    while index < len(lines):
        found = _FRAME.match(lines[index])
        if found is None and not lines[index].startswith(("    ", "  [Previous line repeated")):
            break
        if found is not None:
            source = lines[index + 1 : index + 2]
            held = tuple(line[:LONGEST] for line in source if line.startswith("    "))
            entries.append(_Entry(short_path(found["path"]), found["line"], found["function"], held))
        index += 1
    return entries, index


def _cut(entries: Sequence[_Entry], frame: str | None) -> list[str]:
    """The frames that matter, outermost first, and the number of those left out in between."""
    named = [index for index, entry in enumerate(entries) if f"{entry.path}:{entry.function}" == frame]
    marked = named[-1] if named else len(entries) - 1
    program = [index for index, entry in enumerate(entries) if entry.of_program]
    theirs = [index for index, entry in enumerate(entries) if index == marked or not _OURS.search(entry.path)]
    before = [index for index in theirs if index < marked]
    kept = {*program[-OF_PROGRAM:], *before[-BEFORE:], marked, *theirs[-AT_END:]}
    rows: list[str] = []
    left = 0
    for index, entry in enumerate(entries):
        if index not in kept:
            left += 1
            continue
        rows += _gap(left) + entry.shown(marked=index == marked)
        left = 0
    return rows + _gap(left)


def _gap(left: int) -> list[str]:
    return [f"  [{left} {'frame' if left == 1 else 'frames'}]"] if left else []


def _dumped(text: str, frame: str | None) -> str:
    """The stack of the thread that died, innermost first, as faulthandler prints it."""
    dumps = list(_DUMP.finditer(text))
    if not dumps:
        return ""
    lines = text[dumps[-1].start() :].split("\n")
    heads = [index for index, line in enumerate(lines) if _THREAD.match(line)]
    if not heads:
        return lines[0][:LONGEST]
    head = next((index for index in heads if lines[index].startswith("Current")), heads[0])
    entries, _ = _entries(lines[head + 1 :])
    # it prints no source: one line per frame
    rows = _cut(list(reversed(entries)), frame)
    return "\n".join([lines[0][:LONGEST], "", lines[head][:LONGEST], *reversed(rows)])
