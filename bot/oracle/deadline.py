"""How long the search may go on: the budget, and the user's Ctrl-C."""

from __future__ import annotations

import threading
import time

from bot.models.result import EndedBy
from bot.reduce.candidate import BudgetSpent


class Deadline:
    """A budget in seconds, of which `reserve` is kept for verification and writing."""

    def __init__(self, budget: float, reserve: float = 0.0) -> None:
        self.started = time.monotonic()
        self.budget = budget
        self.reserve = reserve
        self.interrupted = threading.Event()

    def left(self) -> float:
        """Seconds left for the search; negative when it is over."""
        return self.started + self.budget - self.reserve - time.monotonic()

    def check(self) -> None:
        """Raises `BudgetSpent` when the search must end."""
        if self.interrupted.is_set() or self.left() <= 0:
            raise BudgetSpent

    @property
    def ended_by(self) -> EndedBy:
        """Why it ended: budget or interrupted."""
        return "interrupted" if self.interrupted.is_set() else "budget"
