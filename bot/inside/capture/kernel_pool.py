"""Kernels for a GPU are compiled by torch's pool of processes in a capture, as they are for whoever runs the program.

Elsewhere our processes compile one kernel after the other, which keeps runs alike. A training step has hundreds of kernels, and compiling
them is most of its run. But the pool says in words of its own what a kernel lacks, and where it cannot be started it has no kernel
at all. So a kernel that it did not give is compiled in this process, as without a pool, and the error is the one of that.
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

# Processes of the pool, as torch has it, and processors below which starting one takes longer than it saves.
MOST, LEAST_PROCESSORS = 32, 4


def is_of_use(inputs: Iterable[Any]) -> bool:
    """Whether a graph with these `inputs` is compiled for a GPU that is there."""
    return CUDA_ARCH not in os.environ and any(isinstance(one, torch.Tensor) and one.device.type == "cuda" for one in inputs)


def is_in_use() -> bool:
    """Whether a pool has begun in this process, so that the program took less time than with one kernel after the other."""
    return begin.cache_info().currsize > 0 and begin()


@functools.cache
def begin() -> bool:
    """Have a pool started in the background, where there are processors for it, and say so; until it is ready kernels are compiled here.

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
        # torch keeps what it gave for this code, and gives it again
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
        # outside of the handler: what the pool said must not stand in the traceback
        return here()

    result.falls_back = True  # type: ignore[attr-defined]
    return result
