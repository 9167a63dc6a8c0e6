"""What people, pages and viewers make of a log when it is copied, taken back: escapes, entities, marks before each line, blanks.

What a log's own writers put before a line is known from the frames of tracebacks: those have a form that nothing else has, so what
stands before them, and before the lines around them, was put there.
"""

from __future__ import annotations

import html
import json
import re
from collections import Counter
from itertools import zip_longest

from bot.action.ci.python_words import ERRORS, HEADER
from bot.failure.traceback import frame_place

# Shapes of marks that one log may have.
MAX_SHAPES = 8
MAX_MARK = 160
# A number in a mark that has more values than this, or as many as a third of its lines, or that never falls, counts lines or tells the
# time.
MAX_VALUES = 64

# Colors whose escape character was lost, or is spelled; and what shows that they are there.
_COLOR = re.compile(r"(?:\\x1b|\\033|\\u001b|\\e|[\u241b\ufffd\u2190])?\[(?:\d{1,3}(?:;\d{1,3}){0,5})?m")
_COLORED = ("[0m", "[0;0m", "[39m")
_ENTITIES = ("&quot;, line ", "in &lt;", "-&gt; ", "&#34;, line ")
# What parts a log that was pasted from the words around it, beside fences.
_BLOCK = re.compile(r"</?(?:pre|details|summary)\b[^<>\n]{0,80}>")
# What stands before the first words of a cell, or of an item, where these are shown as they are written.
_CELL = re.compile(r"^[ \t]{0,40}<(?:td|th|li|p)\b[^<>\n]{0,80}>[ \t]{0,40}(?:<code>)?(?=\S)", re.MULTILINE)
# How Spyder shows a frame in what is Python's form otherwise.
_PLACE = re.compile(
    r"^  (?:File (?P<path>[^\"\s][^\"\n:]{0,3}:?[^\"\n:]{0,500}\.pyx?):(?P<line>\d{1,7}),? in (?P<function>[\w<][\w.<>]{0,200})"
    r"(?:\([^\n]{0,2000}\))?|Cell In\[(?P<cell>\d{1,7})\], line (?P<at>\d{1,7})(?:, in [^\n]{0,200})?)$",
    re.MULTILINE,
)
# How an editor shows what was raised, with its message below the class; the chain that led to it stands below that.
_OCCURRED = re.compile(r"^Exception has occurred: (?P<name>[A-Za-z_][\w.]{0,200})[ \t]*\n(?P<said>[^\s\n][^\n]*)$", re.MULTILINE)
# How reports name it in fields, and an editor that copies a cell's error as an object: its class, and in the next what it said. The stack
# stands below, without what ends a traceback.
_FIELD = r"^[ \t]{0,8}(?:[-*] )?(?:\*\*|`|\")?(?:(?:exception|error)[ _-]?)?(?:%s)(?::(?:\*\*|`)|(?:\*\*|`|\"):|:)[ \t]{0,8}"
_REPORTED = re.compile(
    rf"{_FIELD % 'type|class|name'}[`\"]?(?P<name>[A-Za-z_][\w.]{{0,200}})[`\"]?,?[ \t]*\n(?:[ \t]*\n)?"
    rf"{_FIELD % 'message|value|text'}\"?(?P<said>[^\n]*?)(?:\",)?$",
    re.MULTILINE | re.IGNORECASE,
)
# How Python shows a class, where a report names what was raised so.
_SHOWN_CLASS = re.compile(r"^<class '([A-Za-z_][\w.]{0,200})'>(?=: \S)", re.MULTILINE)
# An editor and a page make links of places. Only a link to what failed says more than its words.
_LINK = re.compile(r"\[([^\[\]\n]{1,500})\]\((?:https?|file|vscode[\w.+-]{0,100})://(?!(?:www\.)?torch-ci\.com/failure)[^()\s]{0,2000}\)")
_CURLY = str.maketrans({"\u201c": '"', "\u201d": '"', "\u201e": '"', "\u2018": "'", "\u2019": "'"})
_MARKDOWN = re.compile(r"\\([_*<>\[\]#`~])")
_SPACES = str.maketrans({"\xa0": " ", "\u2007": " ", "\u202f": " ", "\u200b": None, "\u2060": None})
_TABBED = re.compile(r'^\t+File "', re.MULTILINE)
_TABS = re.compile(r"^\t+", re.MULTILINE)
_WHERE = frame_place(r'[^"\n]{1,500}')

