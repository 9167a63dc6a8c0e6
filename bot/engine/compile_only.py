"""What may be said of a program that was compiled for a GPU that isn't there: nothing of it ran."""

from __future__ import annotations

from bot.engine.options import Ended
from bot.models.failure import Kind, Phase, Signature

_SEEN = tuple(Phase)[: tuple(Phase).index(Phase.TRITON_COMPILE) + 1]
# What eager shows without a GPU may come of that alone.
_OF_EAGER = ("fails_in_eager", "fails_before_compile")


def later(failure: Signature, arch: int) -> Ended | None:
    """Why the `failure` of a program compiled for the compute capability `arch` isn't one of compiling; None where it is."""
    if failure.kind in (Kind.EXCEPTION, Kind.CRASH, Kind.HANG) and failure.phase in _SEEN:
        return None
    said = f"it compiles for sm_{arch}; what comes then needs the GPU, and this may only say that there is none: {failure.line()}"
    return Ended("not_reproduced", "needs_hardware", said)


def worded(end: Ended, arch: int) -> Ended:
    """The refusal `end` in words that hold for a program that was compiled for the compute capability `arch` and not run."""
    if end.code == "passes":
        said = f"the program compiles for sm_{arch}; whether it fails when it runs needs the GPU"
    elif end.code in _OF_EAGER:
        said = f"without the GPU the program doesn't come to its failure, so it can't be told from one of eager ({end.reason})"
    else:
        return end
    return Ended("not_reproduced", "needs_hardware", said)
