"""Whether a failure is the one that CI's log showed."""

from __future__ import annotations

import pytest

from bot.failure.shown import may_be
from bot.models.failure import HEAP, Kind, Phase, Signature


def raised(*classes: str, message: str = "", phase: Phase = Phase.RUN) -> Signature:
    return Signature(kind=Kind.EXCEPTION, phase=phase, exception=classes, message=message)


def died(signal: str | None, message: str = "") -> Signature:
    return Signature(kind=Kind.CRASH, phase=Phase.RUN, signal=signal, message=message)


def verdict(*classes: str, message: str) -> Signature:
    return raised(*classes, message=message).model_copy(update={"kind": Kind.ACCURACY})


WRONG = Signature(kind=Kind.ACCURACY, phase=Phase.RUN, message="compiled results differ from eager")
HANGS = Signature(kind=Kind.HANG, phase=Phase.INDUCTOR_LOWERING)
LOWERING = raised(
    "InductorError", "LoweringException", "AssertionError", message="no pool of\ntarget: aten.pool", phase=Phase.INDUCTOR_LOWERING
)
GRAPH_BREAK = raised("Unsupported", message="Call to made_up function", phase=Phase.DYNAMO)


@pytest.mark.parametrize(
    ("shown", "found"),
    [
        (LOWERING, LOWERING),
        (raised("InductorError", "LoweringException", "AssertionError", message="no pool of"), LOWERING),
        # the line of a summary
        (raised("InductorError", "LoweringException"), LOWERING),
        (raised("Unsupported", message="Call to made_up func..."), GRAPH_BREAK),
        (raised("Unsupported", message="Call to made_up function"), GRAPH_BREAK),
        (raised("AssertionError", message="Tensor-likes are not close!"), WRONG),
        (Signature(kind=Kind.ACCURACY, phase=Phase.RUN), raised("AssertionError", message="Scalars are not equal!")),
        # the program's own verdict, of which a run knows that it is about numbers
        (raised("RuntimeError", message="off by N"), verdict("RuntimeError", message="off by N")),
        (died("SIGSEGV"), died("SIGBUS")),
        (died("SIGABRT"), died("SIGABRT")),
        (died("SIGSEGV"), died("SIGABRT", HEAP)),
        (died(None), died("SIGILL")),
        (Signature(kind=Kind.HANG, phase=Phase.RUN), HANGS),
    ],
)
def test_it_may_be(shown: Signature, found: Signature) -> None:
    assert may_be(shown, found)
    assert may_be(found, shown)


@pytest.mark.parametrize(
    ("shown", "found"),
    [
        (GRAPH_BREAK, LOWERING),
        (raised("Unsupported", message="Call to made_up function"), raised("Unsupported", message="Call to other function")),
        (raised("Unsupported", message="Call"), GRAPH_BREAK),
        (raised("AssertionError", message="shapes differ"), WRONG),
        (raised("AssertionError", message="shapes differ"), raised("KeyError", message="shapes differ")),
        (died("SIGABRT"), died("SIGSEGV")),
        (died("SIGSEGV"), LOWERING),
        (HANGS, died("SIGSEGV")),
        (HANGS, WRONG),
        (raised("RuntimeError", message="off by N"), verdict("RuntimeError", message="no such file")),
        (raised("RuntimeError", message="off by N"), verdict("ValueError", message="off by N")),
        (raised("RuntimeError", message="off by N"), WRONG),
    ],
)
def test_it_is_another(shown: Signature, found: Signature) -> None:
    assert not may_be(shown, found)
    assert not may_be(found, shown)