_FRAME = re.compile(rf"^(?P<mark>.{{1,160}}?)  {_WHERE},? in [\w<]")
# What runners of tests write alone on a line has no other form either.
_RULE = re.compile(r"^(?P<mark>.{1,160}?)(?:={3,200} (?:FAILURES|ERRORS|short test summary info|test session starts) ={3,200}|={70})$")
_NUMBER = re.compile(r" *\d+(?:\.\d+)*")
_TIME = re.compile(r"\d{4}[-/]\d\d[-/]\d\d|\d\d:\d\d:\d\d(?:[.,]\d{1,9})?")
# What is no mark: pytest's own, comments, boxes, strings; and of a logger what was no error.
_NO_PREFIX = re.compile(r"E |[#*>]|//|[\s|+]*$|.*[\"'`]", re.DOTALL)
_NO_MARK = re.compile(rf"{_NO_PREFIX.pattern}|.*\b[WIVD]\d{{4}} |.*\b(?:warn(?:ings?)?|info|debug)\b", re.IGNORECASE | re.DOTALL)
_ENDED = re.compile(r"[\s:\])|>}-]$")
# What writers of a form that is known put behind a mark of somebody else's: it tells more than that.
_OF_WRITER = re.compile(
    r"(?<=[\s:\])|>}-])(?:[EC]\d{4} \d\d:\d\d:\d\d\.\d{6} \d|(?:ERROR|CRITICAL) \d\d-\d\d \d\d:\d\d:\d\d \["
    r"|\[(?:rank|default|trainer)\d{1,5}\]:|\([A-Za-z_]\w{0,60} (?:[\w=.]{1,40} ){0,4}pid=\d{1,10}[,)])"
)
_FENCE = re.compile(r"^\s{0,20}(?:`{3,}|~{3,})[\w-]{0,30}$")
# Under these writers of records keep what was said; so many of the first ones show under which.
_KEYS = ("log", "message", "msg", "textPayload", "line", "text", "content")
MAX_RECORDS = 50
_INDENTED_FRAME = re.compile(r' *File "')
# A frame's first line without the blanks before it; below one, what is no source; and what marks the place in it.
_FLAT_FRAME = re.compile(rf"{_WHERE}, in [\w<]")
_NO_SOURCE = re.compile(rf'File "|{re.escape(HEADER)}|[A-Za-z_][\w.]{{0,200}}{ERRORS}(?::|$)')
_UNDERLINED = re.compile(r"[\^~ ]{1,2000}$")
MIN_FLAT = 2
# So many lines without a frame show what indents them.
MIN_LINES = 4
_NUMBERED = re.compile(r" *\d")
# What viewers put before all lines, and what they leave of it on empty ones.
_BARS = re.compile(r"[ \t|]*[\t|] ?")


def _as_frame(place: re.Match[str]) -> str:
    path = place["path"] or f"<ipython-input-{place['cell']}>"
    return f'  File "{path}", line {place["line"] or place["at"]}, in {place["function"] or "<module>"}'


