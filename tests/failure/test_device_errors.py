"""Errors of a GPU's kernels: what they say is all that tells them apart, not where they are raised."""

from __future__ import annotations

import pytest

from bot.failure.device_errors import allowed_memory, held_by_others, is_asynchronous, is_out_of_memory
from bot.failure.outcome import Outcome
from bot.failure.signature import signature_of
from bot.models.failure import Phase, Signature

# As torch 2.11 on an H200 prints them, frames shortened.
LATE = """Traceback (most recent call last):
  File "/home/me/fail.py", line 9, in <module>
    {call}
  File "/venv/lib/python3.12/site-packages/{frame}
torch.AcceleratorError: CUDA error: {what}
Search for `cudaError' in https://docs.nvidia.com/cuda/cuda-runtime-api/group__CUDART__TYPES.html for more information.
CUDA kernel errors might be asynchronously reported at some other API call, so the stacktrace below might be incorrect.
For debugging consider passing CUDA_LAUNCH_BLOCKING=1
Compile with `TORCH_USE_CUDA_DSA` to enable device-side assertions.
"""
AT_SYNCHRONIZE = ("torch.cuda.synchronize()", 'torch/cuda/__init__.py", line 1162, in synchronize')
AT_LAUNCH = ("compiled(x)", 'torch/_inductor/runtime/triton_heuristics.py", line 1176, in autotune_to_one_config')
IN_COMPILER = ("compiled(x)", 'torch/_inductor/graph.py", line 20, in run_node')


def failure(place: tuple[str, str], what: str) -> Signature:
    found = signature_of(Outcome(status="raised", text=LATE.format(call=place[0], frame=place[1], what=what)), script="fail.py")
    assert found is not None
    return found


@pytest.mark.parametrize("what", ["an illegal memory access was encountered", "device-side assert triggered", "misaligned address"])
def test_the_place_is_no_part_of_the_failure(what: str) -> None:
    first, *others = (failure(place, what) for place in (AT_SYNCHRONIZE, AT_LAUNCH, IN_COMPILER))
    assert is_asynchronous(first)
    assert first.phase is Phase.RUN
    assert all(first.same(other) for other in others)


# as Triton 3.6 and torch 2.11's static launcher said it on an H200
@pytest.mark.parametrize("words", ["Triton Error [CUDA]", "CUDA driver error"])
def test_launchers_say_the_same_in_their_own_words(words: str) -> None:
    text = LATE.format(call="f(x)", frame='torch/_inductor/runtime/triton_heuristics.py", line 1500, in run', what="")
    said = text[: text.index("torch.AcceleratorError")] + f"RuntimeError: {words}: device-side assert triggered\n"
    found = signature_of(Outcome(status="raised", text=said), script="fail.py")
    assert found is not None
    assert found.same(failure(AT_SYNCHRONIZE, "device-side assert triggered"))
    assert found.exception == ("AcceleratorError",)


def test_another_error_is_another_failure() -> None:
    assert not failure(AT_LAUNCH, "misaligned address").same(failure(AT_LAUNCH, "device-side assert triggered"))


@pytest.mark.parametrize("what", ["out of memory", "invalid argument", "no kernel image is available for execution on the device"])
def test_errors_that_are_raised_where_they_belong(what: str) -> None:
    found = failure(IN_COMPILER, what)
    assert not is_asynchronous(found)
    assert found.phase is not Phase.RUN


# as torch 2.11 says it: c10/cuda/CUDACachingAllocator.cpp
FULL = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 5.96 GiB. GPU 0 has a total capacity of 79.11 GiB of which 78.20 GiB is"
    " free. {allowed}Including non-PyTorch memory, this process has 900.00 MiB memory in use. Of the allocated memory 1.20 MiB is allocated"
    " by PyTorch, and 0 bytes is reserved by PyTorch but unallocated.\n"
)


@pytest.mark.parametrize(("allowed", "size"), [("", 79.11 * 2**30), ("1.58 GiB allowed; ", 1.58 * 2**30), ("512.00 MiB allowed; ", 2**29)])
def test_what_the_allocator_might_take(allowed: str, size: float) -> None:
    text = LATE.format(call="f(x)", frame='torch/_inductor/runtime/x.py", line 15, in run', what="")
    said = text[: text.index("torch.AcceleratorError")] + FULL.format(allowed=allowed)
    found = signature_of(Outcome(status="raised", text=said), script="fail.py")
    assert found is not None
    assert is_out_of_memory(found)
    assert allowed_memory(found, said) == int(size)
    assert allowed_memory(found, "out of memory") is None
    assert allowed_memory(failure(AT_LAUNCH, "misaligned address"), said) is None


