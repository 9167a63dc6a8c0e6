"""The faults: what each does to a run, at a moment that is drawn."""

from __future__ import annotations

import contextlib
import os
import resource
import signal
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from faultlib import programs
from faultlib.live import LOOK, Live
from faultlib.processes import PROGRAM, Process, Role, addresses, all_below, resident

# What a process may still take whose address space is limited, in bytes.
ROOM = 8 << 20
DAY = 86_400
STORM = 8.0  # seconds for which the largest process is ended again and again
SHORTLY = (0.5, 6.0)  # seconds, within which what was full has room again


@dataclass(frozen=True)
class Fault:
    """What is done to a run: `do`, at a moment at which a process with one of the `roles` lives (none: at any moment), in these `phases`
    (none: in all).

    `engine`: it ends the engine, so that the run has to be resumed; so many `times` in a row. `hangs`: a process of the program hangs,
    which may be said of the program. `disk`: what is written goes to a disk of its own. `clock`: the wall clock can be set. `spoils`: the
    program does it, in the way of this name.
    """

    name: str
    do: Callable[[Live], object]
    roles: Sequence[Role] = ()
    phases: Sequence[str] = ()
    engine: bool = False
    times: int = 1
    hangs: bool = False
    disk: bool = False
    clock: bool = False
    spoils: str = ""

    def program(self, number: int, usual: Sequence[programs.Program] = programs.USUAL) -> programs.Program:
        """The program for the run of this `number`, of the `usual` ones if it needs none of its own."""
        if self.spoils:
            return programs.spoiling(self.spoils, number)
        return programs.HANGING if self.name == "hang-native" else usual[number % len(usual)]


def _signals(number: signal.Signals, *roles: Role) -> Callable[[Live], None]:
    def do(live: Live) -> None:
        process = live.one(roles)
        if process is not None:
            live.send(process, number)

    return do


def _signal_engine(number: signal.Signals) -> Callable[[Live], None]:
    def do(live: Live) -> None:
        if live.goes_on():
            live.send(Process(live.engine.pid, "engine", ""), number)

    return do


def _largest(found: list[Process]) -> Process:
    return max(found, key=lambda process: resident(process.pid))


def _kill_largest(live: Live) -> None:
    """What the kernel does when memory ends: it takes the largest of those that asked to be taken first."""
    process = live.one(PROGRAM, _largest)
    if process is not None:
        live.send(process, signal.SIGKILL)


def _out_of_memory(live: Live) -> None:
    until = time.monotonic() + STORM
    while live.goes_on() and time.monotonic() < until:
        for process in [max(found, key=lambda one: resident(one.pid))] if (found := live.processes(PROGRAM)) else []:
            live.send(process, signal.SIGKILL)
        live.wait(0.5)


def _limit_memory(live: Live) -> None:
    process = live.one(PROGRAM)
    if process is not None:
        most = addresses(process.pid) + ROOM
        if _limited(process.pid, resource.RLIMIT_AS, lambda _: (most, most)):
            live.note(f"no more memory for {process.role}")


def _fill(live: Live, *, freed: bool) -> None:
    """Fill the disk to the last byte, and keep it full, or give the room back after a while."""
    ballast = live.place / "disk" / "ballast"
    until = time.monotonic() + live.rng.uniform(*SHORTLY)
    with open(ballast, "wb") as file:
        live.note("the disk is full")
        while live.goes_on() and (not freed or time.monotonic() < until):
            facts = os.statvfs(live.place / "disk")
            room = facts.f_bfree * facts.f_frsize
            if room:
                with contextlib.suppress(OSError):
                    os.posix_fallocate(file.fileno(), os.fstat(file.fileno()).st_size, room)
            time.sleep(LOOK)
    ballast.unlink()
    if live.goes_on():
        live.note("there is room again")


