"""The accepted steps of a search, and how it goes back to before one that a warm worker accepted by mistake."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TypeVar

from bot.engine.evidence.confirmer import Slipped
from bot.engine.options import Ended
from bot.engine.state import SearchResult
from bot.reduce.candidate import BudgetSpent
from bot.sandbox.sandbox import NoSandbox
from bot.workers.pool import PoolError
from bot.workers.process import Interrupted

# A search goes back to before a step that did not fail alone at most this often.
MOST_SLIPS = 3

_Reduced = TypeVar("_Reduced")


class Trail:
    """The steps, and the last of them that a fresh process confirmed.

    The search adds the steps in its thread; confirmations come from another. `offer` gets each step and its position; it raises `Slipped`
    if an earlier one does not fail alone. `latest` gives the index of the last of some steps that does, `say` tells people.
    """

    def __init__(
        self,
        offer: Callable[[SearchResult, int], object] = lambda _step, _position: None,
        latest: Callable[[Sequence[SearchResult]], int | None] = lambda _steps: None,
        say: Callable[[str], None] = lambda _line: None,
    ) -> None:
        self._offer, self._latest, self._say = offer, latest, say
        self._lock = threading.Lock()
        self._steps: list[SearchResult] = []
        self._best: SearchResult | None = None
        self._confirmed: SearchResult | None = None
        self._confirmed_at = 0
        self._abandoned = 0  # the steps before this position are abandoned
        self._slips = 0
        self._may_go_back = False
        self._steady = True

    @property
    def best(self) -> SearchResult | None:
        """The last program that was accepted or noted."""
        with self._lock:
            return self._best

    @property
    def confirmed(self) -> SearchResult | None:
        """The step that a fresh process confirmed last."""
        with self._lock:
            return self._confirmed

    def confirm(self, position: int) -> None:
        """Remember that a fresh process confirmed the step at this `position`."""
        with self._lock:
            self._confirmed = self._steps[position]
            self._confirmed_at = max(self._confirmed_at, position)

    def slips_of(self, rate: float) -> list[SearchResult]:
        """The steps one of which slipped, given the `rate` (0 to 1) at which the last one fails alone: those since the confirmed one. All
        steps if it fails only sometimes while the original always does: the single run that confirmed a step says little. Empty if nothing
        slipped, or if there is only one step.
        """
        with self._lock:
            now_and_then = 0.0 < rate < 1.0 and self._steady
            steps = self._steps if now_and_then else self._steps[self._confirmed_at :] if rate == 0.0 else []
            return list(steps) if len(self._steps) > 1 else []

    def __len__(self) -> int:
        with self._lock:
            return len(self._steps)

    def note(self, best: SearchResult) -> None:
        """Remember `best` without adding a step."""
        with self._lock:
            self._best = best

    def accept(self, step: SearchResult, *, steady: bool = True) -> None:
        """Add a step. `steady`: its failure shows in every run.

        Raises:
            Slipped: inside `past_slips`, if an earlier step does not fail alone.
        """
        with self._lock:
            self._steps.append(step)
            self._best = step
            self._steady = steady
            position = len(self._steps) - 1
        try:
            self._offer(step, position)
        except Slipped as slip:
            # a failure that shows only sometimes does not show in each confirmation
            if self._may_go_back and steady and slip.position >= self._abandoned and self._slips < MOST_SLIPS:
                raise

    def rescued(self, search: Callable[[], SearchResult], keep: Callable[[], object]) -> SearchResult:
        """The result of the `search`. If a pass of ours fails in it, the best step so far, with what failed as its fault; `keep` is called
        while that is handled.
        """
        try:
            return search()
        except (BudgetSpent, Ended, Interrupted, NoSandbox, OSError, PoolError):
            raise
        except Exception as error:  # a step that is proven counts, whatever failed on the way to a smaller one
            best = self.best
            if best is None or not len(self):
                raise
            keep()
            fault = f"torch-minify itself failed while it searched on: {type(error).__name__}: {error}"
            return replace(best, fixed_point=False, fault=fault)

    def past_slips(self, reduce: Callable[[SearchResult], _Reduced], step: SearchResult, reject: Callable[[str], None]) -> _Reduced:
        """Run `reduce` from a `step` on, and again from before one that did not fail alone; `reject` gets the text of that one."""
        while True:
            try:
                self._may_go_back = True
                return reduce(step)
            except Slipped as slip:
                self._may_go_back = False
                step = self._back(slip.position, reject)
            finally:
                self._may_go_back = False

    def _back(self, position: int, reject: Callable[[str], None]) -> SearchResult:
        """The last step that fails alone; the one after it is never taken again."""
        self._say("the warm workers slipped: going back to the last program that fails alone")
        self._slips += 1
        with self._lock:
            steps = self._steps[max(self._confirmed_at, self._abandoned) : position + 1]
            last = self._steps[-1]
        good = self._latest(steps)
        if good is None or good + 1 == len(steps):
            return last  # nothing can be said: the proof decides
        reject(steps[good + 1].text)
        with self._lock:
            self._confirmed_at = self._abandoned = len(self._steps)
        self.accept(steps[good])
        return steps[good]
