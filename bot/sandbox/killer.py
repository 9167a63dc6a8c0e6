"""Ends all processes of a program at once, found or not: the kernel goes through its own list, to which none is added meanwhile.

It is a process that stands by before the program starts, since a program that takes all process numbers would keep us from making it later.
It signals all that it may: if the program has its own account, the processes of that account; else those of a Landlock domain that it
shares only with the program. The program's own domain lies within that one, so the program cannot signal it, nor look into it.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
from collections.abc import Callable

from bot.sandbox import kernel, landlock

_MOST_OPEN = 1 << 16
_PATIENCE = 4.0  # seconds for it to answer: if it is not there yet, the process that makes it may hang


class Killer:
    """Made by the supervisor, before it forks the program. It acts when it is told to, and when the supervisor is gone."""

    def __init__(self) -> None:
        self.pid = 0  # once it is known
        self._supervisor = os.getpid()
        self._ours, self._its = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._ours.settimeout(_PATIENCE)

    def stand_by_as(self, uid: int) -> None:
        """Fork it under the account `uid`, which only the program has."""

        def become() -> None:
            os.setresuid(uid, uid, uid)
            # if the engine is not root, it still has the capability to signal everybody
            kernel.drop_capabilities()

        self.pid = os.fork()
        if self.pid == 0:
            self._serve(become)

    def stand_by_within(self) -> None:
        """Put this process, which becomes the program, in a domain with the killer, unless that is there already or the kernel has no such
        domains. The process may mount nothing any more. Raises OSError if signals still reach the supervisor: it would be ended too."""
        if self.pid or not landlock.scopes_signals():
            return
        kernel.prctl(kernel.PR_SET_NO_NEW_PRIVS, 1)
        os.kill(self._supervisor, 0)  # so that only the domain can be what refuses it afterwards
        landlock.Ruleset(signals_alone=True).enter()
        with contextlib.suppress(PermissionError):
            os.kill(self._supervisor, 0)
            raise OSError("a Landlock domain holds no signals back")
        # a child of the supervisor, not of the program, which would wait for it
        between = os.fork()
        if between == 0:
            made = False
            try:
                if os.fork() == 0:
                    self._serve(kernel.drop_capabilities)
                made = True
            finally:
                os._exit(not made)
        if os.waitpid(between, 0)[1]:
            raise OSError("there are no more processes to be had")

    def handed_over(self) -> None:
        """Close our copy of its end of the socket, now that whoever makes it has been forked."""
        self._its.close()

    def kill(self) -> None:
        """End all processes of the program, if the killer is there."""
        try:
            self._ours.sendall(b".")
            self.pid = int(self._ours.recv(20) or self.pid)
        except TimeoutError:
            self._ours.settimeout(0)  # do not wait again
        except OSError:
            return  # there is none

    def stand_down(self) -> None:
        """Have it act once more and end, and wait for that: afterwards, the account may be another program's."""
        with contextlib.suppress(OSError):
            self._ours.shutdown(socket.SHUT_WR)
            while self._ours.recv(20):
                pass
        if self.pid:
            with contextlib.suppress(ChildProcessError):
                os.waitpid(self.pid, 0)

    def _serve(self, become: Callable[[], None]) -> None:
        try:
            os.setsid()  # a signal to our group does not end it
            kernel.prctl(kernel.PR_SET_DUMPABLE, 0)  # so that no process of our account can use /proc to have the kernel kill it first
            its = self._its.fileno()
            nothing = os.open(os.devnull, os.O_RDWR)
            for stream in (0, 1, 2):
                os.dup2(nothing, stream)
            os.closerange(3, its)
            os.closerange(its + 1, _MOST_OPEN)
            again = self._its.recv(1)
            become()
            while True:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(-1, signal.SIGKILL)
                if not again:
                    break
                self._its.sendall(str(os.getpid()).encode())
                again = self._its.recv(1)
        finally:
            os._exit(0)
