"""Processes that the program started: which of their errors is the program's failure."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from bot.engine.capture.left import read_facts
from bot.engine.capture.region import ChildMain
from bot.failure.outcome import Outcome
from bot.failure.traceback import CRASH_SIGNALS, fault_frames
from bot.inside.protocol import CHILD_DEATH, CHILD_ERRORS, CHILD_FACTS, CHILD_PREFIX, ChildError, ChildFacts, ErrorsFile
from bot.sandbox.files import read_plain

# Bytes. faulthandler prints all threads, with up to a hundred frames each.
_LONGEST_DEATH = 4 << 20
_DIED = re.compile(rf"^Fatal Python error: ({'|'.join(CRASH_SIGNALS)})$", re.MULTILINE)


@dataclass(frozen=True)
class FailedChild:
    """A process started by the program that raised a compiler error, or that ended in an error or died after calling the compiler.

    `end` is how it failed, `directory` holds its graphs, `time` is in seconds since the epoch.
    """

    directory: Path
    end: Outcome
    time: float

    @property
    def name(self) -> str:
        """The process, for people."""
        known = rank(self.directory)
        return f"rank {known[0]}" if known else f"process {self.directory.name.removeprefix(CHILD_PREFIX)}"


def directories(out: Path) -> list[Path]:
    """The directory of each process that the program started and that called the compiler, below the capture's directory `out`."""
    return sorted(path for path in out.glob(f"{CHILD_PREFIX}*") if path.is_dir() and not path.is_symlink())


def facts(directory: Path) -> ChildFacts:
    """What the process recorded about itself in its `directory`. Not trusted: the program can write anything there."""
    found = read_facts(directory / CHILD_FACTS, ChildFacts)
    return found or ChildFacts(rank="", world="", tolerance=None, call="", file="", argv=None, text="", package="")


def rank(directory: Path) -> tuple[int, int] | None:
    """The rank of the process with this `directory`, and the world size; None if the program is not distributed."""
    known = facts(directory)
    try:
        return int(known["rank"]), int(known["world"])
    except ValueError:
        return None


def arguments(directory: Path, file: str | None) -> tuple[str, ...] | None:
    """The arguments of the script that the process with this `directory` ran: the program's own `file`, or another script whose text is
    known. None if it ran neither."""
    known = facts(directory)
    own = file is not None and os.path.abspath(file) == known["file"]
    return tuple(known["argv"]) if known["argv"] is not None and (own or known["text"]) else None


def main(directory: Path, file: str | None) -> ChildMain | None:
    """What the process with this `directory` ran; None if that is the program's own `file`, or not known."""
    known = facts(directory)
    if not known["text"] or (file is not None and os.path.abspath(file) == known["file"]):
        return None
    return ChildMain(file=Path(known["file"]), text=known["text"], package=known["package"])


def failing(out: Path, printed: str, *, ended: bool = False) -> FailedChild | None:
    """The first compiler error of a child that also appears in what was `printed`, by the child or by whoever received the error. An error
    that nobody mentions was handled. `out` is the capture's directory. With `ended`, it is instead the first error that ended a child and
    did not come from the compiler, such as one of the program's own comparison of numbers."""
    known = [
        FailedChild(place, Outcome(status="raised", text=error["text"]), error["time"])
        for place, error in _errors(out)
        if error["ended"] is ended and error["said"] and error["said"][:200] in printed
    ]
    return min(known, key=lambda child: child.time, default=None)


def dead(out: Path) -> FailedChild | None:
    """The first child that died of a signal with Python frames on its stack. `out` is the capture's directory."""
    return min(_deaths(out), key=lambda child: child.time, default=None)


def _errors(out: Path) -> Iterator[tuple[Path, ChildError]]:
    for path in (place / CHILD_ERRORS for place in directories(out)):
        found = read_facts(path, ErrorsFile)
        for error in found["errors"] if found else ():
            yield path.parent, error


def _deaths(out: Path) -> Iterator[FailedChild]:
    for path in (place / CHILD_DEATH for place in directories(out)):
        try:
            text, time = read_plain(path, _LONGEST_DEATH).decode("utf-8", "replace"), path.lstat().st_mtime
        except OSError:  # it did not die, or the path is not a plain file
            continue
        died = _DIED.search(text)
        if died and fault_frames(text):
            yield FailedChild(path.parent, Outcome(status="signal", text=text, signal=CRASH_SIGNALS[died[1]]), time)
