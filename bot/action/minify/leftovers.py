"""Processes that a program leaves behind: found as our descendants wherever they hide, and killed (Linux).

An orphaned process goes to init, whatever its session. A subreaper gets it instead, so that it stays below us. If programs have no
separate account, only this ends them before their result is read.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import time
from contextlib import suppress
from pathlib import Path

_PR_SET_CHILD_SUBREAPER = 36
# Seconds to wait for killed processes: one in the middle of a system call dies when that returns.
LIMIT = 5.0

# A process id may be reused; together with the start time it identifies one process.
ProcessId = tuple[int, str]


def adopt_orphans() -> None:
    """Become the parent of whatever our descendants leave behind."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def descendants() -> frozenset[ProcessId]:
    """Our living descendants; empty if the system does not tell."""
    children: dict[int, list[ProcessId]] = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            # the name, in parentheses, may contain anything
            fields = path.read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
        except OSError:
            continue
        if fields[0] not in "ZX":
            children.setdefault(int(fields[1]), []).append((int(path.parent.name), fields[19]))
    found: set[ProcessId] = set()
    todo = [os.getpid()]
    while todo:
        below = [each for each in children.get(todo.pop(), []) if each not in found]
        found.update(below)
        todo += [pid for pid, _ in below]
    return frozenset(found)


def kill_all_but(kept: frozenset[ProcessId]) -> int:
    """Kill our descendants except those in `kept`, again and again until none is left; returns their number."""
    killed: set[ProcessId] = set()
    until = time.monotonic() + LIMIT
    while (left := descendants() - kept) and time.monotonic() < until:
        for pid, _ in left:
            with suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        killed |= left
        time.sleep(0.02)
    for pid, _ in killed:
        # those that became our children: others reap their own
        with suppress(OSError):
            os.waitpid(pid, os.WNOHANG)
    return len(killed)
