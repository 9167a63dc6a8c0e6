"""What is said of a program that was compiled for a GPU that isn't there."""

from __future__ import annotations

import pytest

from bot.engine.compile_only import later, worded
from bot.engine.options import Ended
from bot.models.failure import Kind, Phase, Signature
from bot.models.result import ReasonCode


@pytest.mark.parametrize("phase", [Phase.DYNAMO, Phase.AOT_AUTOGRAD, Phase.INDUCTOR_LOWERING, Phase.TRITON_COMPILE])
@pytest.mark.parametrize("kind", [Kind.EXCEPTION, Kind.HANG])
def test_errors_of_compiling_are_seen(phase: Phase, kind: Kind) -> None:
    assert later(Signature(kind=kind, phase=phase), "", 90) is None


@pytest.mark.parametrize(
    ("kind", "phase"),
    [
        (Kind.EXCEPTION, Phase.RUN),
        (Kind.EXCEPTION, Phase.CPP_COMPILE),
        (Kind.CRASH, Phase.DYNAMO),
        (Kind.EXCEPTION, Phase.EXPORT),
        (Kind.CRASH, Phase.LOAD),
        (Kind.ACCURACY, Phase.RUN),
        (Kind.NO_RAISE, Phase.DYNAMO),
    ],
)
def test_what_comes_then_needs_the_gpu(kind: Kind, phase: Phase) -> None:
    end = later(Signature(kind=kind, phase=phase, message="said so"), "", 90)
    assert end is not None
    assert (end.status, end.code) == ("not_reproduced", "needs_hardware")
    assert "sm_90" in end.reason


@pytest.mark.parametrize(
    ("exception", "message"),
    [
        (("InductorError", "AcceleratorError"), "CUDA error: CUDA driver version is insufficient for CUDA runtime version"),
        (("RuntimeError",), "hasPrimaryContext expects a valid device index, but got device_index=0"),
        (("RuntimeError",), "Found no NVIDIA driver on your system."),
        (("InductorError", "AttributeError"), "'AbsentProperties' object has no attribute 'pci_bus_id'"),
        (("AssertionError",), "libcuda.so cannot found!"),
        (
            ("AssertionError",),
            "fake mode (<torch._subclasses.fake_tensor.FakeTensorMode object at 0x...>) from active fake mode 0 doesn't match",
        ),
    ],
)
def test_that_there_is_no_gpu_is_no_failure(exception: tuple[str, ...], message: str) -> None:
    """The messages are those of torch 2.15 and Triton 3.9 on a machine without a GPU; the first one was minimized."""
    end = later(Signature(kind=Kind.EXCEPTION, phase=Phase.INDUCTOR_CODEGEN, exception=exception, message=message), "", 90)
    assert end is not None
    assert end.code == "needs_hardware"


def test_what_dynamo_says_of_its_own_fake_tensors_is_a_failure() -> None:
    said = "Dynamo failed to run FX node with fake tensors: call_function add(*(FakeTensor(..., device='cuda:0', size=(2,)), 'a'))"
    assert later(Signature(kind=Kind.EXCEPTION, phase=Phase.DYNAMO, exception=("TorchRuntimeError",), message=said), "", 90) is None


@pytest.mark.parametrize(
    ("code", "said"), [("passes", "compiles for sm_86"), ("fails_in_eager", "without the GPU"), ("fails_before_compile", "without the GPU")]
)
@pytest.mark.parametrize(
    "error", ["Cannot access data pointer of Tensor (e.g. FakeTensor)", ".numpy() is not supported for tensor subclasses."]
)
def test_nothing_is_said_of_what_was_not_run(code: ReasonCode, said: str, error: str) -> None:
    end = worded(Ended("not_reproduced", code, f"RuntimeError: {error}"), 86)
    assert (end.status, end.code) == ("not_reproduced", "needs_hardware")
    assert said in end.reason


TRACE = """Traceback (most recent call last):
  File "/v/site-packages/torch/_inductor/autotune_process.py", line 7, in precompile
    kernel.launchers[0].n_regs
  File "/somewhere/bot/inside/absent_gpu.py", line 7, in call
    given
AttributeError: 'function' object has no attribute 'n_regs'

During handling of the above exception, another exception occurred:

"""
BEHIND = """Traceback (most recent call last):
  File "/v/site-packages/torch/_inductor/lowering.py", line 7, in mm
    choose()
torch._inductor.exc.InductorError: NoValidChoicesError: No choices to select
"""


def test_an_error_in_what_stands_for_the_gpu_is_ours() -> None:
    failure = Signature(kind=Kind.EXCEPTION, phase=Phase.INDUCTOR_LOWERING, exception=("InductorError",), message="No choices to select")
    assert later(failure, TRACE + BEHIND, 90) is not None
    assert later(failure, BEHIND, 90) is None


def test_a_crash_is_seen_in_triton_alone() -> None:
    assert later(Signature(kind=Kind.CRASH, phase=Phase.TRITON_COMPILE, frame="triton/compiler/compiler.py:make_llir"), "", 90) is None
    assert later(Signature(kind=Kind.CRASH, phase=Phase.TRITON_COMPILE, frame="torch/cuda/__init__.py:x"), "", 90) is not None


def test_an_error_of_eager_itself_keeps_its_words() -> None:
    end = Ended("not_reproduced", "fails_in_eager", "the program fails in eager as well: NameError: name 'x' is not defined")
    assert worded(end, 90) is end


@pytest.mark.parametrize("code", ["budget", "compiler_never_reached", "needs_file", "machine_fault"])
def test_other_refusals_stay(code: ReasonCode) -> None:
    end = Ended("error", code, "as it was", machine_fault="m")
    assert worded(end, 90) is end
