"""A started process, and how it and all that it started are ended."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import threading
from pathlib import Path
from typing import Any

from bot.sandbox.order import ProcessReport, read_report

# Seconds for the supervisor to end what it watches, before it is ended itself.
_GRACE = 10.0


class Process(subprocess.Popen[bytes]):
    """A process in a session of its own. In a sandbox it is the supervisor, which passes signals on and leaves as its program left.

    `control` is the socket to that supervisor, `private` the directory that is removed at the end.
    """

    control: socket.socket | None = None
    private: Path | None = None
    _report: ProcessReport | None = None

    def __init__(self, *arguments: Any, **more: Any) -> None:
        self._ending = threading.Lock()
        super().__init__(*arguments, **more)

    def end(self) -> None:
        """End it with all that it has started, and wait until they are gone. Once more is harmless."""
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
                _remove(self.private)

    @property
    def report(self) -> ProcessReport:
        """What the supervisor said of it, once it has ended; nothing without a sandbox."""
        return self._report or ProcessReport()


def _left(control: socket.socket) -> bytes:
    control.setblocking(False)
    data = b""
    with contextlib.suppress(OSError):
        while block := control.recv(65536):
            data += block
    return data


def _remove(path: Path) -> None:
    """Remove a directory, whatever rights a program has taken away from what is in it."""
    shutil.rmtree(path, ignore_errors=True)
    if path.exists():
        for folder, directories, _ in os.walk(path):
            for name in directories:
                below = os.path.join(folder, name)
                if not os.path.islink(below):
                    with contextlib.suppress(OSError):
                        os.chmod(below, 0o700)
        shutil.rmtree(path, ignore_errors=True)
