"""The processes below one: which of them do what, and how they are ended."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

Role = Literal["engine", "supervisor", "server", "worker", "capture", "proof", "helper"]
# What runs the program, or a part of it.
PROGRAM: tuple[Role, ...] = ("server", "worker", "capture", "proof")
_CHILD_SUBREAPER = 36  # <linux/prctl.h>
_SUPERVISOR = "bot.sandbox.supervisor"
DYING = 10.0  # seconds that killed processes may take to go


@dataclass(frozen=True)
class Process:
    """A process by its number, what it does for the engine, and its command line."""

    pid: int
    role: Role
    words: str


def adopt_orphans() -> None:
    """From now on what loses its parent below this process comes to this one, so that nothing can leave."""
    if ctypes.CDLL(None, use_errno=True).prctl(_CHILD_SUBREAPER, 1, 0, 0, 0):
        raise OSError(ctypes.get_errno(), "cannot adopt orphans")


def children(pid: int) -> list[int]:
    """The children of the process `pid`, whichever of its threads started them; none where it has ended."""
    found: list[int] = []
    with contextlib.suppress(OSError):
        for task in os.listdir(f"/proc/{pid}/task"):
            with contextlib.suppress(OSError, ValueError):
                found += map(int, Path(f"/proc/{pid}/task/{task}/children").read_text(encoding="ascii").split())
    return found


def words(pid: int) -> str:
    """The command line of the process `pid`; empty where it has ended."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
    except OSError:
        return ""


def below(engine: int) -> Iterator[Process]:
    """The processes that the engine has started, those that have ended apart."""
    for pid in children(engine):
        said = words(pid)
        if _SUPERVISOR in said:
            yield Process(pid, "supervisor", said)
            for program in children(pid):
                yield from _family(program, None)
        elif said:
            yield Process(pid, "helper", said)
            yield from _helpers(pid)


def _family(pid: int, above: Role | None) -> Iterator[Process]:
    """A process that a supervisor has started, and those below it: they do what it does."""
    said = words(pid)
    if not said:
        return
    role = role_of(said, above)
    yield Process(pid, role, said)
    for child in children(pid):
        yield from _family(child, role)


def role_of(said: str, above: Role | None = None) -> Role:
    """What a process does whose command line was `said`, below one that does `above` (None: a supervisor)."""
    if above == "server":
        return "worker"
    if above is not None:
        return above
    parts = said.split()
    for word, role in (("server", "server"), ("spare", "worker"), ("capture", "capture")):
        if f"boot.py {word}" in said:
            return role  # type: ignore[return-value]
    if any(part.endswith("/repro.py") for part in parts):
        return "proof"
    return "capture" if "boot.py control" in said else "helper"


def _helpers(pid: int) -> Iterator[Process]:
    for child in children(pid):
        yield Process(child, "helper", words(child))
        yield from _helpers(child)


def resident(pid: int) -> int:
    """Pages that the process `pid` has in memory; 0 where it has ended."""
    try:
        return int(Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()[1])
    except (OSError, ValueError, IndexError):
        return 0


def addresses(pid: int) -> int:
    """Bytes of addresses that the process `pid` has; 0 where it has ended."""
    try:
        return int(Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()[0]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        return 0


def all_below(pid: int) -> set[int]:
    """Every process below `pid`, also those that have ended and were not waited for."""
    found: set[int] = set()
    waiting = [pid]
    while waiting:
        for child in children(waiting.pop()):
            if child not in found:
                found.add(child)
                waiting.append(child)
    return found


def left_after(seconds: float) -> list[str]:
    """The command lines of what still runs below this process after so many seconds; sooner, and empty, where nothing does."""
    until = time.monotonic() + seconds
    while True:
        _reap()
        running = {pid: words(pid) or f"process {pid}" for pid in all_below(os.getpid()) if _runs(pid)}
        if not running or time.monotonic() > until:
            return list(running.values())
        time.sleep(0.05)


def _runs(pid: int) -> bool:
    """Whether the process `pid` has not ended. One that is just becoming another program has no command line, and runs."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()[0]
    except (OSError, IndexError):
        return False
    return state not in "ZX"


def end_all() -> None:
    """End everything below this process, and wait until it is gone."""
    until = time.monotonic() + DYING
    while (left := all_below(os.getpid())) and time.monotonic() < until:
        for pid in left:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        _reap()
        time.sleep(0.01)


def _reap() -> None:
    with contextlib.suppress(ChildProcessError):
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
