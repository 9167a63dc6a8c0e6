"""Forks that have started the GPU before their question comes.

Starting a GPU's runtime and its libraries takes seconds, and a fork cannot inherit it. So if programs use a GPU, a few forks of the warm
parent start it and wait. Each still answers only one question and exits, so that nothing of one program reaches the next. If a script
changes how the GPU is started, so that a fresh process would behave differently, a plain fork is asked instead. If a machine has several
GPUs of one model, the forks are distributed over them; a script that names a GPU, or asks for their number, goes to a plain fork as well.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import itertools
import os
import re
import traceback
from collections.abc import Iterable
from typing import Any

from .gpus import VISIBLE, alike
from .protocol import Question
from .shortcuts import shortcut
from .spare import InWaiting, answer_one, pipes
from .warm import initialize_for_gpu

# A standby holds GPU memory itself: it exits if less than this share of the memory is free.
LEAST_FREE = 0.25
# A script that matches this may set something before the GPU is started, or may fork processes.
_BEFORE_START = re.compile(r"environ|putenv|fork|multiprocess|subprocess|allocator|DataLoader|cuda\.(?:init|is_initialized)")


# For a script that matches this, it may matter which GPU it gets, or that there are others.
_ONE_OF_SEVERAL = re.compile(r"cuda:[1-9]|device_count|device_mesh|get_device|set_device|current_device|mem_get_info|nccl|Parallel")


@functools.cache
def gpus() -> tuple[str, ...]:
    """The GPUs that processes wait on, as in `alike`."""
    return alike()


def suits(question: Question) -> bool:
    """Whether a process that has started the GPU gives the same answer to `question` as one that has not."""
    return _BEFORE_START.search(question.text) is None and not (gpus() and _ONE_OF_SEVERAL.search(question.text))


class Standby(InWaiting):
    """A fork that waits for its question. `inherited`: descriptors of ours that it closes. If there are several GPUs, they take turns.
    Raises OSError if the system has no more processes or pipes."""

    turns = itertools.count()

    def __init__(self, inherited: Iterable[int]) -> None:
        turn = next(self.turns)
        with pipes(3) as (theirs, question, output, outputs, result, results):
            pid = os.fork()
        if pid == 0:
            try:
                os.setsid()
                for fd in (*inherited, question, output, result):
                    os.close(fd)
                if gpus():
                    os.environ[VISIBLE] = gpus()[turn % len(gpus())]
                _start_gpu()
                answer_one(theirs, outputs, results)
            except BaseException:
                traceback.print_exc()
                os._exit(70)
            os._exit(0)
        for fd in (theirs, outputs, results):
            os.close(fd)
        super().__init__(pid, question, output, result)


def _start_gpu() -> None:
    """Start the context, the library for matrix products, Triton's driver, and what a first compile makes. Raises RuntimeError if the GPU
    is almost full."""
    torch: Any = importlib.import_module("torch")
    matrix = torch.ones(16, 16, device="cuda")
    matrix @ matrix
    torch.cuda.synchronize()
    del matrix
    torch.cuda.empty_cache()
    free, total = torch.cuda.mem_get_info()
    if free < LEAST_FREE * total:
        raise RuntimeError("too little of the GPU's memory is free for a process in waiting")
    with contextlib.suppress(Exception):
        importlib.import_module("triton").runtime.driver.active.get_current_target()
        # with the hash of its compiler, which is a separate program
        importlib.import_module("torch.utils._triton").triton_hash_with_backend()
    with shortcut("what a first compile for the GPU makes"):
        initialize_for_gpu()
