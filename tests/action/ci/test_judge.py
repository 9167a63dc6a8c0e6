"""What a failure looks like by itself."""

from __future__ import annotations

import pytest

from bot.action.ci.failing_test import Failure
from bot.action.ci.judge import fault, judge, sign

TEST = "tests/test_made_up.py::test_a"
FRAME = '  File "/w/{}", line 6, in {}\n    f(x)\n'
IN_TEST = FRAME.format("tests/test_made_up.py", "test_a")
LOWERING = IN_TEST + FRAME.format("site-packages/torch/_inductor/lowering.py", "made_up")
INDUCTOR = "torch._inductor.exc.InductorError: "


def raised(frames: str, said: str, test: str = TEST, **more: object) -> Failure:
    return Failure(test.partition("::")[2], test, f"Traceback (most recent call last):\n{frames}{said}", **more)  # type: ignore[arg-type]


def verdict(failure: Failure) -> str:
    return judge(sign(failure), failure)[0]


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        (INDUCTOR + "LoweringException: AssertionError: made up", "suggested"),
        # a kernel that is too large for the GPU, whatever the class is called
        (
            INDUCTOR + "RuntimeError: No valid triton configs. OutOfMemoryError: out of resource: made_up Required: 9 Hardware limit: 8",
            "suggested",
        ),
        ("triton.runtime.errors.OutOfResources: out of resource: shared memory, Required: 9, Hardware limit: 8.", "suggested"),
        (INDUCTOR + "OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 GiB.", "no"),
        ("torch._dynamo.exc.BackendCompilerFailed: backend='inductor' raised:\nRuntimeError: CUDA error: out of memory", "no"),
        (INDUCTOR + "RuntimeError: MPS backend out of memory (MPS allocated: 9 GB)", "no"),
        ("MemoryError", "no"),
        ("KeyboardInterrupt", "no"),
        ("torch.distributed.elastic.multiprocessing.api.SignalException: Process 9 got signal: 15", "no"),
    ],
)
def test_what_ended_the_compiler_from_outside_is_no_failure_of_it(said: str, expected: str) -> None:
    assert verdict(raised(LOWERING, said)) == expected


@pytest.mark.parametrize(
    ("said", "broken"),
    [
        ("RuntimeError: Failed to find C compiler. Please specify via CC environment variable.", "no C compiler"),
        ("RuntimeError: 0 active drivers ([]). There should only be one.", "no GPU that triton knows"),
        ("RuntimeError: Found no NVIDIA driver on your system.", "no cuda device"),
        (
            "CalledProcessError: Command '['/usr/bin/gcc', 'a.c', '-o', 'a.so', '-lcuda', '-L/x']' returned non-zero exit status 1.",
            "no driver of the GPU to link with",
        ),
        ("GPUTooOldForTriton: Found an old one", "a GPU that triton does not support"),
        ("CalledProcessError: Command '['/usr/bin/ptxas', 'a.ptx']' returned non-zero exit status 1.", None),
        ("AssertionError: made up", None),
    ],
)
def test_a_machine_that_is_not_made_for_it(said: str, broken: str | None) -> None:
    assert fault(raised(LOWERING, INDUCTOR + said)) == broken
