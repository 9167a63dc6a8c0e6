"""PyTorch's own dumps, which processes of their own write."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Sequence

# Seconds that they get after the program has ended: what it leaves behind is ended then.
LAST_WAIT = 10.0


def finish(pids: Sequence[int], seconds: float = LAST_WAIT) -> None:
    """Wait for the processes `pids`, for `seconds` at most in all."""
    deadline = time.monotonic() + seconds
    for pid in pids:
        with contextlib.suppress(ChildProcessError):  # the program has waited for it
            while not os.waitpid(pid, os.WNOHANG)[0] and time.monotonic() < deadline:
                time.sleep(0.05)
