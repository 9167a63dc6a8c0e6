"""How a candidate is run."""

from __future__ import annotations

from dataclasses import dataclass

from bot.inside.traits import Traits
from bot.models.failure import Kind, Phase, Signature

# This many runs miss a failure that shows in one run of three in only 2 of 100 cases.
TRIES = 10
# Seconds below which nothing is a hang, unless the user says so.
LEAST_HANG = 10.0
# Phases in which a compiler rejects code that Inductor generated.
BLAMING = (Phase.CPP_COMPILE, Phase.TRITON_COMPILE, Phase.LOAD)
# Phases after which nothing of the compiler is left to skip.
_NO_EARLY_EXIT = (Phase.LOAD, Phase.RUN)


@dataclass(frozen=True)
class RunPlan:
    """How far a candidate is run, how often and in which mode.

    `stop_after` is the phase after which the compiler is left; None for never. `tries` is the number of runs that have to pass before a
    candidate does: more for a failure that shows only sometimes. `seeded`: the program fixes its random numbers, so a candidate that draws
    any has to fix them as well; `draws_as_eager`: and it has compiled code draw the same ones. `notes_blame`: a run notes which values are
    in code that a compiler rejects.
    """

    stop_after: str | None = None
    tries: int = 1
    seeded: bool = False
    draws_as_eager: bool = False
    notes_blame: bool = False


@dataclass(frozen=True)
class Limits:
    """Seconds: `run` for one run, `hang_after` for a hang.

    `patience` is the share of `hang_after` after which the search takes a run for a hang; the proof waits for all of it.
    """

    run: float = 60.0
    hang_after: float = 60.0
    patience: float = 1.0

    def of(self, kind: Kind) -> float:
        """Seconds for a run of a candidate, if the failure is of this `kind`."""
        if kind is not Kind.HANG:
            return self.run
        return max(min(LEAST_HANG, self.hang_after), self.hang_after * self.patience)


def exit_after(reference: Signature, traits: Traits) -> str | None:
    """The phase after which the compiler may be left in a script with these `traits` that fails as `reference`; None: it may not."""
    if (reference.backward and traits.differentiates) or reference.phase in _NO_EARLY_EXIT:
        return None
    if reference.kind is not Kind.EXCEPTION and not (reference.phase is Phase.DYNAMO and reference.kind in (Kind.CRASH, Kind.HANG)):
        return None
    return reference.phase.value