def restored(log: str) -> str:
    """A `log` as it was before an editor, a page or a terminal changed characters of it."""
    if any(mark in log for mark in _COLORED):
        log = _COLOR.sub("", log)
    if any(entity in log for entity in _ENTITIES):
        log = html.unescape(log)
    if "</pre>" in log or "</details>" in log:
        log = _BLOCK.sub(lambda found: "" if found[0] in ("<summary>", "</summary>") else "\n```\n", log)
    if "<td" in log or "<li" in log or "<p>" in log:
        log = _CELL.sub("", log)
    if "File \u201c" in log or "File \u201d" in log or "\u201d, line " in log:
        log = log.translate(_CURLY)
    if ":" in log and ("  Cell In[" in log or "  File " in log):
        log = _PLACE.sub(_as_frame, log)
    if "Exception has occurred: " in log:
        log = _OCCURRED.sub("\\g<name>: \\g<said>\n```", log)
    log = _REPORTED.sub("\\g<name>: \\g<said>\n", log)
    if "\n<class '" in log:
        log = _SHOWN_CLASS.sub(r"\1", log)
    if "](" in log:
        log = _LINK.sub(r"\1", log)
    # no directory of Windows is called so
    if "/\\_" in log or ".\\_" in log or "\\_\\_" in log:
        log = _MARKDOWN.sub(r"\1", log)
    if "\xa0" in log or "\u200b" in log or "\u202f" in log or "\u2007" in log or "\u2060" in log:
        log = log.translate(_SPACES)
    if '\tFile "' in log and _TABBED.search(log):
        log = _TABS.sub(lambda found: "  " * len(found[0]), log)
    return log


def unrecorded(log: str) -> str:
    """A `log` that is a record of JSON for each line, as the lines that those hold; other logs as they are."""
    if not log.startswith("{"):
        return log
    lines = log.split("\n")
    first = [line for line in lines[:MAX_RECORDS] if line.rstrip().endswith("}")]
    key = next((key for key in _KEYS if all(f'"{key}"' in line for line in first)), "") if first[:1] == lines[:1] else ""
    return "\n".join(_recorded(line, key) for line in lines) if key else log


def _recorded(line: str, key: str) -> str:
    """The line that the record `line` holds under that `key`; itself where it is none, or holds several."""
    try:
        said = json.loads(line)[key] if line.startswith("{") else line
    except (ValueError, KeyError, TypeError, RecursionError):
        return line
    return said.rstrip("\n") if isinstance(said, str) and "\n" not in said.rstrip("\n") else line


def dedented(text: list[str]) -> None:
    """Take away what indents all lines of `text`, or all those between two fences of Markdown, which get to the first column."""
    start, fenced = 0, 0
    for i, line in enumerate([*text, "```"]):
        if ("``" not in line and "~~" not in line) or not _FENCE.match(line):
            continue
        if fenced:
            # what stands in an item of a list
            text[start:i] = [below[min(fenced, _blanks(below)) :] for below in text[start:i]]
        _dedent(text, start, i)
        fenced, start = _blanks(line), i + 1
        if i < len(text):
            text[i] = "```"


def _blanks(line: str) -> int:
    return len(line) - len(line.lstrip(" "))


def _common(lines: list[str]) -> str:
    """What all `lines` begin with, but those on which a viewer leaves nothing else; empty where there are few."""
    if not lines or not lines[0].startswith(("\t", "|", " ")):
        return ""
    said = [line[:MAX_MARK] for line in lines if line.strip(" \t|")]
    if len(said) < MIN_LINES:
        return ""
    first, last = min(said), max(said)
    return first[: next((i for i, (one, other) in enumerate(zip(first, last, strict=False)) if one != other), len(first))]


def _dedent(text: list[str], start: int, end: int) -> None:
    bars = _BARS.match(_common(text[start:end]))
    if bars:
        text[start:end] = [line[len(bars[0]) :] for line in text[start:end]]
    least, framed, count = MAX_MARK, MAX_MARK, 0
    for line in text[start:end]:
        if not line.strip():
            continue
        blanks = _blanks(line)
        if not blanks:
            return
        least = min(least, blanks)
        count += 1
        if _INDENTED_FRAME.match(line):
            framed = min(framed, blanks)
    if framed < MAX_MARK:
        least = min(least, framed - 2)
    elif count < MIN_LINES or any(_blanks(line) == least and _NUMBERED.match(line) for line in text[start:end]):
        return
    if least > 0:
        text[start:end] = [line[least:] for line in text[start:end]]


def unflattened(text: list[str]) -> None:
    """Give the frames of tracebacks in `text` the blanks back that Python writes, where whatever copied it took all of them away."""
    places = [i for i, line in enumerate(text) if line.startswith('File "') and _FLAT_FRAME.match(line)]
    # a program's own words may begin so, once
    if len(places) < MIN_FLAT or any(line.startswith('  File "') for line in text):
        return
    for i in places:
        text[i] = f"  {text[i]}"
        source = text[i + 1 : i + 2]
        if source and not _NO_SOURCE.match(source[0]):
            marked = _UNDERLINED.match("".join(text[i + 2 : i + 3]))
            text[i + 1 : i + 3] = [f"    {line}" if marked or line is source[0] else line for line in text[i + 1 : i + 3]]


