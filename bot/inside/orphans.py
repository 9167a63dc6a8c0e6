"""Processes that a child leaves behind when it ends: on Linux they become those of the process that asked for it."""

from __future__ import annotations

import ctypes
import os

# <linux/prctl.h>: orphans below this process become its own children.
_CHILD_SUBREAPER = 36


def adopt_orphans() -> None:
    """From now on what a child leaves behind is a child of this process, so that it can be ended."""
    try:
        ctypes.CDLL(None).prctl(_CHILD_SUBREAPER, 1, 0, 0, 0)
    except (OSError, AttributeError):
        return  # other systems: what leaves its process group goes its own way


def offspring() -> set[int]:
    """The processes whose parent this one is; none where the system does not say."""
    try:
        with open(f"/proc/self/task/{os.getpid()}/children", encoding="ascii") as file:
            return {int(pid) for pid in file.read().split()}
    except OSError:
        return set()
