"""A clock that tests turn, and what a machine does to one that they do not."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager


class Clock:
    """Seconds that pass when a test says so, and `tick` seconds at each look."""

    def __init__(self, tick: float = 0.0) -> None:
        self.now = 0.0
        self.tick = tick

    def __call__(self) -> float:
        self.now += self.tick
        return self.now


@contextmanager
def longest_pause(every: float = 0.05, clock: Callable[[], float] = time.monotonic) -> Iterator[Callable[[], float]]:
    """Gives a function that returns for how many seconds at most this process got no processor, beyond the `every` seconds of a look."""
    ended, longest = threading.Event(), 0.0

    def look() -> None:
        nonlocal longest
        while True:
            began = clock()
            over = ended.wait(every)
            longest = max(longest, clock() - began - every)
            if over:
                return

    thread = threading.Thread(target=look, daemon=True)
    thread.start()
    try:
        yield lambda: longest
    finally:
        ended.set()
        thread.join()
