"""PyTorch's own dumps, which processes of their own write."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Sequence
from pathlib import Path

# Seconds that they get after the program has ended: what it leaves behind is ended then.
LAST_WAIT = 10.0


def finish(pids: Sequence[int], seconds: float = LAST_WAIT) -> None:
    """Wait for the processes `pids`, for `seconds` at most in all."""
    deadline = time.monotonic() + seconds
    for pid in pids:
        with contextlib.suppress(ChildProcessError):  # the program has waited for it
            while not os.waitpid(pid, os.WNOHANG)[0] and time.monotonic() < deadline:
                time.sleep(0.05)


def scrub(root: str) -> None:
    """Take out of a dump below the directory `root` the environment variables that PyTorch writes into it, whatever they hold."""
    for path in Path(root).rglob("*.py"):
        lines = path.read_text(encoding="utf-8", errors="replace").splitlines(keepends=True)
        path.write_text("".join(line for line in lines if not line.startswith("os.environ[")), encoding="utf-8")
