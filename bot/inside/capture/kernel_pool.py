"""Compiles GPU kernels with torch's process pool during a capture, as in the user's own runs.

Elsewhere our processes compile one kernel after the other, which keeps runs alike. A training step has hundreds of kernels, and compiling
them is most of its run. But the pool reports a failed kernel in words of its own, and if it cannot be started there is no kernel at all.
So a kernel that the pool does not deliver is compiled in this process, as without a pool, and that error counts.
"""

from __future__ import annotations

import functools
import importlib
import os
from collections.abc import Callable, Iterable
from typing import Any

import torch

from ..protocol import CUDA_ARCH
from ..shortcuts import function_at

# Maximum number of pool processes, as in torch, and the number of processors below which starting a pool takes longer than it saves.
MOST, LEAST_PROCESSORS = 32, 4


def is_of_use(inputs: Iterable[Any]) -> bool:
    """Whether a graph with these `inputs` is compiled for a GPU that exists."""
    return CUDA_ARCH not in os.environ and any(isinstance(one, torch.Tensor) and one.device.type == "cuda" for one in inputs)


def is_in_use() -> bool:
    """Whether a pool was started in this process, so that the program took less time than with one kernel after the other."""
    return begin.cache_info().currsize > 0 and begin()


@functools.cache
def begin() -> bool:
    """Start a pool in the background if there are enough processors for it, and return whether it was; until it is ready, kernels are
    compiled here.

    Raises:
        AttributeError: this torch compiles kernels in another way.
        ImportError: likewise.
    """
    processors = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    if processors < LEAST_PROCESSORS:
        return False
    module: Any = importlib.import_module("torch._inductor.async_compile")
    config: Any = importlib.import_module("torch._inductor.config")
    compiler = module.AsyncCompile
    compile_kernel = function_at(compiler, "triton", "self", "kernel_name", "source_code")
    start = function_at(compiler, "use_process_pool")
    forget = function_at(module.CompiledTritonKernels, "remove_future", "kernel_src")

    def here(*args: Any, **kwargs: Any) -> Any:
        with config.patch(compile_threads=1):
            return compile_kernel(*args, **kwargs)

    @functools.wraps(compile_kernel)
    def triton(self: Any, kernel_name: str, source_code: str, *args: Any, **kwargs: Any) -> Any:
        made = compile_kernel(self, kernel_name, source_code, *args, **kwargs)
        # torch caches what it returned for this code, and returns it again
        if isinstance(made, module.LambdaFuture) and not getattr(made.result_fn, "falls_back", False):
            again = functools.partial(here, self, kernel_name, source_code, *args, **kwargs)
            made.result_fn = _or(made.result_fn, again, functools.partial(forget, source_code))
        return made

    compiler.triton = triton
    config.compile_threads = min(MOST, processors)
    start()
    return True


def _or(pooled: Callable[[], Any], here: Callable[[], Any], forget: Callable[[], Any]) -> Callable[[], Any]:
    def result() -> Any:
        try:
            return pooled()
        except Exception:
            forget()
        # outside the handler: the pool's message must not be in the traceback
        return here()

    result.falls_back = True  # type: ignore[attr-defined]
    return result
