"""How long a program has run by its own account: on a busy machine it also waits for a processor, and that time is not its own.

Standard library alone, since both sides of the pipe limit what they run. Linux says how long each process was ready to run and was
not let (the second number of `/proc/PID/schedstat`). Where the system does not say, a program's own time is the time that passed.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

# Seconds between two looks: a process that ends in between takes what it waited since the last one with it.
EVERY = 0.25
# However busy the machine is, so much of the time that passes counts: whoever waits for a program's time to be over waits no longer
# than that.
LEAST_SHARE = 0.1


class OwnTime:
    """The own time of the process `pid` and those that it starts, from now on.

    `clock` gives the time in seconds; `waited` tells of each process in a tree how many seconds it has waited for a processor so far.
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
        """Take note of what was waited; often enough does nothing."""
        now = self._clock()
        passed = now - self._looked
        if passed < EVERY:
            return
        waited = self._waited(self._pid)
        # one of them waits while the others wait for it: the longest wait is that of all
        more = max((seconds - self._last.get(pid, 0.0) for pid, seconds in waited.items()), default=0.0)
        self._lost += min(max(more, 0.0), passed)
        self._last, self._looked = waited, now

    def seconds(self) -> float:
        """What the processes have had of the time so far, in seconds."""
        passed = self._clock() - self._started
        return max(passed - self._lost, LEAST_SHARE * passed)


def seconds_waited(pid: int) -> dict[int, float]:
    """For the process `pid` and each below it, the seconds that its main thread was ready and did not run. Empty where the system does
    not say."""
    found: dict[int, float] = {}
    for one in _tree(pid):
        try:
            with open(f"/proc/{one}/schedstat", encoding="ascii") as file:
                found[one] = int(file.read().split()[1]) / 1e9
        except (OSError, ValueError, IndexError):
            continue
    return found


def _tree(pid: int) -> Iterator[int]:
    """The process and its offspring; of what a thread other than the main one started nothing is known."""
    waiting = [pid]
    while waiting:
        one = waiting.pop()
        yield one
        try:
            with open(f"/proc/{one}/task/{one}/children", encoding="ascii") as file:
                waiting += [int(child) for child in file.read().split()]
        except (OSError, ValueError):
            continue
