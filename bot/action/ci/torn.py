"""Lines between the frames of a traceback that are none of it: another process printed them, or copying broke or parted the frames."""

from __future__ import annotations

import re

from bot.action.ci.python_words import ERRORS, HEADER
from bot.failure.traceback import frame_place

# So many of them may stand between two frames, and between the last one and what was raised.
MAX_BETWEEN = 60
MAX_BEFORE_RAISED = 3

_FRAME = re.compile("  " + frame_place(r'[^"\n]{1,500}', r"\d{1,7}") + r"(?:, in \S|$)")
_OF_FRAME = ("    ", "  [Previous line repeated", "[...]")
# What ends the frames: no class of an exception is called as a level of a log is, or as what begins with a small letter.
_CLASS = re.compile(
    rf"(?:\w{{1,100}}\.){{0,9}}(?!(?:DEBUG|INFO|NOTICE|WARN(?:ING)?|ERROR|CRITICAL)\b)_{{0,2}}[A-Z]\w{{0,200}}(?::|\()|[\w.]{{0,200}}{ERRORS}\b|.*:$"
)
_RAISED = re.compile(rf"(?:\w{{1,100}}\.){{0,9}}(?=[A-Z_])\w{{0,100}}?{ERRORS}(?::|\(|$)")


def ends_frames(line: str) -> bool:
    """Whether a `line` at the margin ends the frames of a traceback, as what was raised does, and is no other writer's."""
    return bool(line) and bool(_CLASS.match(line))


def untorn(lines: list[str]) -> list[str]:
    """The `lines` of tracebacks without those that are none of theirs, between two frames or above what was raised."""
    whole: list[str] = []
    # the lines since the last one of a frame; None behind what was raised
    between: list[str] | None = None
    for line in lines:
        if line == HEADER:
            whole += [*(between or ()), line]
            between = []
        elif between is None:
            whole.append(line)
        elif _FRAME.match(line):
            whole.append(line)
            between = []
        elif not between and line.startswith(_OF_FRAME):
            whole.append(line)
        elif ends_frames(line) or len(between) >= MAX_BETWEEN:
            others = sum(not each.startswith(_OF_FRAME) for each in between)
            whole += [line] if others <= MAX_BEFORE_RAISED and _RAISED.match(line) else [*between, line]
            between = None
        else:
            between.append(line)
    return [*whole, *(between or ())]
