"""One run of the command line under way, as what does something to it sees it."""

from __future__ import annotations

import contextlib
import os
import random
import re
import signal
import subprocess
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path

from faultlib.processes import Process, Role, below

LOOK = 0.01  # seconds between two looks
# The parts of a run, by what is said at the beginning of each.
PHASES = (
    ("capture", re.compile(r"^\[ *[\d.]+ s\] running ", re.M)),
    ("search", re.compile(r"^\[ *[\d.]+ s\] looking for the smallest form", re.M)),
    ("proof", re.compile(r"^\[ *[\d.]+ s\] verifying in ", re.M)),
    ("evidence", re.compile(r"^\[ *[\d.]+ s\] the exported program, ", re.M)),
)


@dataclass(frozen=True)
class Moment:
    """So many seconds after the beginning of a phase."""

    phase: str
    seconds: float


@dataclass
class Live:
    """A run of `engine`, which says its progress in the file `said`. It works in `place` and writes its result to `out`.

    It is over, whatever it does, at the moment `until` of the monotonic clock. `rng` decides what is left to chance.
    """

    engine: subprocess.Popen[bytes]
    said: Path
    place: Path
    out: Path
    until: float
    rng: random.Random
    hits: list[str] = field(default_factory=list)  # what was done to it
    had_repro: bool = False  # one was seen on the disk
    begun: float = 0.0  # seconds until it said something: until then it has begun to run, and its budget has not
    _began: float = field(default_factory=time.monotonic)
    _phases: dict[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._phases["start"] = self._began

    def goes_on(self) -> bool:
        """Whether it runs; this looks at what it has written as well."""
        self._read_phases()
        self.had_repro = self.had_repro or (self.out / "repro.py").exists()
        return self.engine.poll() is None and time.monotonic() < self.until

    def _read_phases(self) -> None:
        missing = [(name, mark) for name, mark in PHASES if name not in self._phases]
        if missing:
            text = self.said.read_text(encoding="utf-8", errors="replace")
            now = time.monotonic()
            if text and not self.begun:
                self.begun = now - self._began
            self._phases.update({name: now for name, mark in missing if mark.search(text)})

    @property
    def now(self) -> Moment:
        """Where it is."""
        phase, began = list(self._phases.items())[-1]
        return Moment(phase, time.monotonic() - began)

    def wait(self, seconds: float) -> None:
        """Let it run for so many seconds, or to its end."""
        until = time.monotonic() + seconds
        while self.goes_on() and time.monotonic() < until:
            time.sleep(LOOK)

    def wait_for(self, moment: Moment) -> None:
        """Let it run until the `moment`, or to its end."""
        while self.goes_on():
            began = self._phases.get(moment.phase)
            if began is not None and time.monotonic() >= began + moment.seconds:
                return
            time.sleep(LOOK)

    def processes(self, roles: Iterable[Role]) -> list[Process]:
        """Its processes with one of these `roles`."""
        return [process for process in below(self.engine.pid) if process.role in roles]

    def one(self, roles: Iterable[Role], chosen: Callable[[list[Process]], Process] | None = None) -> Process | None:
        """One of its processes with these `roles`, by chance or as `chosen` says; if there is none, the next. None: it has ended."""
        while self.goes_on():
            found = self.processes(roles)
            if found:
                return chosen(found) if chosen is not None else self.rng.choice(found)
            time.sleep(LOOK / 5)
        return None

    def send(self, process: Process, number: signal.Signals) -> None:
        """Send the signal `number` to a `process` of it, and note that."""
        with contextlib.suppress(ProcessLookupError):
            os.kill(process.pid, number)
            self.note(f"{number.name} to {process.role}")

    def note(self, what: str) -> None:
        """Note `what` was done to it, and when."""
        at = self.now
        self.hits.append(f"{what} {at.seconds:.1f} s into {at.phase}")
