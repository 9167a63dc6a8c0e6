"""What may be said of a program that was compiled for a GPU that isn't there: nothing of it ran."""

from __future__ import annotations

import re

from bot.engine.options import Ended
from bot.models.failure import Kind, Phase, Signature

# torch.export does not take tensors that are fake already and belong to another mode, as all do here
_SEEN = tuple(phase for phase in tuple(Phase)[: tuple(Phase).index(Phase.TRITON_COMPILE) + 1] if phase is not Phase.EXPORT)
# What eager shows without a GPU may come of that alone.
_OF_EAGER = ("fails_in_eager", "fails_before_compile")


# What is said where there is no GPU: by CUDA, by torch and Triton, and by what stands for the device (`bot/inside/absent_gpu.py`).
_NO_GPU = re.compile(
    r"\bCUDA (?:error|driver|runtime|initialization)|NVIDIA driver|No CUDA GPUs|\blibcuda\b|\bcudaError|AcceleratorError|hasPrimaryContext"
    r"|\bfake mode \(|Mixing fake modes|instantiate FakeTensorMode|\bAbsent(?:Driver|Event|Properties|Stream)\b"
)


def later(failure: Signature, arch: int) -> Ended | None:
    """Why the `failure` of a program compiled for the compute capability `arch` may come of there being no GPU; None where it may not."""
    words = " ".join((*failure.exception, failure.said or failure.message))
    if failure.kind in (Kind.EXCEPTION, Kind.CRASH, Kind.HANG) and failure.phase in _SEEN and not _NO_GPU.search(words):
        return None
    said = f"compiled for sm_{arch}, it ends where it needs the GPU, and this may only say that there is none: {failure.line()}"
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
