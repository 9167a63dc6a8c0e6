"""Errors in a process that the watched program started.

The program may report a different error, in other words, or only an exit status. So each error that `escaped` sees leave the compiler
there is recorded, as is the one with which the process ends; the engine looks for them in the output. A process that dies of a signal
leaves its stack.
"""

from __future__ import annotations

import faulthandler
import os
import sys
import time
import tokenize
import traceback
from typing import IO

from .. import children
from ..protocol import CHILD_DEATH, CHILD_ERRORS, CHILD_FACTS, CHILD_PREFIX, ChildError, ChildFacts, write_json
from .escaped import whole_text

# Maximum number of characters of a recorded script.
_LONGEST_TEXT = 1 << 20


class ChildErrors:
    """What a child process records. `root` is the directory of the capture; for the program itself only the `tolerance` is kept."""

    def __init__(self, root: str) -> None:
        self.root = root
        self.directory = ""  # of this process, if the program started it
        self.tolerance: list[float] | None = None  # of the last comparison; empty for the defaults
        self._errors: list[ChildError] = []
        self._last: BaseException | None = None
        self._death: IO[bytes] | None = None
        self._call: str | None = None  # at the last sign of life

    def enter(self) -> str:
        """Mark this as a process that the program started. Returns the directory for its files."""
        self.directory = os.path.join(self.root, f"{CHILD_PREFIX}{os.getpid()}")
        self._errors, self._last, self._death = [], None, None
        # inherited by a fork; a DataLoader worker installs its own handlers instead, and must be overridden by enabling ours later
        faulthandler.disable()
        return self.directory

    def reached(self) -> None:
        """Record that this process called the compiler, and for which work. If it dies from here on, it leaves its stack."""
        if not self.directory:
            return
        known, self._call = self._call, children.work()
        if self._death is None:
            os.makedirs(self.directory, exist_ok=True)
            # standard error may go nowhere
            self._death = open(os.path.join(self.directory, CHILD_DEATH), "wb", buffering=0)  # noqa: SIM115 - until the process ends
            faulthandler.enable(self._death)
        elif known == self._call:
            return
        self._write_facts()

    def compared(self, tolerance: list[float]) -> None:
        """Record that the program compares by itself, with this `tolerance`."""
        known, self.tolerance = self.tolerance, tolerance
        if self._death is not None and known != tolerance:
            self._write_facts()

    def _write_facts(self) -> None:
        main = sys.modules.get("__main__")
        file = os.path.abspath(getattr(main, "__file__", None) or "")
        facts = ChildFacts(
            rank=os.environ.get("RANK", ""),
            world=os.environ.get("WORLD_SIZE", ""),
            tolerance=self.tolerance,
            call=self._call or "",
            file=file,
            argv=sys.argv[1:] if self._call is None else None,
            text=_text(file) if self._call is None else "",
            package=getattr(main, "__package__", None) or "",
        )
        write_json(os.path.join(self.directory, CHILD_FACTS), facts)

    def record(self, error: BaseException) -> None:
        """Record an `error`. If it passes several places, the last one counts."""
        if not self.directory:
            return
        if self._errors and self._last is not None and self._last in _chain(error):
            self._errors.pop()
        self._note(error)

    def ended(self, error: BaseException) -> None:
        """Record the `error` with which this process ends, if it called the compiler."""
        if self._death is not None and (self._last is None or self._last not in _chain(error)):
            self._note(error, ended=True)

    def _note(self, error: BaseException, *, ended: bool = False) -> None:
        self._last = error
        said = traceback.format_exception_only(type(error), error)[0].strip().split("\n")[0]
        self._errors.append({"text": whole_text(error), "said": said, "time": time.time(), "ended": ended})
        self.reached()
        write_json(os.path.join(self.directory, CHILD_ERRORS), {"errors": self._errors})


def _text(file: str) -> str:
    """What this interpreter was started with: the text of the main module's `file`, or the command if that is a directory."""
    if os.path.isdir(file):
        return sys.orig_argv[-len(sys.argv)] if sys.argv[:1] == ["-c"] else ""
    try:
        with tokenize.open(file) as opened:
            text = opened.read(_LONGEST_TEXT + 1)
    except (OSError, SyntaxError, UnicodeError):
        return ""
    return text if len(text) <= _LONGEST_TEXT else ""


def _chain(error: BaseException) -> list[BaseException]:
    """An error and those it was raised from."""
    found: list[BaseException] = []
    waiting: list[BaseException | None] = [error]
    while waiting:
        one = waiting.pop()
        if one is not None and one not in found:
            found.append(one)
            waiting += [one.__cause__, one.__context__, getattr(one, "inner_exception", None)]
    return found
