"""Tracebacks as IPython (notebooks) and rich (command lines) draw them, rewritten as Python prints them."""

from __future__ import annotations

import re
from typing import Literal

from bot.action.ci.python_words import HEADER

MAX_LINES = 4_000

_IPYTHON = re.compile(r"^(?P<name>[A-Za-z_][\w.]{0,100}) +Traceback \(most recent call last\)$")
_RICH = re.compile(r"^ {0,200}[╭┌+][─-]{1,300} Traceback \(most recent call last\) [─-]{1,300}[╮┐+]$")
# `File a.py:5, in f(x)`, `Cell In[2], line 5, in f(x)`, and what older ones wrote; Colab makes links of paths, JupyterLab of places.
_PLACE = re.compile(
    r"^(?:File )?\[?(?P<path>(?:[A-Za-z]:(?=[\\/]))?[^\s\[\]:][^\[\]:]{0,500}?\.py|<[\w-]{1,100}>|(?:Cell |Input )?In ?\[\d{1,6}\])"
    r"(?::(?P<linked>\d{1,7})(?=\]))?(?:\]\(https?:[^()\s]{0,1000}\))?(?::(?P<line>\d{1,7}))?(?:, line (?P<at>\d{1,7}))?"
    r"(?:,? in (?P<function><[^<>]{1,100}>|[\w.<>]{1,200}))?(?:\(.{0,2000}\))?$"
)
# The beginning of such a place, with a function or before it, where what was copied has lines of a fixed width.
_OPEN = re.compile(
    r"^(?:File )?\[?(?P<root>[~/]|[A-Za-z]:[\\/])?[^\s\[\]:][^\[\]:]{0,500}?\.py(?::\d{1,7})?(?:, line \d{1,7})?,? in"
    r"(?: (?:<[^<>]{1,100}>|[\w.<>]{1,200})\([^)]{0,500})?$"
)
# The first words of a header, whose last ones may stand on the next line.
_HEADED = re.compile(r"^(?P<name>[A-Za-z_][\w.]{0,100}) +(?P<words>Traceback(?: \(most(?: recent(?: call)?)?)?)$")
_ARROW = re.compile(r"^-+> ?(?P<line>\d{1,7}) ?(?P<source>.{0,500})")
_SOURCE = re.compile(r"^(?:\s|\d{1,7} |-+>)")
_BOXED = re.compile(r"^(?P<path>\S[^│|]{0,500}?\.py): ?(?P<line>\d{1,7}) in ?(?P<function>\S{0,200})$")
# The same, and a path that goes on below, where what was copied begins within the box.
_IN_BOX = re.compile(
    r"^(?:[│|] {1,3}(?:/|~|[A-Za-z]:[\\/])[^│|]{0,500}?\.py(?::\d{1,7} in \S{1,200})? *[│|]?"
    # a line of a program, which nothing else has between such bars
    r"|│ {1,9}(?:❱ {0,9})?\d{1,7} │.{0,1000})$"
)
_BAR = re.compile(r"[│|]")
_BEGUN = re.compile(r"^(?:/|~|[A-Za-z]:[\\/])\S{1,500}$")
_SAID = re.compile(r"^(?P<name>[A-Za-z_][\w.]{0,200})(?:: |$)")
# Lines of one place that is broken.
MAX_BROKEN = 6


def begins(line: str) -> bool:
    """Whether a traceback of that kind begins on `line`."""
    return "Traceback (most recent call last)" in line and bool(_IPYTHON.match(line) or _RICH.match(line))


def header(first: str, second: str) -> str:
    """The header of a notebook's traceback that is broken into the lines `first` and `second`; empty where they are none."""
    headed = _HEADED.match(first) if "Traceback" in first else None
    whole = f"{headed['name']} {headed['words']} {second.strip()}" if headed else ""
    return whole if begins(whole) else ""


def goes_on(line: str) -> bool:
    """Whether a frame that IPython drew begins on `line`, with a path and a function, or one of rich's; its end may be broken off."""
    if line.startswith(("│", "|")):
        return bool(_IN_BOX.match(line))
    line = line.strip()
    place = _PLACE.match(line) if line.startswith("File ") or line.endswith(")") else None
    if place is not None:
        return bool(place["function"])
    begun = _OPEN.match(line) if ".py" in line else None
    return begun is not None and begun["root"] is not None and "(" in line


