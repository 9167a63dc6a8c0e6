"""How far and how long a candidate is run."""

from __future__ import annotations

import pytest

from bot.inside.traits import Traits
from bot.models.failure import Kind, Phase, Signature
from bot.oracle.run_plan import LEAST_HANG, Limits, exit_after


@pytest.mark.parametrize("kind", [kind for kind in Kind if kind is not Kind.HANG])
def test_only_a_hang_is_waited_for(kind: Kind) -> None:
    assert Limits(run=5.0, hang_after=70.0, patience=0.5).of(kind) == 5.0


@pytest.mark.parametrize(
    ("hang_after", "patience", "seconds"),
    [
        (90.0, 0.5, 45.0),
        (90.0, 1.0, 90.0),
        # below this nothing is a hang ...
        (15.0, 0.1, LEAST_HANG),
        # ... unless the user says so
        (3.0, 0.5, 3.0),
    ],
)
def test_the_search_waits_its_share(hang_after: float, patience: float, seconds: float) -> None:
    assert Limits(run=5.0, hang_after=hang_after, patience=patience).of(Kind.HANG) == seconds


@pytest.mark.parametrize(
    ("kind", "phase", "backward", "differentiates", "left"),
    [
        (Kind.EXCEPTION, Phase.INDUCTOR_LOWERING, False, True, "inductor_lowering"),
        (Kind.EXCEPTION, Phase.DYNAMO, False, False, "dynamo"),
        # the forward passes this phase before the backward comes to it
        (Kind.EXCEPTION, Phase.INDUCTOR_LOWERING, True, True, None),
        # a backward graph alone is called like any other
        (Kind.EXCEPTION, Phase.INDUCTOR_LOWERING, True, False, "inductor_lowering"),
        (Kind.EXCEPTION, Phase.LOAD, False, False, None),
        (Kind.EXCEPTION, Phase.RUN, False, False, None),
        (Kind.ACCURACY, Phase.DYNAMO, False, False, None),
        (Kind.NO_RAISE, Phase.DYNAMO, False, False, None),
        (Kind.CRASH, Phase.DYNAMO, False, False, "dynamo"),
        (Kind.HANG, Phase.DYNAMO, False, False, "dynamo"),
        (Kind.CRASH, Phase.INDUCTOR_CODEGEN, False, False, None),
        (Kind.HANG, Phase.CPP_COMPILE, False, False, None),
    ],
)
def test_where_the_compiler_may_be_left(kind: Kind, phase: Phase, backward: bool, differentiates: bool, left: str | None) -> None:
    reference = Signature(kind=kind, phase=phase, backward=backward)
    assert exit_after(reference, Traits(differentiates=differentiates)) == left
