"""Passes file descriptors between the processes of a program that may not create sockets.

multiprocessing sends a descriptor (such as each tensor that a DataLoader worker returns) through a named Unix socket, and the sandbox
allows none: through names a program could reach other services of the machine. Here the receiver opens the same file through the sender's
entry in /proc, which the kernel allows between processes of one account.
"""

from __future__ import annotations

import collections
import contextlib
import importlib
import os
import socket
import sys
from typing import Any

# A receiver opens what it was sent when it reads the message; this many may be in flight.
_ON_THEIR_WAY = 4096
_sent: collections.deque[int] = collections.deque()
_owner = os.getpid()


def pass_without_sockets() -> None:
    """Make multiprocessing pass descriptors through /proc from now on, in this process and its forks, if sockets are refused."""
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
    """Make the managers and listeners of multiprocessing use loopback sockets instead of Unix sockets if only these can be created, in a
    network namespace of its own. If neither can, they fail as they do without a network."""
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
    """A descriptor that can be pickled, like multiprocessing's own `DupFd`."""

    def __init__(self, descriptor: int) -> None:
        """Keep a copy of `descriptor` open until its receiver has surely opened it. Raises OSError if it is not open, or if there are too
        many."""
        _forget_what_others_sent()
        if len(_sent) >= _most():
            with contextlib.suppress(OSError):
                os.close(_sent.popleft())
        self._copy = os.dup(descriptor)
        self._process = os.getpid()
        _sent.append(self._copy)

    def detach(self) -> int:
        """Open the same file here; the caller closes it. Raises OSError if the sending process has ended, or has closed it."""
        return os.open(f"/proc/{self._process}/fd/{self._copy}", os.O_RDWR | os.O_CLOEXEC)


def _most() -> int:
    """Maximum number of copies: half of the descriptors that this process may have."""
    resource = sys.modules.get("resource") or importlib.import_module("resource")
    soft = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    return min(_ON_THEIR_WAY, soft // 2) if soft > 0 else _ON_THEIR_WAY


def _forget_what_others_sent() -> None:
    """In a forked process, close the copies that belong to its parent."""
    global _owner
    if _owner == os.getpid():
        return
    _owner = os.getpid()
    while _sent:
        with contextlib.suppress(OSError):
            os.close(_sent.pop())
