"""Forks that have started the GPU before their question comes.

Starting a GPU's runtime and its libraries takes seconds, and a fork cannot inherit it. So where programs use a GPU, a few forks of
the warm parent start it and wait. Each still answers one question and ends, so that nothing of one program reaches the next. What a
fresh process would do otherwise, since a script changes how the GPU is started, is asked of a plain fork. Where a machine has several GPUs
of one model, they wait on one after the other; a script that names a GPU, or asks for their number, is asked of a plain fork as well.
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

# A standby holds memory of the GPU itself: one that finds less than this share of it free leaves.
LEAST_FREE = 0.25
# In a script that matches this, something may be set before the GPU is started, or processes may be forked.
_BEFORE_START = re.compile(r"environ|putenv|fork|multiprocess|subprocess|allocator|DataLoader|cuda\.(?:init|is_initialized)")


# In a script that matches this, it may matter which GPU it is, or that there are others.
_ONE_OF_SEVERAL = re.compile(r"cuda:[1-9]|device_count|device_mesh|get_device|set_device|current_device|mem_get_info|nccl|Parallel")


@functools.cache
def gpus() -> tuple[str, ...]:
    """Those that processes wait on, as `alike` has them."""
    return alike()


def suits(question: Question) -> bool:
    """Whether a process that has started the GPU gives the answer to `question` of one that has not."""
    return _BEFORE_START.search(question.text) is None and not (gpus() and _ONE_OF_SEVERAL.search(question.text))


class Standby(InWaiting):
    """A fork that waits for its question. `inherited`: descriptors of ours that it closes. Where there are several GPUs, they take turns.
    Raises OSError where the system has no process or no pipe to give."""

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
    """Its context, the library for matrix products, Triton's driver, and what a first compile makes. Raises RuntimeError where the GPU is
    as good as full."""
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
        # with the hash of its compiler, which is another program
        importlib.import_module("torch.utils._triton").triton_hash_with_backend()
    with shortcut("what a first compile for the GPU makes"):
        initialize_for_gpu()
