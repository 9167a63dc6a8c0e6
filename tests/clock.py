"""A clock that tests turn."""

from __future__ import annotations


class Clock:
    """Seconds that pass when a test says so, and `tick` seconds at each look."""

    def __init__(self, tick: float = 0.0) -> None:
        self.now = 0.0
        self.tick = tick

    def __call__(self) -> float:
        self.now += self.tick
        return self.now
