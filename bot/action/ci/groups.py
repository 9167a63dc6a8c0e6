"""Which failing tests have one cause, and which causes are worth minimizing."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from bot.action.ci.failing_test import Failure
from bot.action.ci.judge import Rating, judge
from bot.models.failure import Signature

# Reads a failure's signature, as `bot.action.ci.judge` does. None: there is no failure in the text.
Sign = Callable[[Failure], "Signature | None"]
# What is wrong with the machine, where the failure is its fault.
Fault = Callable[[Failure], "str | None"]

ORDER: dict[Rating, int] = {"suggested": 0, "possible": 1, "no": 2}


@dataclass(frozen=True)
class Group:
    """Tests that fail in one way, and what is to be done about them."""

    signature: Signature | None
    failures: tuple[Failure, ...]
    verdict: Rating
    reason: str

    @property
    def first(self) -> Failure:
        """The test to minimize: one without parameters, with the shortest id, since it is most often the plainest."""
        return min(self.failures, key=lambda failure: (not failure.runnable, "[" in failure.test, len(failure.test), failure.test))

    @property
    def tests(self) -> tuple[str, ...]:
        """The ids of all of them, where known, else their names."""
        return tuple(failure.test or failure.name for failure in self.failures)


@dataclass(frozen=True)
class BaseRun:
    """What failed in the last run of the branch that this one is compared with."""

    name: str
    failing: frozenset[tuple[str, str]]

    @staticmethod
    def of(name: str, failures: Iterable[Failure], sign: Sign) -> BaseRun:
        """What failed on the branch `name`: the `failures` of its last run, by the signatures that `sign` gives them."""
        return BaseRun(name, frozenset((failure.test or failure.name, _key(sign(failure))) for failure in failures))


def _key(signature: Signature | None) -> str:
    return signature.fingerprint if signature else ""


def group(failures: Iterable[Failure], base: BaseRun | None, sign: Sign, fault: Fault = lambda _: None) -> tuple[Group, ...]:
    """Group `failures` by the signature that `sign` gives them, those worth minimizing first, then by size.

    A test that fails in the same way in `base` is left out; a group of nothing else is not a candidate. `fault` says whether the
    machine was to blame.
    """
    by_key: dict[str, list[Failure]] = {}
    signatures: dict[str, Signature | None] = {}
    for failure in failures:
        signature = sign(failure)
        # what shows no failure is no group: each is listed for itself
        key = _key(signature) or f"{failure.job}\0{failure.test}\0{failure.name}"
        by_key.setdefault(key, []).append(failure)
        signatures.setdefault(key, signature)
    groups = [_group(signatures[key], tuple(found), base, fault) for key, found in by_key.items()]
    return tuple(sorted(groups, key=rank))


def rank(found: Group) -> tuple[int, int, str, tuple[str, ...]]:
    """The sort key of the group `found`: those worth minimizing first, then the largest."""
    return ORDER[found.verdict], -len(found.failures), _key(found.signature), found.tests


def _group(signature: Signature | None, failures: tuple[Failure, ...], base: BaseRun | None, fault: Fault) -> Group:
    key = _key(signature)
    if base is not None:
        new = tuple(failure for failure in failures if (failure.test or failure.name, key) not in base.failing)
        if not new:
            return Group(signature, failures, "no", f"fails in the same way on {base.name}")
        failures = new
    broken = fault(failures[0])
    if broken:
        return Group(signature, failures, "no", f"the machine's fault: {broken}")
    verdict, reason = judge(signature, failures[0])
    if verdict != "no" and not any(failure.runnable for failure in failures):
        return Group(signature, failures, "no", f"{reason}, but no test of it can be named in a command")
    if verdict == "suggested":
        reason += f"; it did not on {base.name}" if base is not None else "; no run of the base can be compared with it"
    return Group(signature, failures, verdict, reason)


def chosen(groups: Sequence[Group], most: int, *, asked: bool) -> tuple[Group, ...]:
    """The groups to minimize, at most `most`: what is suggested; where a person asked and nothing is, what is possible."""
    suggested = [found for found in groups if found.verdict == "suggested"]
    possible = [found for found in groups if found.verdict == "possible"] if asked else []
    return tuple((suggested or possible)[:most])
