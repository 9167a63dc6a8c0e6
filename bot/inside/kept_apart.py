"""Isolates the program of one question from the process that judges it. Linux only; other systems have less to close."""

from __future__ import annotations

import ctypes
import os

# <linux/prctl.h>, <linux/landlock.h>; the first Landlock version that restricts signals
_SET_DUMPABLE, _SET_NO_NEW_PRIVS, _LANDLOCK_CREATE, _LANDLOCK_SCOPES = 4, 38, 444, 6
_SIGNALS = 0b10
# Moving files between directories: every ruleset forbids it unless it is explicitly allowed.
_REFER, _PATH_BENEATH = 1 << 13, 1


class _Beneath(ctypes.Structure):
    _pack_ = 1
    _fields_ = (("allowed", ctypes.c_uint64), ("directory", ctypes.c_int32))


def close_to_children() -> None:
    """Keep children from opening the pipes or the memory of this process through `/proc`, and so from answering for another one."""
    try:
        ctypes.CDLL(None).prctl(_SET_DUMPABLE, 0, 0, 0, 0)
    except (OSError, AttributeError):
        return  # other systems have no /proc


def keep_to_itself() -> None:
    """From now on this process, and what it starts, cannot send signals to the process that judges it, if the kernel supports that."""
    try:
        libc = ctypes.CDLL(None, use_errno=True)
        libc.prctl(_SET_DUMPABLE, 1, 0, 0, 0)  # the parent is not, and a fork inherits that
        if libc.syscall(_LANDLOCK_CREATE, None, 0, 1) < _LANDLOCK_SCOPES:
            return
        rules = (ctypes.c_uint64 * 3)(_REFER, 0, _SIGNALS)
        domain = libc.syscall(_LANDLOCK_CREATE, rules, ctypes.sizeof(rules), 0)
        if domain >= 0:
            root = os.open("/", os.O_PATH | os.O_CLOEXEC)
            libc.syscall(_LANDLOCK_CREATE + 1, domain, _PATH_BENEATH, ctypes.byref(_Beneath(_REFER, root)), 0)
            os.close(root)
            libc.prctl(_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
            libc.syscall(_LANDLOCK_CREATE + 2, domain, 0)
            os.close(domain)
    except (OSError, AttributeError):
        return  # other systems
