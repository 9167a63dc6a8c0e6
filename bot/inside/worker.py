"""What a forked child does with a question: run the script as a person would, and report how it ended."""

from __future__ import annotations

import ctypes
import faulthandler
import functools
import gc
import importlib
import json
import os
import random
import resource
import signal
import sys
import time
from collections.abc import Callable
from typing import Any

from . import cache, early_exit, environment, kept_apart, program, warm
from .eager import compiler_out, lifetimes, uninitialized
from .protocol import SCRIPT, Facts, Precision, Question, Task
from .tasks import frames, generated, localize, origins, shapes_and_export

# Minimum number of seconds that threads may continue after a failure; otherwise as long as it took to fail.
LINGERS = 2.0


def answer(question: Question, pipe: int) -> None:
    """Carry out a `question` and write the facts as JSON to the descriptor `pipe`. Never returns."""
    try:
        path = _set_up(question)
    except Exception as error:
        _write(pipe, {"status": "infra", "text": f"the worker could not be set up: {program.format_error(error)}"})
        os._exit(0)
    _seed(question.seed)
    before = generator_state()
    own, began = os.getpid(), time.monotonic()
    facts = TASKS[question.task](path, question)
    facts["drew"] = generator_state() != before
    if facts["status"] in ("raised", "exit"):
        facts["lingers"] = program.threads_outlive(max(LINGERS, time.monotonic() - began))
    facts["device"] = warm.runs_device()
    program.flush()
    if os.getpid() != own:
        # the program forked, and this is the other process, which must not answer
        os._exit(int(facts["status"] != "ok"))
    _write(pipe, facts)
    # not sys.exit: threads and exit handlers of the program must not delay the answer
    os._exit(0)


def _set_up(question: Question) -> str:
    """Prepare this process for the `question`, and write its script; the path of the script."""
    _die_with_parent()
    kept_apart.keep_to_itself()
    faulthandler.enable()
    faulthandler.register(signal.SIGUSR1, all_threads=False, chain=False)
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    gc.enable()
    if question.memory:
        _limit_memory(question.memory)
    os.makedirs(question.dir, exist_ok=True)
    os.chdir(question.dir)
    path = os.path.join(question.dir, SCRIPT)
    with open(path, "w", encoding="utf-8") as file:
        file.write(question.text)
    cache.packages_apart(question.dir)
    environment.state_before_torch(question.text)
    return path


def _write(pipe: int, facts: Facts) -> None:
    with os.fdopen(pipe, "wb") as out:
        out.write(json.dumps(facts).encode())


def _seed(number: int) -> None:
    """Seed the generators: an unseeded process draws different numbers each time, but children of one parent would all draw the same."""
    random.seed(number)
    for name, function in (("torch", "manual_seed"), ("numpy.random", "seed")):
        if name in sys.modules:
            getattr(sys.modules[name], function)(number)


def generator_state() -> tuple[bytes, int, bytes]:
    """The state of torch's and numpy's random number generators; it differs after numbers were drawn, or a seed was set for the CPU."""
    try:
        torch, numpy = sys.modules["torch"], sys.modules.get("numpy.random")
        _, key, position, *_ = numpy.get_state() if numpy else ("", b"", 0)
        # an unused GPU has drawn nothing, and querying it would start it
        generators = torch.cuda.default_generators if torch.cuda.is_initialized() else ()
        offset = sum(generator.get_offset() for generator in generators)
        return bytes(torch.get_rng_state().tolist()), offset, bytes(key) + str(position).encode()
    except Exception:
        return b"", 0, b""  # the program left torch in a broken state


def _run(path: str, question: Question) -> Facts:
    ends: list[Facts] = []
    # a script that ends in `unittest.main()` exits with only a status: the exception of its first failing test says more
    program.listen_to_unittest(lambda error, _: ends.append(program.ended_by(error)))
    early_exit.stop_after(question.stop_after)
    if question.as_eager:
        inductor: Any = importlib.import_module("torch._inductor.config")
        inductor.fallback_random = True
    facts = program.run_as_main(path, question.argv)
    return ends[0] if ends and facts["status"] == "exit" else facts


def _control(path: str, question: Question, precision: Precision | None = None) -> Facts:
    stub = compiler_out.take_out(precision)
    compiler_out.disable_compile_in_subprocesses()
    with uninitialized.made_to_differ(question.text if question.repeats else ""):
        facts = program.run_as_main(path, question.argv, lifetimes.shortened)
    stub.clear()
    saw: Any = stub.reached()._asdict()  # its names are the same as those of facts
    return {**facts, **saw}


TASKS: dict[Task, Callable[[str, Question], Facts]] = {
    "run": _run,
    "control": _control,
    "control_fp64": functools.partial(_control, precision="fp64"),
    "control_spread": functools.partial(_control, precision="spread"),
    "control_moved": functools.partial(_control, precision="moved"),
    "shapes": shapes_and_export.describe,
    "export": shapes_and_export.export,
    "generated": generated.generated,
    "localize": localize.localize,
    "origins": origins.origins,
    "frames": frames.frames,
}


def _die_with_parent() -> None:
    """Linux: the kernel kills this process when the warm parent is gone, however that ended."""
    try:
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)
    except (OSError, AttributeError):
        return  # other systems: the parent kills its children when it ends in order


def _limit_memory(extra: int) -> None:
    # The warm parent's address space does not count against the child.
    with open("/proc/self/statm", encoding="ascii") as file:
        pages = int(file.read().split()[0])
    limit = pages * resource.getpagesize() + extra
    # `ulimit -v` of who started us may be lower
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    limit = limit if hard == resource.RLIM_INFINITY else min(limit, hard)
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
