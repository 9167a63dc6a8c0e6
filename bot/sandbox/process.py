"""A started process, and how it is ended with everything that it started."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from bot.sandbox import accounts
from bot.sandbox.files import remove
from bot.sandbox.order import Order, ProcessReport, read_report

# Seconds for the supervisor to end what it watches, before it is killed itself.
_GRACE = 10.0
_ROOT = Path(__file__).resolve().parents[2]
_START = "import sys; sys.path.insert(0, sys.argv[1]); from bot.sandbox.supervisor import main; main(int(sys.argv[2]))"


class Process(subprocess.Popen[bytes]):
    """A process in its own session. In a sandbox it is the supervisor, which passes signals on and exits as its program did.

    `control` is the socket to that supervisor, `private` the directory that is removed at the end.
    """

    control: socket.socket | None = None
    private: Path | None = None
    _report: ProcessReport | None = None

    def __init__(self, *arguments: Any, **more: Any) -> None:
        self._ending = threading.Lock()
        super().__init__(*arguments, **more)

    def end(self) -> None:
        """End it with everything that it has started, and wait until they are gone. Calling it again is harmless."""
        if self.control is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.pid, signal.SIGKILL)
            self.wait()
            return
        with self._ending:
            self._end_supervised(self.control)

    def _end_supervised(self, control: socket.socket) -> None:
        if self._report is None:
            with contextlib.suppress(OSError):
                control.shutdown(socket.SHUT_WR)
            try:
                self.wait(_GRACE)
            except subprocess.TimeoutExpired:
                self.kill()
                self.wait()
            self._report = read_report(_left(control))
            control.close()
            if self.private is not None:
                remove(self.private)

    @property
    def report(self) -> ProcessReport:
        """What the supervisor reported, once it has ended; empty without a sandbox."""
        return self._report or ProcessReport()


def launch(order: Order, private: Path | None, streams: Mapping[str, Any]) -> Process:
    """Start what the `order` says under a supervisor. `private` is a directory to remove at the end, `streams` are those of `Popen`."""
    ours, theirs = socket.socketpair()
    with theirs:
        words = [sys.executable, "-I", "-S", "-c", _START, str(_ROOT), str(theirs.fileno())]
        with accounts.handed_on():
            process = Process(words, cwd="/", env={}, pass_fds=(theirs.fileno(),), start_new_session=True, **streams)
    process.control, process.private = ours, private
    with contextlib.suppress(OSError):  # it has ended already: its status says so
        ours.sendall(order.encode())
    return process


def start_as(
    command: Sequence[str],
    *,
    cwd: Path,
    env: Mapping[str, str],
    uid: int | None,
    gid: int | None,
    keep: Sequence[int] = (),
    sole: bool = True,
    **streams: Any,
) -> Process:
    """Start `command` in the directory `cwd` with the environment `env`, under only the account `uid` and the group `gid` (None: ours).

    It is not confined, and may `keep` the capabilities with these numbers. What it starts ends with it and, if it is the account's `sole`
    process, so does whatever else runs under that account. `streams` are those of `Popen`. Raises OSError if there is no such program.
    """
    if sys.platform != "linux":
        return Process(list(command), cwd=cwd, env=dict(env), start_new_session=True, **streams)
    program = shutil.which(command[0], path=env.get("PATH"))
    if program is None:
        raise FileNotFoundError(2, "No such file or directory", command[0])
    words = (program, *command[1:])
    return launch(Order(words, dict(env), str(cwd), uid, gid, confined=False, keep=tuple(keep), sole=sole), None, streams)


def _left(control: socket.socket) -> bytes:
    control.setblocking(False)
    data = b""
    with contextlib.suppress(OSError):
        while block := control.recv(65536):
            data += block
    return data
