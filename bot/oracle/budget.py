"""How long a job may go on: its seconds, and the user's Ctrl-C."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from bot.models.result import EndedBy
from bot.reduce.candidate import BudgetSpent


class Budget:
    """A number of seconds that starts to run at once, and whether the work is still wanted.

    `seconds` is the total; the last `reserve` seconds are kept from the search, for verification and writing. `clock` gives the time in
    seconds. A budget with a `parent` is cancelled with it.
    """

    def __init__(
        self,
        seconds: float,
        reserve: float = 0.0,
        *,
        clock: Callable[[], float] = time.monotonic,
        parent: Budget | None = None,
    ) -> None:
        self.seconds = seconds
        self.reserve = reserve
        self.clock = clock
        self.started: float = clock() if parent is None else parent.started
        self._parent = parent
        self._cancelled = threading.Event()

    def part(self, seconds: float | None = None) -> Budget:
        """The same time, or its first `seconds`, without the reserve, for a piece of the work that can be cancelled on its own."""
        return Budget(self.seconds if seconds is None else seconds, clock=self.clock, parent=self)

    def left(self) -> float:
        """Seconds left for the search; negative when it is over."""
        return self.started + self.seconds - self.reserve - self.clock()

    def remaining(self) -> float:
        """Seconds left in total, including the reserve; 0 when it is over."""
        return max(0.0, self.started + self.seconds - self.clock())

    def cancel(self) -> None:
        """End the work, whatever time is left."""
        self._cancelled.set()

    def should_continue(self) -> bool:
        """Whether nobody has cancelled the work. It may go on when no time is left: that is what the reserve is for."""
        return not self._cancelled.is_set() and (self._parent is None or self._parent.should_continue())

    def sleep(self, seconds: float) -> None:
        """Wait for this many `seconds`, or until this budget itself is cancelled."""
        self._cancelled.wait(seconds)

    @property
    def is_spent(self) -> bool:
        """Whether the search has to end."""
        return not self.should_continue() or self.left() <= 0

    def check(self) -> None:
        """Return while the search may go on.

        Raises:
            BudgetSpent: its time is over, or the work was cancelled.
        """
        if self.is_spent:
            raise BudgetSpent

    @property
    def ended_by(self) -> EndedBy:
        """Why it ended: budget or interrupted."""
        return "budget" if self.should_continue() else "interrupted"
