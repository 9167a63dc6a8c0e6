"""PyTorch's own dumps, written by separate processes."""

from __future__ import annotations

import contextlib
import importlib
import os
import signal
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from ..protocol import HookPoint

# Time limit for a dump, in seconds.
DUMP_LIMIT = 120
# Seconds that dumps get after the program has ended; then what it leaves behind is killed.
LAST_WAIT = 10.0


def begin(root: str, hook: HookPoint, graph: Any, inputs: Sequence[Any] | None, compiler: str) -> int:
    """Start a PyTorch dump, below the directory `root`, of the `graph` with its `inputs` that the `compiler` rejected at this `hook`.
    Returns the process id.

    It runs in a forked child with its own session: it takes seconds, and its faults must not affect what we saw.
    """
    if pid := os.fork():
        return pid
    os.setsid()
    signal.alarm(DUMP_LIMIT)
    os.makedirs(root, exist_ok=True)
    nothing = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(nothing, descriptor)
    try:
        with torch._dynamo.config.patch(debug_dir_root=root, disable=True):
            if hook == "aot":
                importlib.import_module("torch._dynamo.repro.after_aot").dump_to_minify(graph, inputs, compiler)
            elif hook == "dynamo":
                importlib.import_module("torch._dynamo.repro.after_dynamo").dump_to_minify_after_dynamo(graph, inputs, compiler)
            else:
                importlib.import_module("torch._dynamo.repro.aoti").dump_to_minify(graph, "aot_inductor")
        scrub(root)
    except BaseException as error:
        with open(os.path.join(root, "failed.txt"), "a", encoding="utf-8") as file:
            file.write(f"{hook}: {type(error).__name__}: {error}\n")
    finally:
        os._exit(0)


def finish(pids: Sequence[int], seconds: float = LAST_WAIT) -> None:
    """Wait for the processes `pids`, at most `seconds` in total."""
    deadline = time.monotonic() + seconds
    for pid in pids:
        with contextlib.suppress(ChildProcessError):  # the program has waited for it
            while not os.waitpid(pid, os.WNOHANG)[0] and time.monotonic() < deadline:
                time.sleep(0.05)


def scrub(root: str) -> None:
    """Remove from a dump below the directory `root` the environment variables that PyTorch writes into it, whatever they contain."""
    for path in Path(root).rglob("*.py"):
        lines = path.read_text(encoding="utf-8", errors="replace").splitlines(keepends=True)
        path.write_text("".join(line for line in lines if not line.startswith("os.environ[")), encoding="utf-8")
