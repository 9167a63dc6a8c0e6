"""How long a program itself has run: on a busy machine it also waits for a processor, and that time does not count.

Standard library only, since both sides of the pipe limit what they run. Linux records how long each process was ready to run but had to
wait (the second number in `/proc/PID/schedstat`). If the system does not tell, a program's own time is the elapsed time.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Iterator
from functools import partial

# Seconds between two samples: if a process ends in between, its waiting time since the last one is lost.
EVERY = 0.25
# However busy the machine is, at least this share of the elapsed time counts, which limits how long anyone waits for a program's time to be
# over.
LEAST_SHARE = 0.1
# Seconds between two looks at whether a process is stopped, and at how many in a row it is to be continued by nobody.
BETWEEN, STANDS = 1.0, 5


class OwnTime:
    """The own time of the process `pid` and those that it starts, from now on.

    `clock` returns the time in seconds; `waited` returns, for each process in a tree, how many seconds it has waited for a processor so
    far.
    """

    def __init__(
        self, pid: int, clock: Callable[[], float] = time.monotonic, waited: Callable[[int], dict[int, float]] | None = None
    ) -> None:
        self._pid = pid
        self._clock = clock
        self._waited = waited or seconds_waited
        self._started = self._looked = clock()
        self._last = self._waited(pid)
        self._lost = 0.0

    def look(self) -> None:
        """Record the waiting time; does nothing if the last sample is recent."""
        now = self._clock()
        passed = now - self._looked
        if passed < EVERY:
            return
        waited = self._waited(self._pid)
        # while one of them waits for a processor, the others wait for it: the longest wait counts for all
        more = max((seconds - self._last.get(pid, 0.0) for pid, seconds in waited.items()), default=0.0)
        self._lost += min(max(more, 0.0), passed)
        self._last, self._looked = waited, now

    def seconds(self) -> float:
        """The time that the processes have actually had so far, in seconds."""
        passed = self._clock() - self._started
        return max(passed - self._lost, LEAST_SHARE * passed)


def seconds_waited(pid: int) -> dict[int, float]:
    """For the process `pid` and each below it, the seconds that its main thread was ready and did not run. Empty if the system does not
    tell."""
    found: dict[int, float] = {}
    for one in _tree(pid):
        try:
            with open(f"/proc/{one}/schedstat", encoding="ascii") as file:
                found[one] = int(file.read().split()[1]) / 1e9
        except (OSError, ValueError, IndexError):
            continue
    return found


def is_stopped(pid: int, *, alone: bool = False) -> bool:
    """Whether a signal, such as SIGSTOP, has stopped the process `pid` or, unless it is looked at `alone`, one below it. No if the system
    does not tell."""
    for one in [pid] if alone else _tree(pid, threads=True):
        try:
            with open(f"/proc/{one}/stat", encoding="ascii", errors="replace") as file:
                state = file.read().rpartition(")")[2].split()[0]
        except (OSError, IndexError):
            continue
        if state == "T":
            return True
    return False


class Standstill:
    """Notices that the process `pid` was stopped and stays so. Who stops it for a moment, such as a tool that looks at it, continues it.

    `clock` returns the time in seconds; `stopped` returns whether the process is stopped now.
    """

    def __init__(self, pid: int, clock: Callable[[], float] = time.monotonic, stopped: Callable[[int], bool] | None = None) -> None:
        self._pid, self._clock = pid, clock
        self._stopped = stopped or partial(is_stopped, alone=True)
        self._looked = clock()
        self._seen = 0

    def lasts(self) -> bool:
        """Whether it was stopped at each of the last `STANDS` looks, which are at least `BETWEEN` seconds apart."""
        now = self._clock()
        if now - self._looked >= BETWEEN:
            self._looked = now
            self._seen = self._seen + 1 if self._stopped(self._pid) else 0
        return self._seen >= STANDS


def _tree(pid: int, *, threads: bool = False) -> Iterator[int]:
    """The process and its descendants. Those started by a thread other than the main one are unknown, unless all `threads` are asked."""
    waiting = [pid]
    while waiting:
        one = waiting.pop()
        yield one
        with contextlib.suppress(OSError):
            for task in os.listdir(f"/proc/{one}/task") if threads else [str(one)]:
                with contextlib.suppress(OSError, ValueError), open(f"/proc/{one}/task/{task}/children", encoding="ascii") as file:
                    waiting += [int(child) for child in file.read().split()]