def _no_writes(live: Live) -> None:
    """No file of the engine, nor of what it starts from now on, may grow; half of the times for a while."""
    if not live.goes_on():
        return
    before = {pid: limit for pid in _of(live) if (limit := _limited(pid, resource.RLIMIT_FSIZE, lambda limits: (0, limits[1])))}
    live.note("nothing can be written")
    if live.rng.random() < 0.5:
        live.wait(live.rng.uniform(*SHORTLY))
        if live.goes_on():
            usual = before[live.engine.pid]
            for pid in _of(live):
                _limited(pid, resource.RLIMIT_FSIZE, lambda limits, pid=pid: (min(before.get(pid, usual)[0], limits[1]), limits[1]))  # type: ignore[misc]
            live.note("it can again")


def _of(live: Live) -> list[int]:
    return [live.engine.pid, *all_below(live.engine.pid)]


def _limited(pid: int, what: int, changed: Callable[[tuple[int, int]], tuple[int, int]]) -> tuple[int, int] | None:
    """Change a limit of the process `pid`; what it was. None where it has ended, or is another account's and we may not."""
    try:
        was = resource.prlimit(pid, what)
        return resource.prlimit(pid, what, changed(was))
    except (ProcessLookupError, PermissionError):
        return None


def _set_clock(seconds: int) -> Callable[[Live], None]:
    def do(live: Live) -> None:
        clock = live.place / "clock" / "now"
        held = memoryview(bytearray(clock.read_bytes())).cast("q")
        if not live.goes_on() or not held[1]:  # nobody has loaded what sets it
            return
        with clock.open("r+b") as file:
            file.write(seconds.to_bytes(8, "little", signed=True))
        live.note(f"the clock is {seconds} s off")

    return do


def _hang(live: Live) -> None:
    """The next process that compiles the program hangs in native code, for good."""
    pipe = live.place / "work" / "hang"
    os.mkfifo(pipe)
    os.chmod(pipe, 0o666)
    while live.goes_on():
        with contextlib.suppress(OSError):  # nobody has opened the other end
            os.close(os.open(pipe, os.O_WRONLY | os.O_NONBLOCK))
            live.note("a process hangs")
            break
        time.sleep(LOOK / 5)
    pipe.unlink()


def _spoil(live: Live) -> None:
    live.note("from now on, by some of its candidates")


_KILL, _STOP = signal.SIGKILL, signal.SIGSTOP
_ALL = (
    Fault("kill-worker", _signals(_KILL, "worker"), ("worker",)),
    Fault("kill-server", _signals(_KILL, "server"), ("server",)),
    Fault("kill-capture", _signals(_KILL, "capture"), ("capture",)),
    Fault("kill-proof", _signals(_KILL, "proof"), ("proof",)),
    Fault("kill-supervisor", _signals(_KILL, "supervisor"), ("supervisor",)),
    Fault("kill-engine", _signal_engine(_KILL), engine=True),
    Fault("kill-engine-twice", _signal_engine(_KILL), engine=True, times=2),
    Fault("end-engine", _signal_engine(signal.SIGTERM), engine=True),
    Fault("stop-worker", _signals(_STOP, "worker"), ("worker",), hangs=True),
    Fault("stop-server", _signals(_STOP, "server"), ("server",), hangs=True),
    Fault("stop-capture", _signals(_STOP, "capture"), ("capture",), hangs=True),
    Fault("stop-proof", _signals(_STOP, "proof"), ("proof",), hangs=True),
    # at its end the search has taken what hangs out of the program
    Fault("hang-native", _hang, ("worker", "capture"), ("capture", "search"), hangs=True),
    Fault("limit-memory", _limit_memory, PROGRAM),
    Fault("kill-largest", _kill_largest, PROGRAM),
    Fault("out-of-memory", _out_of_memory, PROGRAM),
    Fault("fill-disk", lambda live: _fill(live, freed=False), disk=True),
    Fault("fill-disk-freed", lambda live: _fill(live, freed=True), disk=True),
    Fault("no-writes", _no_writes),
    Fault("clock-forward", _set_clock(DAY), clock=True),
    Fault("clock-back", _set_clock(-DAY), clock=True),
    *(Fault(f"spoil-{name}", _spoil, spoils=name) for name in programs.SPOILS),
)
FAULTS = {fault.name: fault for fault in _ALL}
