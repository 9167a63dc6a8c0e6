"""Confirming the best program in fresh processes while the search goes on, so that an interruption loses nothing.

The search asks warm workers; what they accept is confirmed here by a process that shares nothing with them. One that
twice does not confirm is a slip of the warm workers, and the search goes back to the last that did.
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
    """An accepted program does not fail alone. `position`: of that program."""

    def __init__(self, position: int) -> None:
        super().__init__(f"the program accepted at step {position} does not fail alone")
        self.position = position


@dataclass
class Confirmer(Generic[S]):
    """One thread that runs the newest accepted step in a fresh process, one at a time; it lives as long as the `with` block.

    `check` runs a step once and says whether it failed in the same way; it gives up when the budget that it is given is cancelled.
    `on_confirmed` is told each confirmed step with its position at once, in this thread.
    """

    check: Callable[[S, Budget], bool]
    on_confirmed: Callable[[S, int], object]
    budget: Budget  # cancelled at the end of the block
    every: float = 20.0  # seconds between two confirmations: they share the machine with the search
    after: float = 5.0  # seconds before the first: a search that is over by then is proven at once

    def __post_init__(self) -> None:
        self._lock = threading.Lock()  # of the next two, which both threads use
        self._newest: tuple[S, int] | None = None
        self._slipped: int | None = None
        self._wake = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Confirmer[S]:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        """No more confirmations: when this returns, nothing more is told. One that runs is cut off."""
        self.budget.cancel()
        self._wake.set()
        self._thread.join()

    def offer(self, step: S, position: int) -> None:
        """Take `step`, the new best program of the search, which it accepted at this `position`. Raises Slipped where an earlier one did
        not fail alone; said once."""
        with self._lock:
            self._newest = (step, position)
            slipped, self._slipped = self._slipped, None
        self._wake.set()
        if slipped is not None:
            raise Slipped(slipped)

    def _run(self) -> None:
        # without room on the disk there are no confirmations; the search and the proof say so for themselves
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
            # a second run, as a busy machine may have cut the first one off
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