# The same, of a GPU of 79.11 GiB that others use as well: what NVML says of processes is left out where it may not be asked.
# The pieces were compared with those in libc10_cuda.so of torch 2.14.1 and 2.15.0; no GPU that others fill was seen.
SHARED = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate {tried}. GPU 0 has a total capacity of 79.11 GiB of which {free} is"
    " free. {more}Process 7 has 60.00 GiB memory in use. Of the allocated memory {own} is allocated by PyTorch, and 512.00 MiB is reserved"
    " by PyTorch but unallocated. If reserved but unallocated memory is large try setting PYTORCH_ALLOC_CONF.\n"
)


@pytest.mark.parametrize(
    ("tried", "free", "own", "more", "others"),
    [
        # it fits beside the 10.5 GiB of its own on a GPU that nobody else uses; a context takes up to one
        ("20.00 GiB", "6.61 GiB", "10.00 GiB", "", 61.0),
        ("20.00 MiB", "12.00 MiB", "0 bytes", "", 79.11 - 12 / 1024 - 0.5 - 1),
        ("20.00 GiB", "6.61 GiB", "10.00 GiB", "Including non-PyTorch memory, this process has 12.00 GiB memory in use. ", 60.5),
        # memory of its own that torch did not allocate
        ("20.00 GiB", "6.61 GiB", "10.00 GiB", "Including non-PyTorch memory, this process has 72.00 GiB memory in use. ", None),
        ("60.00 GiB", "50.00 GiB", "18.00 GiB", "", None),
        # as its own context is not counted by torch, it may be this that is missing
        ("60.00 GiB", "50.00 GiB", "20.00 GiB", "", None),
        ("90.00 GiB", "6.61 GiB", "10.00 GiB", "", None),
        ("20.00 GiB", "6.61 GiB", "10.00 GiB", "15.00 GiB allowed; ", None),
    ],
)
def test_a_gpu_that_others_fill(tried: str, free: str, own: str, more: str, others: float | None) -> None:
    text = SHARED.format(tried=tried, free=free, own=own, more=more)
    earlier = SHARED.format(tried="1.00 GiB", free="2.00 GiB", own="3.00 GiB", more="")
    found = held_by_others(earlier + "a line\n" + text)
    assert found == (others if others is None else pytest.approx(others * 2**30))
    assert held_by_others("torch.OutOfMemoryError: CUDA out of memory.") is None
    assert held_by_others("") is None


def test_memory_of_cuda_graphs_stands_between_the_sizes() -> None:
    text = SHARED.format(tried="20.00 GiB", free="6.61 GiB", own="10.00 GiB", more="")
    pools = text.replace("by PyTorch, and", "by PyTorch, with 123.45 MiB allocated in private pools (e.g., CUDA Graphs), and")
    assert pools != text
    assert held_by_others(pools) == held_by_others(text) == pytest.approx(61.0 * 2**30)


# torch: c10/cuda/CUDAException.cpp with cudaGetErrorString, ATen/cuda/CUDABlas.cpp, ATen/cudnn/Exceptions.h; Triton: driver.c
@pytest.mark.parametrize(
    ("text", "full"),
    [
        ("torch.AcceleratorError: CUDA error: out of memory", True),
        ("RuntimeError: CUDA driver error: out of memory", True),
        ("RuntimeError: Triton Error [CUDA]: out of memory", True),
        ("torch.OutOfMemoryError: HIP out of memory. Tried to allocate 2.00 GiB.", True),
        ("RuntimeError: CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`", True),
        ("RuntimeError: cuDNN error: CUDNN_STATUS_ALLOC_FAILED", True),
        ("triton.runtime.errors.OutOfResources: out of resource: shared memory, Required: 262144, Hardware limit: 232448", False),
        ("MemoryError: out of memory", False),
    ],
)
def test_a_gpu_that_is_full_in_the_words_of_each_layer(text: str, full: bool) -> None:
    found = signature_of(
        Outcome(status="raised", text=f'Traceback (most recent call last):\n  File "fail.py", line 3, in f\n    f()\n{text}\n')
    )
    assert found is not None
    assert is_out_of_memory(found) is full
    assert allowed_memory(found, text) is None
