"""What ends all processes of a program at once, found or not: the kernel goes through its own list, to which none is added meanwhile.

It is a process that stands by before the program starts: one that takes all numbers of processes would keep us from making it later. It
signals all that it may: where the program has an account alone, those of that account; else those of a Landlock domain which it shares with
the program alone. The program's own domain lies in that one, so the program cannot signal it, nor look into it.
"""

from __future__ import annotations

import contextlib
import os
import signal
import socket
from collections.abc import Callable

from bot.sandbox import kernel, landlock

_MOST_OPEN = 1 << 16
_PATIENCE = 4.0  # seconds for it to answer: where it is not there yet, whoever is to make it may hang


class Killer:
    """Made by the supervisor, before it forks the program. It acts when it is told to, and when the supervisor has gone."""

    def __init__(self) -> None:
        self.pid = 0  # once it is known
        self._supervisor = os.getpid()
        self._ours, self._its = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._ours.settimeout(_PATIENCE)

    def stand_by_as(self, uid: int) -> None:
        """Fork it for the account `uid`, which the program alone has."""

        def become() -> None:
            os.setresuid(uid, uid, uid)
            # an engine that is not root keeps the one to signal everybody
            kernel.drop_capabilities()

        self.pid = os.fork()
        if self.pid == 0:
            self._serve(become)

    def stand_by_within(self) -> None:
        """Put this process, which becomes the program, in a domain with it, where it is not there yet and the kernel has such. The process
        may mount nothing any more. Raises OSError where signals still reach the supervisor: it would be ended too."""
        if self.pid or not landlock.scopes_signals():
            return
        kernel.prctl(kernel.PR_SET_NO_NEW_PRIVS, 1)
        os.kill(self._supervisor, 0)  # so it is the domain alone that refuses it afterwards
        landlock.Ruleset(signals_alone=True).enter()
        with contextlib.suppress(PermissionError):
            os.kill(self._supervisor, 0)
            raise OSError("a Landlock domain holds no signals back")
        # the supervisor's child, not the program's, which would wait for it
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
        """Whoever makes it has been forked: its end is theirs alone."""
        self._its.close()

    def kill(self) -> None:
        """End all processes of the program, where it is there."""
        try:
            self._ours.sendall(b".")
            self.pid = int(self._ours.recv(20) or self.pid)
        except TimeoutError:
            self._ours.settimeout(0)  # not once more
        except OSError:
            return  # there is none

    def stand_down(self) -> None:
        """Have it act once more and end, and wait for that: the account may be another program's afterwards."""
        with contextlib.suppress(OSError):
            self._ours.shutdown(socket.SHUT_WR)
            while self._ours.recv(20):
                pass
        if self.pid:
            with contextlib.suppress(ChildProcessError):
                os.waitpid(self.pid, 0)

    def _serve(self, become: Callable[[], None]) -> None:
        try:
            os.setsid()  # whoever ends our group does not end it
            kernel.prctl(kernel.PR_SET_DUMPABLE, 0)  # nobody of our account says by /proc how early the kernel takes it
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
