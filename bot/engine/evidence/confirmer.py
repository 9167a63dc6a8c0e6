"""Confirming the best program in fresh processes while the search goes on, so that an interruption loses nothing.

The search asks warm workers; what they accept is confirmed here by a process that shares nothing with them. One that
twice does not confirm is a slip of the warm workers, and the search goes back to the last that did.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass


class Slipped(Exception):
    """An accepted program does not fail alone. `position`: of that program."""

    def __init__(self, position: int) -> None:
        super().__init__(f"the program accepted at step {position} does not fail alone")
        self.position = position


@dataclass(frozen=True)
class Confirmed:
    """A script that failed in the same way, alone, in this many fresh processes of that many."""

    text: str
    position: int  # how many programs the search had accepted
    runs: int
    same: int


@dataclass
class Confirmer:
    """One thread that runs the newest accepted script in a fresh process, one at a time.

    `check` runs a script once and says whether it failed in the same way, for as long as it is wanted; `on_confirmed` is told at once.
    """

    check: Callable[[str, Callable[[], bool]], bool]
    on_confirmed: Callable[[Confirmed], None]
    every: float = 20.0  # seconds between two confirmations: they share the machine with the search
    after: float = 5.0  # seconds before the first: a search that is over by then is proven at once
    best: Confirmed | None = None

    def __post_init__(self) -> None:
        self._slipped: int | None = None
        self._newest: tuple[str, int] | None = None
        self._wake = threading.Event()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def offer(self, text: str, position: int) -> None:
        """A new best program of the search.

        Raises:
            Slipped: an earlier one did not fail alone; said once.
        """
        self._newest = (text, position)
        self._wake.set()
        slipped, self._slipped = self._slipped, None
        if slipped is not None:
            raise Slipped(slipped)

    def stop(self) -> None:
        """No more confirmations: when this returns, nothing more is told. One that runs is cut off."""
        self._stop.set()
        self._wake.set()
        self._thread.join()

    def _wanted(self) -> bool:
        return not self._stop.is_set()

    def _run(self) -> None:
        # without room on the disk there are no confirmations; the search and the proof say so for themselves
        with suppress(OSError):
            self._work()

    def _work(self) -> None:
        self._stop.wait(self.after)
        while self._wanted():
            self._wake.wait()
            self._wake.clear()
            if not self._wanted() or self._newest is None:
                continue
            text, position = self._newest
            if self.best is not None and self.best.text == text:
                continue
            # a second run, as a busy machine may have cut the first one off
            fails = self.check(text, self._wanted) or (self._wanted() and self.check(text, self._wanted))
            if not self._wanted():
                return
            if fails:
                self.best = Confirmed(text, position, 1, 1)
                self.on_confirmed(self.best)
            else:
                self._slipped = position
            self._stop.wait(self.every)
            if self._newest is not None and self._newest[0] != text:
                self._wake.set()
