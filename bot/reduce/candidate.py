"""What reducers ask, and whom they ask: the interface between `reduce` and `oracle`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from bot.models.failure import Verdict


@dataclass(frozen=True)
class Candidate:
    """A smaller program that may still fail: the very script that would be posted, not an in-memory form of it."""

    text: str
    origin: str  # the pass that proposes it
    size: tuple[int, ...]  # compared as a tuple; smaller is better


class BudgetSpent(Exception):
    """The deadline was reached or the user interrupted; the search ends with what it has."""


class Oracle(Protocol):
    """Answers candidates. Never asks the same text twice. Raises `BudgetSpent` when there is no time left.

    One that tries several candidates at once has their number as its `jobs`.
    """

    def ask(self, candidate: Candidate) -> Verdict:
        """The verdict for one candidate. SAME means: the same signature, and the eager control passes."""
        ...

    def first(self, candidates: Sequence[Candidate]) -> int | None:
        """Index of the first candidate (in order) that is SAME; with several workers they are tried at once, but the
        answer never depends on timing. None if no candidate is SAME."""
        ...
