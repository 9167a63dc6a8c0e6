"""The process between ours and the program's: it starts the program with the layers on, and ends everything that it leaves behind.

It is run by our own interpreter, with only the standard library, on one end of a socket. It reads the order from there, and ends everything
when the other end is closed: whoever gave the order is gone, or no longer wants it. What the program starts cannot escape: orphans become
children of the supervisor. It exits as the program did.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import socket
import time
from collections.abc import Callable

from bot.sandbox import kernel
from bot.sandbox.confine import SHARED_MEMORY, LayerMissing, confine
from bot.sandbox.killer import Killer
from bot.sandbox.order import Order, decode
from bot.sandbox.walk import walk

_BETWEEN_LOOKS = 0.2  # seconds between two looks at the disk and the number of processes
_PASSED_ON = (signal.SIGUSR1, signal.SIGABRT, signal.SIGTERM)
_NEVER_STARTED = 125
# How often to look for what is left. Each time, what is found is stopped first, so that nothing multiplies faster than it is found.
_ROUNDS = 200
_AT_ONCE = 1000  # children that are reaped before anything else is looked at: a program can make them end endlessly
_PLENTY = 1 << 62


class Supervisor:
    """Starts and watches the process of one `order`, which came through the socket `control`."""

    def __init__(self, order: Order, control: socket.socket) -> None:
        self.order = order
        self.control = control
        self.child = 0
        self.status: int | None = None
        self._room = {path: _free(path) for path in order.disk}
        self._killer = Killer()

    def run(self) -> int:
        """Run the program, and return its wait status."""
        woken, wake = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        for number in _PASSED_ON:
            signal.signal(number, lambda passed, _: self._pass_on(passed))
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        if self.order.uid is not None and self.order.sole:
            self._killer.stand_by_as(self.order.uid)
        ready = self._start()
        control = self.control.fileno()
        self._forget_streams()
        looked = time.monotonic()
        while self.status is None:
            able, _, _ = select.select([control, woken, *([ready] if ready >= 0 else [])], [], [], _BETWEEN_LOOKS)
            if ready in able:
                self._say_raw(_whole(ready))
                os.close(ready)
                ready = -1
            if woken in able:
                with contextlib.suppress(BlockingIOError):
                    os.read(woken, 4096)
            self._reap()
            if control in able and not _still_there(self.control):
                break
            if self.status is None and time.monotonic() - looked >= _BETWEEN_LOOKS:
                looked = time.monotonic()
                if why := self._over():
                    self._say({"ended": why})
                    break
        self._end_all()
        self._clear_shared_memory()
        self._killer.stand_down()
        if ready >= 0:
            self._say_raw(_whole(ready))
        return signal.SIGKILL if self.status is None else self.status

    def _start(self) -> int:
        """Fork the program; returns the pipe through which it says which layers are on, or why it did not start."""
        for path in self.order.give:
            self._give(path)
        said, say = os.pipe2(os.O_CLOEXEC)
        self.child = os.fork()
        if self.child:
            os.close(say)
            self._killer.handed_over()
            return said
        try:
            os.setsid()
            self.control.close()
            signal.set_wakeup_fd(-1)
            for number in (*_PASSED_ON, signal.SIGINT, signal.SIGCHLD, signal.SIGPIPE, signal.SIGXFSZ):
                signal.signal(number, signal.SIG_DFL)
            layers, unreachable = confine(self.order, self._killer)
            os.write(say, json.dumps({"layers": layers, "unreachable": unreachable}).encode() + b"\n")
            if not self.order.command:
                os._exit(0)
            os.execvpe(self.order.command[0], self.order.command, self.order.env)
        except LayerMissing as error:
            os.write(say, json.dumps({"failed": f"the sandbox has no layer {error} here"}).encode() + b"\n")
        except Exception as error:  # noqa: BLE001 - whatever it was, the program must not run without its layers
            where = self.order.command[0] if self.order.command else "the sandbox"
            os.write(say, json.dumps({"failed": f"cannot start {where}: {error}"}).encode() + b"\n")
        os._exit(_NEVER_STARTED)

    def _give(self, path: str) -> None:
        """Give the directory `path`, which nobody else could write to so far, to the account."""
        if self.order.uid is None or self.order.gid is None:
            return
        # bottom-up: we may not be able to look into what is no longer ours
        for folder, _, files in reversed(list(walk(path))):
            for held in (*(os.path.join(folder, name) for name in files), folder):
                os.chown(held, self.order.uid, self.order.gid, follow_symlinks=False)

    def _forget_streams(self) -> None:
        """Drop the program's streams here: whoever reads what it prints must see the end of it."""
        nothing = os.open(os.devnull, os.O_RDWR)
        for stream in (0, 1, 2):
            os.dup2(nothing, stream)
        os.close(nothing)

    def _pass_on(self, number: int) -> None:
        if self.status is None and self.child:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.child, number)

    def _reap(self) -> None:
        with contextlib.suppress(ChildProcessError):
            for _ in range(_AT_ONCE):
                pid, status = os.waitpid(-1, os.WNOHANG)
                if not pid:
                    return
                if pid == self.child:
                    self.status = status

    def _over(self) -> str:
        """The limit that was passed; empty if none was."""
        least = (self.order.least_free, self.order.least_files)
        for path, room in self._room.items():
            for now, before, most in zip(_free(path), room, least, strict=True):
                # on a disk that is nearly full, half of the free space is kept
                if now < (most if before > most else before // 2):
                    return "disk"
        if self.order.most_processes and len(_descendants()) > self.order.most_processes:
            return "processes"
        return ""

    def _end_all(self) -> None:
        self._killer.kill()
        for turn in range(_ROUNDS):
            found = _descendants() - {self._killer.pid}
            if not found:
                return
            for pid in found:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, signal.SIGKILL if turn % 2 else signal.SIGSTOP)
            if turn % 2:
                self._killer.kill()
                time.sleep(0.001)
            self._reap()

    def _clear_shared_memory(self) -> None:
        """Remove what an account that only this program had has left in the machine's shared memory."""
        if self.order.uid is not None and _left_by(self.order.uid):
            self._as_account(lambda: _remove_shared(_left_by(os.geteuid())))

    def _as_account(self, do: Callable[[], object]) -> None:
        """Run `do` in a process of the program's account, if only the program has that, and wait for it."""
        if self.order.uid is None or not self.order.sole:
            return
        pid = os.fork()
        if pid == 0:
            with contextlib.suppress(OSError):
                os.setresuid(self.order.uid, self.order.uid, self.order.uid)
                kernel.drop_capabilities()
                do()
            os._exit(0)
        with contextlib.suppress(ChildProcessError):
            os.waitpid(pid, 0)

    def _say(self, message: dict[str, object]) -> None:
        self._say_raw(json.dumps(message).encode() + b"\n")

    def _say_raw(self, data: bytes) -> None:
        with contextlib.suppress(OSError):
            self.control.sendall(data)


