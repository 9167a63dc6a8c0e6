"""Confirms the best program in fresh processes while the search goes on, so that an interruption loses nothing.

The search asks warm workers; what they accept is confirmed here by a process that shares nothing with them. A program that is not confirmed
in two runs is a slip of the warm workers, and the search goes back to the last confirmed one.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from types import TracebackType
from typing import Generic, TypeVar

from bot.oracle.budget import Budget

S = TypeVar("S")


class Slipped(Exception):
    """The program that was accepted at `position` does not fail alone."""

    def __init__(self, position: int) -> None:
        super().__init__(f"the program accepted at step {position} does not fail alone")
        self.position = position


@dataclass
class Confirmer(Generic[S]):
    """One thread that runs the newest accepted step in a fresh process, one at a time; it lives as long as the `with` block.

    `check` runs a step once and says whether it failed in the same way; it gives up when the budget that it gets is cancelled.
    `on_confirmed` is called at once, in this thread, with each confirmed step and its position.
    """

    check: Callable[[S, Budget], bool]
    on_confirmed: Callable[[S, int], object]
    budget: Budget  # cancelled at the end of the block
    every: float = 20.0  # seconds between two confirmations: they share the machine with the search
    after: float = 5.0  # seconds before the first: a search that is over by then is proven at once

    def __post_init__(self) -> None:
        self._lock = threading.Lock()  # guards the next two, which both threads use
        self._newest: tuple[S, int] | None = None
        self._slipped: int | None = None
        self._wake = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Confirmer[S]:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        """Stop confirming; a check that is running is cut off. Once this returns, nothing more is reported."""
        self.budget.cancel()
        self._wake.set()
        self._thread.join()

    def offer(self, step: S, position: int) -> None:
        """Take `step`, the new best program of the search, which it accepted at this `position`. Raises Slipped, once, if an earlier one
        did not fail alone."""
        with self._lock:
            self._newest = (step, position)
            slipped, self._slipped = self._slipped, None
        self._wake.set()
        if slipped is not None:
            raise Slipped(slipped)

    def _run(self) -> None:
        # without disk space there are no confirmations; the search and the proof report that themselves
        with suppress(OSError):
            self._work()

    def _work(self) -> None:
        self.budget.sleep(self.after)
        best: S | None = None
        while self.budget.should_continue():
            self._wake.wait()
            self._wake.clear()
            with self._lock:
                newest = self._newest
            if not self.budget.should_continue() or newest is None:
                continue
            step, position = newest
            if step == best:
                continue
            # run it again if it did not fail: a busy machine may have cut off the first run
            fails = self.check(step, self.budget) or (self.budget.should_continue() and self.check(step, self.budget))
            if not self.budget.should_continue():
                return
            if fails:
                best = step
                self.on_confirmed(step, position)
            else:
                with self._lock:
                    self._slipped = position
            self.budget.sleep(self.every)
            with self._lock:
                if self._newest is not None and self._newest[0] != step:
                    self._wake.set()
