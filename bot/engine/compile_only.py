"""What can be said about a program that was compiled for a GPU that isn't there: nothing of it ran."""

from __future__ import annotations

import re

from bot.engine.options import Ended
from bot.failure.traceback import plain
from bot.models.failure import Kind, Phase, Signature

# torch.export rejects tensors that are already fake in another mode, as all are here, and C++ for CUDA is linked with the driver.
_UNSEEN = (Phase.EXPORT, Phase.CPP_COMPILE)
_SEEN = tuple(phase for phase in tuple(Phase)[: tuple(Phase).index(Phase.TRITON_COMPILE) + 1] if phase not in _UNSEEN)
# An exception, anywhere in a chain, whose last frame is in the stand-in for the device.
_RAISED_BY_US = re.compile(r'/absent_gpu\.py", line \d+, in \S+\n(?: {4}.*\n){0,4}[A-Za-z_][\w.]*(?:Error|Exception)\b')
# What eager shows without a GPU may only mean that there is none.
_OF_EAGER = ("fails_in_eager", "fails_before_compile")


# What CUDA, torch, Triton and the stand-in for the device (`bot/inside/absent_gpu.py`) say if there is no GPU.
_NO_GPU = re.compile(
    r"\bCUDA (?:error|driver|runtime|initialization)|NVIDIA driver|No CUDA GPUs|\blibcuda\b|\bcudaError|AcceleratorError|hasPrimaryContext"
    r"|-lcuda\b|CUDA_HOME|user_object_index|StreamVariable|Cannot access data pointer|DataDependentOutput|DynamicOutputShape"
    r"|is not supported for tensor subclasses"
    r"|\bfake mode \(|Mixing fake modes|instantiate FakeTensorMode|\bAbsent(?:Driver|Event|Properties|Stream)\b"
)


def later(failure: Signature, text: str, arch: int) -> Ended | None:
    """Why the `failure` of a program compiled for the compute capability `arch` may only come from the missing GPU; None if it does not.
    `text` is what the failing run printed."""
    words = " ".join((*failure.exception, failure.said or failure.message, text))
    ours = _RAISED_BY_US.search(plain(text))
    # a library that was told of success without getting what it asked for may crash anywhere
    kinds = (Kind.EXCEPTION, Kind.HANG, *([Kind.CRASH] if (failure.frame or "").startswith("triton/") else []))
    if failure.kind in kinds and failure.phase in _SEEN and not ours and not _NO_GPU.search(words):
        return None
    said = (
        f"compiled for sm_{arch}, the program stops where it needs the GPU, so its error may only mean that there is none: {failure.line()}"
    )
    return Ended("not_reproduced", "needs_hardware", said)


def worded(end: Ended, arch: int) -> Ended:
    """The refusal `end`, in words that hold for a program that was compiled for the compute capability `arch` and not run."""
    if end.code == "passes":
        said = f"the program compiles for sm_{arch}; whether it fails when it runs needs the GPU"
    elif end.code in _OF_EAGER and (_NO_GPU.search(end.reason) or "FakeTensor" in end.reason):
        said = f"without the GPU the program does not reach its failure, so it is not known whether eager fails as well ({end.reason})"
    else:
        return end
    return Ended("not_reproduced", "needs_hardware", said)
