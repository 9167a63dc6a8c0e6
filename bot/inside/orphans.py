"""Processes that a child leaves behind when it ends: on Linux they become children of the process that asked for it."""

from __future__ import annotations

import ctypes
import os

# <linux/prctl.h>: orphans below this process become its own children.
_CHILD_SUBREAPER = 36


def adopt_orphans() -> None:
    """From now on, processes that a child leaves behind become children of this process, so that it can end them."""
    try:
        ctypes.CDLL(None).prctl(_CHILD_SUBREAPER, 1, 0, 0, 0)
    except (OSError, AttributeError):
        return  # other systems: processes that leave their process group are not tracked


def offspring() -> set[int]:
    """The child processes of this process; empty if the system does not tell."""
    try:
        with open(f"/proc/self/task/{os.getpid()}/children", encoding="ascii") as file:
            return {int(pid) for pid in file.read().split()}
    except OSError:
        return set()
