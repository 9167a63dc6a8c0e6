"""pytest's way to show an exception, rewritten as Python prints it: one reader of tracebacks is enough.

Frames stand as `path:12: in function` (short) or as source, an empty line and `path:12: ClassName` (long); the exception's
own lines begin with `E`.
"""

from __future__ import annotations

import re

from bot.action.ci.compiles import ADVICE
from bot.action.ci.python_words import HEADER, JOINTS
from bot.action.ci.torn import untorn
from bot.failure.traceback import ungrouped

# Characters of a section in which the test's source is looked for.
MAX_SOURCE = 8_000

_SHORT = re.compile(r"^(?P<path>(?:[A-Za-z]:(?=[\\/]))?[^\s:][^:]{0,500}):(?P<line>\d{1,7}): in (?P<function>.{1,200})$")
_LONG = re.compile(r"^(?P<path>(?:[A-Za-z]:(?=[\\/]))?[^\s:][^:]{0,500}):(?P<line>\d{1,7}): ?(?P<name>[\w.]{0,200})$")
_DEF = re.compile(r"^[> ]\s{0,200}(?:async )?def (?P<function>\w{1,200})")
_CLASS = re.compile(r"^[A-Za-z_][\w.]*(?::|$)")


def _said(lines: list[str], name: str) -> list[str]:
    """The lines of the exception without their `E` and its indent; `assert` alone does not name its class."""
    bare = [line[1:] for line in lines]
    indent = len(bare[0]) - len(bare[0].lstrip())
    said = [line[indent:] if not line[:indent].strip() else line.lstrip() for line in bare]
    if said[0].endswith(HEADER):
        # it quotes another process's
        return [HEADER, *said[1:]]
    if said[0].startswith('File "'):
        return [HEADER, *bare_frames(bare, indent)]
    # the compiler's advice stands at a message's end: what is above is cut off
    within = not name and not _CLASS.match(said[0]) and re.search(ADVICE, "\n".join(said))
    if not within and (not _CLASS.match(said[0]) or said[0].startswith("assert ")):
        said[0] = f"{name or 'AssertionError'}: {said[0]}"
    return said


def bare_frames(lines: list[str], indent: int) -> list[str]:
    """The `lines` of a traceback without its header, of which the first frame stands behind `indent` blanks: two are Python's."""
    return [line[max(indent - 2, 0) :] if not line[: max(indent - 2, 0)].strip() else line.lstrip() for line in lines]


def own_source(section: str) -> str:
    """The source of the test in `section`: what pytest shows above the place in its file, or below it in its short form."""
    source: list[str] = []
    places = 0
    for line in section[:MAX_SOURCE].split("\n"):
        places += bool(_SHORT.match(line))
        if places > 1 or _LONG.match(line):
            break
        if not line.startswith("E ") and not _SHORT.match(line):
            source.append(line)
    return "\n".join(source)


def as_traceback(section: str) -> str:
    """What pytest shows of one failure in `section`, as Python prints it; empty where there is nothing of the kind.

    Text that has a traceback already, or one of a group, is cut to begin there. One that ends among the frames does not tell what
    was raised.
    """
    lines = ungrouped(section).split("\n")
    if HEADER in lines:
        return "\n".join(untorn(lines[lines.index(HEADER) :]))
    out: list[str] = []
    frames: list[str] = []
    raised: list[str] = []
    function = "<unknown>"

    def part(name: str = "") -> None:
        if raised:
            out.extend([HEADER, *frames, *_said(raised, name)])
            frames.clear()
            raised.clear()

    # a log may end before it tells what was raised
    while lines and not lines[-1].strip("E"):
        lines.pop()
    for line in lines:
        if line.startswith("E ") or line == "E":
            raised.append(line)
            continue
        if line in JOINTS:
            part()
            out.extend(["", line, ""])
            continue
        if found := _DEF.match(line):
            function = found["function"]
        elif found := _SHORT.match(line):
            frames.append(f'  File "{found["path"]}", line {found["line"]}, in {found["function"]}')
        elif found := _LONG.match(line):
            frames.append(f'  File "{found["path"]}", line {found["line"]}, in {function}')
            if raised:  # the last frame stands below what it raised
                part(found["name"])
    part()
    return "\n".join([*out, HEADER, *frames] if frames else out)
