"""Stacks that somebody tells of, in other forms than Python's: with arrows or numbers, or all in one line; rewritten as Python prints them.

They stand in what people write; a log of CI has none of them.
"""

from __future__ import annotations

import re

from bot.action.ci.python_words import ERRORS, HEADER, JOINTS

# A text with more lines is a log.
MAX_TEXT = 150
# Lines between the last frame and what was raised.
MAX_BELOW = 4

# A path with what stands before it, and a function behind it: `-> torch/a.py:5 in f`, `torch/a.py ... f`, `at f (torch/a.py:5)`.
_FRAME = re.compile(
    r"""
    ^\ {0,12}(?:(?:[-=]{0,3}>|[\u2192\u21b3\u2514\u251c][\u2500-]{0,3}>?|at|in|from|\#\d{1,4}|\d{1,4}[.)]|[*\u2022-])\ +)?
    (?:`?(?P<before>[\w.<>]{1,200})`?\ \()?
    `?(?P<path>/?(?:[\w.~-]{1,100}/){1,30}[\w-]{1,100}\.py)(?::(?P<line>\d{1,7}))?`?\)?
    (?:
        (?:\ {0,3}(?:\.{2,3}|\u2026|,|\u2192|->|::|in|[\u2013\u2014-])\ {0,3}|\ )
        (?:line\ (?P<at>\d{1,7}),?\ (?:in\ )?)?`?(?P<function>[A-Za-z_<][\w.<>]{0,200})`?(?:\(.{0,200}\))?
    )?$
    """,
    re.VERBOSE,
)
_COMPILER = re.compile(r"(?:^|/)torch/(?:_(?:dynamo|inductor|functorch|export)|export)/")
_NAME = rf"(?:[a-z_]\w{{0,60}}\.){{0,9}}[A-Z]\w{{0,100}}{ERRORS}"
_RAISED = re.compile(rf"^ {{0,12}}{_NAME}(?:: \S|$)")
_PASSED = re.compile(r"^ {0,12}(?:\.{2,}|\u2026|raise\b.{0,500}|\^+)?$")
# What stands between what was raised and the places of its stack below: ends of excerpts, and a line of words.
_FENCE = re.compile(r"^ {0,12}(?:`{3,}|~{3,})[\w-]{0,30}$")
_WORDS = re.compile(r"^[^\n]{1,100}:$")
MAX_ABOVE = 7
# Of one line that has all of them.
_PLACE = re.compile(r'File \\?"(?P<path>[^"\\\n]{1,500})\\?", line (?P<line>\d{1,7}), in (?P<function>[\w<][\w.<>]{0,200})')
_PART = re.compile("(" + "|".join(map(re.escape, (HEADER, *JOINTS))) + ")")
_CLASS = re.compile(rf" ({_NAME}: )")
# What is a string, which is read as such, or was logged as no error.
_NO_ERROR = re.compile(r"\\n|\b[WIVD]\d{4} |\b(?:WARNING|INFO|DEBUG)\b")
MIN_PLACES = 2


def rewritten(text: list[str]) -> list[str]:
    """The lines of `text` with each stack that it tells of as Python prints it; a log as it is."""
    if len(text) > MAX_TEXT:
        return text
    lines: list[str] = []
    for line in text:
        places = list(_PLACE.finditer(line)) if "File " in line else []
        lines += _parted(line, places) if len(places) >= MIN_PLACES and not _NO_ERROR.search(line) else [line]
    return _with_frames(lines)


def _parted(line: str, places: list[re.Match[str]]) -> list[str]:
    """The lines of a traceback that stands in one `line`, with its `places`; what was raised ends it."""
    parts: list[str] = _PART.sub(r"\n\1\n", line[: places[0].start()]).rstrip().split("\n")
    ends = [place.start() for place in places[1:]] + [len(line)]
    for place, end in zip(places, ends, strict=True):
        parts.append(f'  File "{place["path"]}", line {place["line"]}, in {place["function"]}')
        below = _PART.sub(r"\n\1\n", _CLASS.sub(r"\n\1", line[place.end() : end], count=1)).split("\n")
        parts += [f"    {below[0].strip()}"] if below[0].strip() else []
        parts += [each.strip() for each in below[1:] if each.strip()]
    return parts


def _with_frames(lines: list[str]) -> list[str]:
    """The `lines` with those that tell of frames as such, where the compiler's are among them and what was raised stands below."""
    i = 0
    while i < len(lines):
        found: list[re.Match[str]] = []
        end = i
        while end < len(lines) and ((frame := _FRAME.match(lines[end])) or (found and _PASSED.match(lines[end]) and lines[end].strip())):
            found += [frame] if frame else []
            end += 1
        below = next((line for line in lines[end : end + MAX_BELOW] if not _PASSED.match(line)), "")
        is_stack = len(found) >= MIN_PLACES and any(_COMPILER.search(each["path"]) for each in found)
        if is_stack and not _RAISED.match(below) and all(each["line"] and each["function"] for each in found):
            at = _raised_above(lines, i)
            if at is not None:
                below = lines[at]
                lines[at] = ""
                lines.insert(end, below)
        if is_stack and _RAISED.match(below):
            raised = lines.index(below, end)
            told = [
                f'  File "{each["path"]}", line {each["line"] or each["at"] or 0}, in {each["function"] or each["before"] or "<unknown>"}'
                for each in found
            ]
            lines[i : raised + 1] = [*told, below.strip()]
            end = i + len(told)
        i = max(end, i + 1)
    return lines


def _raised_above(lines: list[str], start: int) -> int | None:
    """The index of what was raised with the stack whose places begin at `start`; None where nothing says it above them."""
    words = 0
    for at in range(start - 1, max(start - 1 - MAX_ABOVE, -1), -1):
        line = lines[at]
        if _RAISED.match(line):
            return at
        if line.strip() and not _FENCE.match(line):
            words += 1
            if words > 1 or not _WORDS.match(line):
                return None
    return None
