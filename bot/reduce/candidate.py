"""The interface between `reduce` and `oracle`: what reducers ask, and who answers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from bot.models.failure import Verdict


@dataclass(frozen=True)
class Candidate:
    """A smaller program that may still fail: the exact script that would be posted, not an in-memory form of it."""

    text: str
    origin: str  # the pass that proposes it
    size: tuple[int, ...]  # compared as a tuple; smaller is better


class BudgetSpent(Exception):
    """The deadline has passed or the user interrupted; the search ends with what it has."""


class Oracle(Protocol):
    """Judges candidates. Never runs the same text twice. Raises `BudgetSpent` when there is no time left.

    An oracle that tries several candidates at once has their number as its `jobs`.
    """

    def ask(self, candidate: Candidate) -> Verdict:
        """The verdict on one `candidate`. SAME means that the signature is the same and the eager control passes."""
        ...

    def first(self, candidates: Sequence[Candidate]) -> int | None:
        """Index of the first of the `candidates` (in order) that is SAME, or None. Several workers try them at once, but the answer never
        depends on timing."""
        ...
