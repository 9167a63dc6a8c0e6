"""Passing file descriptors between the processes of a program that may make no sockets.

multiprocessing sends a descriptor (each tensor that a DataLoader's worker returns is one) by a Unix socket with a name, and the sandbox
allows none: by their names a program could reach other services of the machine. The same file is opened by the sender's entry in /proc
here, which the kernel allows between processes of one account.
"""

from __future__ import annotations

import collections
import contextlib
import importlib
import os
import socket
import sys
from typing import Any

# A receiver opens what it was sent when it reads the message; so many may be on their way.
_ON_THEIR_WAY = 4096
_sent: collections.deque[int] = collections.deque()
_owner = os.getpid()


def pass_without_sockets() -> None:
    """Have multiprocessing pass descriptors by /proc from now on, in this process and those that it forks, where sockets are refused."""
    try:
        socket.socket(socket.AF_UNIX).close()
    except PermissionError:
        pass
    except OSError:
        return
    else:
        return
    sharer: Any = importlib.import_module("multiprocessing.resource_sharer")
    sharer.DupFd = Descriptor
    listen_on_loopback()


def listen_on_loopback() -> None:
    """Have the managers and listeners of multiprocessing, which take Unix sockets, take loopback ones where these alone can be made: in a
    network of its own. Where there is none, they fail as they do without a network."""
    try:
        socket.socket(socket.AF_UNIX).close()
    except PermissionError:
        with contextlib.suppress(OSError):
            socket.socket(socket.AF_INET).close()
            connection: Any = importlib.import_module("multiprocessing.connection")
            connection.default_family = "AF_INET"
    except OSError:
        return


class Descriptor:
    """A descriptor that can be pickled, as multiprocessing's own `DupFd`."""

    def __init__(self, descriptor: int) -> None:
        """Keep a copy of `descriptor` open until it has surely been opened by its receiver. Raises OSError where it is not open, or there
        are too many."""
        _forget_what_others_sent()
        if len(_sent) >= _most():
            with contextlib.suppress(OSError):
                os.close(_sent.popleft())
        self._copy = os.dup(descriptor)
        self._process = os.getpid()
        _sent.append(self._copy)

    def detach(self) -> int:
        """Open the same file here; the caller closes it. Raises OSError where the process that sent it has ended, or closed it."""
        return os.open(f"/proc/{self._process}/fd/{self._copy}", os.O_RDWR | os.O_CLOEXEC)


def _most() -> int:
    """How many copies are kept at most: half of the descriptors that this process may have."""
    resource = sys.modules.get("resource") or importlib.import_module("resource")
    soft = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return min(_ON_THEIR_WAY, soft // 2) if soft > 0 else _ON_THEIR_WAY


def _forget_what_others_sent() -> None:
    """In a forked process: the copies of the process that it came from are that one's to keep."""
    global _owner
    if _owner == os.getpid():
        return
    _owner = os.getpid()
    while _sent:
        with contextlib.suppress(OSError):
            os.close(_sent.pop())