def _still_there(control: socket.socket) -> bool:
    try:
        return bool(control.recv(1))
    except OSError:
        return False


def _whole(pipe: int) -> bytes:
    data = b""
    while block := os.read(pipe, 65536):
        data += block
    return data


def _free(path: str) -> tuple[int, int]:
    """Free bytes on the file system of `path`, and how many more files can be made there."""
    try:
        facts = os.statvfs(path)
    except OSError:
        return _PLENTY, _PLENTY
    # some file systems have no limit, and report zero files
    return facts.f_bavail * facts.f_frsize, facts.f_favail if facts.f_files else _PLENTY


def _left_by(uid: int) -> list[str]:
    """What belongs to an account in the machine's shared memory."""
    found = []
    with contextlib.suppress(OSError), os.scandir(SHARED_MEMORY) as entries:
        for entry in entries:
            with contextlib.suppress(OSError):
                if entry.stat(follow_symlinks=False).st_uid == uid:
                    found.append(entry.path)
    return found


def _remove_shared(paths: list[str]) -> None:
    # needed only if a program has left something there, which is rare: importing it costs each process
    from bot.sandbox.files import remove

    for path in paths:
        with contextlib.suppress(OSError):
            if not os.path.islink(path) and os.path.isdir(path):
                remove(path)
            else:
                os.unlink(path)


def _descendants() -> set[int]:
    """All processes below this one, except for those that have ended."""
    found: set[int] = set()
    waiting = [os.getpid()]
    while waiting:
        for pid in _children(waiting.pop()) - found:
            found.add(pid)
            waiting.append(pid)
    return found


def _children(pid: int) -> set[int]:
    """The processes that a process and its threads have started; none for those that cannot be read."""
    found: set[int] = set()
    with contextlib.suppress(OSError):
        for task in os.listdir(f"/proc/{pid}/task"):
            with contextlib.suppress(OSError), open(f"/proc/{pid}/task/{task}/children", encoding="ascii") as file:
                found |= {int(word) for word in file.read().split()}
    return found


def main(descriptor: int) -> None:
    """Carry out the order that comes through the socket with this `descriptor`, and exit as its program did."""
    os.set_inheritable(descriptor, False)
    control = socket.socket(fileno=descriptor)
    line = b""
    while not line.endswith(b"\n"):
        data = control.recv(1 << 20)
        if not data:
            return
        line += data
    order = decode(line)
    # the next process of a job must be able to change what this one writes into a shared directory
    os.umask(0o022 if order.uid is None else 0o002)
    kernel.dump_no_core()
    with contextlib.suppress(OSError):
        kernel.prctl(kernel.PR_SET_CHILD_SUBREAPER, 1)
    status = Supervisor(order, control).run()
    if os.WIFSIGNALED(status):
        with contextlib.suppress(OSError):  # for signals that nobody can catch
            signal.signal(os.WTERMSIG(status), signal.SIG_DFL)
        os.kill(os.getpid(), os.WTERMSIG(status))
    os._exit(os.WEXITSTATUS(status))