class Marks:
    """What stands before each line of `text`, as far as the frames of tracebacks show it."""

    def __init__(self, text: list[str]) -> None:
        shapes: Counter[str] = Counter()
        for i, line in enumerate(text):
            frame = _FRAME.match(line) if ", line " in line else None
            found = frame or (_RULE.match(line) if line.endswith("===") else None)
            if found is None or (_NO_MARK if frame else _NO_PREFIX).match(found["mark"]) or not _ENDED.search(found["mark"]):
                continue
            writer = _OF_WRITER.search(found["mark"])
            shape = _shape(found["mark"][: writer.start()] if writer else found["mark"])
            if shape not in shapes:
                new = _goes_on(_shape(found["mark"]), text[i + 1 : i + 2]) if frame else _is_around(shape, text, i)
                if not new or len(shapes) >= MAX_SHAPES:
                    continue
            shapes[shape] += 1
        self._shapes = list(map(_pattern, shapes))

    def __bool__(self) -> bool:
        return bool(self._shapes)

    def take(self, text: list[str], who: list[str]) -> None:
        """Take them away from `text`, and put into `who` who wrote each line, as far as they tell."""
        taken: list[tuple[int, int, str, list[str]]] = []
        values: Counter[tuple[int, int, str]] = Counter()
        lines: Counter[int] = Counter()
        last: dict[tuple[int, int], tuple[int, ...]] = {}
        falls: set[tuple[int, int]] = set()
        for i, line in enumerate(text):
            for kind, shape in enumerate(self._shapes):
                if found := shape.match(line):
                    text[i] = line[found.end() :]
                    mark = _TIME.sub("", found[0])
                    numbers = _NUMBER.findall(mark)
                    taken.append((i, kind, mark, numbers))
                    lines[kind] += 1
                    for at, number in enumerate(numbers):
                        values[kind, at, number] += 1
                        value = tuple(map(int, number.split(".")))
                        if value < last.get((kind, at), ()):
                            falls.add((kind, at))
                        last[kind, at] = value
                    break
        several: Counter[tuple[int, int]] = Counter((kind, at) for kind, at, _ in values)
        for i, kind, mark, numbers in taken:
            most = max(1, min(MAX_VALUES, lines[kind] // 3))
            kept = [
                number if several[kind, at] <= most and (several[kind, at] == 1 or (kind, at) in falls) else ""
                for at, number in enumerate(numbers)
            ]
            who[i] += "".join(f"{words}{number}" for words, number in zip_longest(_NUMBER.split(mark), kept, fillvalue="")).strip()


def _shape(mark: str) -> str:
    """What matches each mark that differs from `mark` in its numbers alone."""
    parts = re.split(r"( *\d+)", mark)
    return "".join(r" {0,12}\d{1,25}" if i % 2 else re.escape(part) for i, part in enumerate(parts))


def _bare(shape: str) -> str:
    """The `shape` of an empty line, of which the last blanks are cut off."""
    while shape.endswith(("\\ ", "\\\t")):
        shape = shape[:-2]
    return shape


def _pattern(shape: str) -> re.Pattern[str]:
    return re.compile(f"(?:{shape}|{_bare(shape)}$)")


def _is_around(shape: str, text: list[str], at: int) -> bool:
    """Whether the lines of `text` around that at the index `at` have that `shape` before them, too."""
    around = [*text[max(at - 2, 0) : at], *text[at + 1 : at + 3]]
    return len(around) > 1 and all(map(_pattern(shape).match, around))


def _goes_on(shape: str, below: list[str]) -> bool:
    """Whether the line `below` a frame has that `shape` before it, too, and what may stand below a frame."""
    return any(re.match(shape + r"(?: {4}| {2}File |[A-Za-z_][\w.]{0,200}(?:: |$))", line) for line in below)
