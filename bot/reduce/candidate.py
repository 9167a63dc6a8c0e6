"""The interface between `reduce` and `oracle`: what reducers ask, and who answers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from bot.models.failure import Verdict


@dataclass(frozen=True)
class Candidate:
    """A smaller program that may still fail: the exact script that would be posted, not an in-memory form of it."""

    text: str
    origin: str  # the pass that proposes it
    size: tuple[int, ...]  # compared as a tuple; smaller is better


@dataclass(frozen=True)
class Checks:
    """What a reducer asks besides verdicts; by default the failure always shows, no script is objected to, and time never runs out.

    `settle` gets the smallest script after the guesses. What it returns is called after the first round, and returns whether the answers
    count, since an intermittent failure may have stayed away. `ends_well` says whether a script that passes runs to its end: what it says
    about static sizes has to hold for anyone who runs it. `slower` says whether a script that is SAME takes much longer to run than the
    one that stands: dropping an argument may make a model larger. `keeps` rejects scripts that would fail for another reason; they are
    not asked. `in_time` raises BudgetSpent when there is no time left. It is called while candidates are made, which may take longer than
    asking them.
    """

    settle: Callable[[str], Callable[[], bool]] = lambda _text: lambda: True
    ends_well: Callable[[str], bool] = lambda _text: True
    slower: Callable[[str, str], bool] = lambda _text, _standing: False
    keeps: Callable[[str], bool] = lambda _text: True
    in_time: Callable[[], None] = lambda: None


NO_CHECKS = Checks()


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