class Drawn:
    """A traceback that is being read, from its first line `first`, until its message begins; that and a chain's joints included.

    One of a notebook may begin below its header, with a frame.
    """

    def __init__(self, first: str) -> None:
        self.lines = [HEADER]
        self.state: Literal["frames", "closed", "said", "joined"] = "frames"
        self._broken: list[str] = []
        self._begin(first)

    def _begin(self, first: str) -> None:
        notebook = _IPYTHON.match(first)
        self._in_box = _RICH.match(first) is not None or first.startswith(("│", "|"))
        self._headless = notebook is None and not _RICH.match(first)
        self._name = notebook["name"].rpartition(".")[2] if notebook else ""
        self._pending = ""

    def take(self, line: str) -> bool:
        """Whether the line belongs to what stands above the message, or is its first."""
        if len(self.lines) >= MAX_LINES:
            return False
        if self.state == "joined":
            if line.strip() and not begins(line):
                return False
            if line.strip():
                self.lines.append(HEADER)
                self._begin(line)
                self.state = "frames"
            return True
        return self._boxed(line.strip()) if self._in_box else self._in_notebook(line)

    @property
    def is_excerpt(self) -> bool:
        """Whether it has frames and no header: what was copied begins with one."""
        return self._headless and self.lines[-1] != HEADER

    def close(self) -> bool:
        """The log ends: whether there is a frame, or more. The header of a notebook said what was raised."""
        framed = self.state in ("said", "joined") or self.lines[-1] != HEADER
        if framed and self._name and self.state == "frames":
            self.lines.append(self._name)
        return framed

    def join(self, line: str) -> None:
        """The message ended, with one of `JOINTS`: what follows is the next exception of the chain."""
        self.lines.extend(["", line, ""])
        self.state = "joined"

    def _frame(self, path: str, line: str, function: str) -> None:
        self.lines.append(f'  File "{path}", line {line}, in {function or "<module>"}')

    def _whole(self, line: str) -> str:
        """The place of a frame of which `line` may be a part: as one line where all of it was seen, empty where more is to come."""
        bare = line.strip()
        if self._broken and ": " in line and _SAID.match(line):
            # what was raised
            self._broken = []
        if self._broken:
            self._broken.append(bare)
            if bare.endswith(")") or len(self._broken) >= MAX_BROKEN:
                joined = " ".join(self._broken)
                self._broken = []
                return joined
            return ""
        if ".py" in bare and _OPEN.match(bare):
            self._broken = [bare]
            return ""
        return bare if bare.endswith(")") and ".py" in bare and goes_on(bare) else line

    def _in_notebook(self, line: str) -> bool:
        if not (line := self._whole(line)):
            return True
        said = _SAID.match(line)
        if said and self._name in ("", said["name"].rpartition(".")[2]):
            self.lines.append(line)
            self.state = "said"
            return True
        if arrow := _ARROW.match(line):
            if self.lines[-1].startswith("  File "):
                # older ones say the line here alone
                self.lines[-1] = self.lines[-1].replace("line 0, in ", f"line {arrow['line']}, in ")
                self.lines.append(f"    {arrow['source'].strip()}")
            return True
        if place := _PLACE.match(line):
            self._frame(place["path"], place["line"] or place["linked"] or place["at"] or "0", place["function"] or "")
            return True
        # of the place of a frame, as of what was copied, the end may be cut off
        return not line.strip() or bool(_SOURCE.match(line)) or line.startswith("File ")

    def _boxed(self, line: str) -> bool:
        if self.state == "closed":
            if not line:
                return True
            if not _SAID.match(line):
                return False
            self.lines.append(line)
            self.state = "said"
            return True
        if line.startswith(("╰", "└", "+-")):
            self.state = "closed"
            return True
        if not line.startswith(("│", "|")):
            # an excerpt may end within the box
            return not line
        inside = line[1:].rstrip("│| ").strip()
        # a long path goes on below, in as many lines as it needs
        whole = self._pending + inside
        place = _BOXED.match(whole)
        self._pending = whole if not place and _BEGUN.match(whole) else ""
        if place:
            self._frame(place["path"], place["line"], place["function"] or "<unknown>")
        elif inside.startswith(("❱", "> ")) and self.lines[-1].startswith("  File "):
            self.lines.append("    " + _BAR.split(inside, maxsplit=1)[-1].replace("│", " ").strip())
        return True
