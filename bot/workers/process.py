"""Runs one process to its end, whatever it does: bounded output, a time limit, its whole group killed afterwards."""

from __future__ import annotations

import contextlib
import math
import os
import re
import resource
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Literal

from bot.failure.outcome import Outcome
from bot.failure.traceback import GROUP_HEADER, HEADER, plain, ungrouped
from bot.inside.own_time import OwnTime, is_stopped
from bot.sandbox import kernel
from bot.sandbox.order import ProcessReport
from bot.sandbox.process import Process
from bot.sandbox.sandbox import NoSandbox, Sandbox

# Called now and then; False ends a run with `Interrupted`.
Wanted = Callable[[], bool] | None

# A run that takes this many times as long as without the compiler (or without comparisons) is not just slow.
HANG_RATIO = 10
# Seconds that starting Python and importing torch may add to a run.
START = 15.0
KEEP = 2_000_000  # bytes kept of each end of each output stream
MOST_PRINTED = 100_000  # characters of standard output that are also kept by themselves
LOOK = 0.1  # seconds between two looks at a process
DUMP_GRACE = 5.0  # seconds that a process gets to print its stack when its time is over
BETWEEN = 0.3  # seconds between two stacks of a process that is asked for several
# What is said about a run that the sandbox ended for its use of the machine.
LIMITS = {
    "disk": "the sandbox ended the program: no space left on the disk",
    "processes": "the sandbox ended the program: too many processes",
}
# What is said about a run that did not end because it, or a process that it started, no longer ran: whether it hangs is not known then.
NOT_RUNNING = "the program did not end: a signal, such as SIGSTOP, has stopped it or a process that it started"
DRAIN_GRACE = 2.0  # seconds to read what is left in a pipe of a dead process
# What faulthandler and the C++ library print when a process dies, and faulthandler for a Python thread that no longer runs anything.
_FATAL, _TERMINATED = "Fatal Python error: ", "terminate called after throwing an instance of "
_ALL_FRAMES_GONE = re.compile(
    r"^Current thread \S+ (?:\[[^\n]*\] )?\(most recent call first\):\n(?:  Garbage-collecting\n)?  <no Python frame>$", re.M
)

# What ended the wait for a process: it ended by itself, its own time was over, or it was cut off.
_End = Literal["itself", "late", "cut"]


class Interrupted(Exception):
    """The caller no longer wants the run to go on."""


class _Kept:
    """Always reads a stream to its end, and keeps its beginning and its end."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream
        self._head = bytearray()
        self._tail = bytearray()
        self._lost = 0
        self._lock = threading.Lock()
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def _read(self) -> None:
        with self._stream:
            while block := os.read(self._stream.fileno(), 65536):
                with self._lock:
                    room = KEEP - len(self._head)
                    self._head += block[:room]
                    self._tail += block[room:]
                    if len(self._tail) > 2 * KEEP:
                        self._lost += len(self._tail) - KEEP
                        del self._tail[:-KEEP]

    def text(self) -> str:
        """What was read, once the stream has ended (or a grandchild has held it open for too long)."""
        self._thread.join(DRAIN_GRACE)
        with self._lock:
            cut = b"\n[...]\n" if self._lost else b""
            return (bytes(self._head) + cut + bytes(self._tail)).decode("utf-8", errors="replace")


@dataclass(frozen=True)
class Patience:
    """How long a process may run.

    After `own` seconds of its own time (on a busy machine, more time than that passes), a Python process is asked for its stack (SIGABRT,
    which faulthandler answers), then its whole group is killed. After `most` seconds have passed it is cut off, wherever it is. A process
    that also answers SIGUSR1 can be asked for several `stacks`: at the end or, if they are `spread`, from a quarter of its time on.
    """

    own: float
    most: float = math.inf
    stacks: int = 1
    spread: bool = False

    def looks(self) -> list[float]:
        """When to ask for a stack before the end, in seconds of own time."""
        count = self.stacks - 1 if self.spread else 0
        return [self.own * (1 + 3 * number / count) / 4 for number in range(count)]


def run_process(
    command: Sequence[str],
    patience: Patience,
    *,
    cwd: Path,
    env: Mapping[str, str],
    wanted: Wanted = None,
    box: Sandbox | None = None,
    write: Sequence[Path] = (),
    linked: bool = False,
) -> Outcome:
    """Run a `command` as long as there is `patience`; standard output, followed by standard error, is the outcome's `text`.

    It starts in the directory `cwd` with the environment `env`. The outcome's `seconds` are its own time. It runs in the sandbox `box`, if
    any, and may write to the directories `write`; with `linked`, it gets its own working directory, with links to what is in `cwd`. Raises
    Interrupted if `wanted` returned False.
    """
    try:
        process = (box or Sandbox(cwd, on=False)).start(
            command, cwd=cwd, env=env, write=write, linked=linked, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
    except (OSError, NoSandbox) as error:
        return Outcome(status="infra", text=f"cannot start {command[0]}: {error}")
    assert process.stdout is not None
    assert process.stderr is not None
    if hasattr(resource, "prlimit"):
        # asking for the stack by SIGABRT must leave no core file in the user's directory
        with contextlib.suppress(ProcessLookupError):
            kernel.dump_no_core(process.pid)
    out, err = _Kept(process.stdout), _Kept(process.stderr)
    own, started = OwnTime(process.pid), time.monotonic()
    ended: _End = "itself"
    try:
        ended = _wait(process, own, patience, wanted)
        stopped = ended != "itself" and is_stopped(process.pid)
        if ended == "late" and not stopped:
            _ask_for_stacks(process, 1 if patience.spread else patience.stacks)
    finally:
        process.end()
    seconds, elapsed = own.seconds(), time.monotonic() - started
    # Python's last words go to stderr, so stderr comes last.
    printed = out.text()
    text = printed + err.text()
    broken = _of_sandbox(process.report) or (Outcome(status="infra", text=NOT_RUNNING) if stopped else None)
    outcome = broken or _outcome(process.returncode, ended, text, seconds)
    return outcome.model_copy(update={"elapsed": round(elapsed, 3), "stdout": printed if len(printed) <= MOST_PRINTED else ""})


def _of_sandbox(report: ProcessReport) -> Outcome | None:
    """The outcome of a run that the sandbox did not start, or ended; None for one that ended by itself."""
    if report.failed:
        return Outcome(status="infra", text=report.failed)
    return Outcome(status="infra", text=LIMITS[report.ended]) if report.ended else None


def _wait(process: Process, own: OwnTime, patience: Patience, wanted: Wanted) -> _End:
    """Wait for the process, and say what ended the wait."""
    until = time.monotonic() + patience.most
    looks = patience.looks()
    while True:
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(LOOK)
            return "itself"
        if wanted is not None and not wanted():
            raise Interrupted
        own.look()
        seconds = own.seconds()
        if seconds >= patience.own:
            return "late"
        if time.monotonic() >= until:
            return "cut"
        if looks and seconds >= looks[0]:
            del looks[0]
            if _listens(process.pid):
                process.send_signal(signal.SIGUSR1)


def _listens(pid: int) -> bool:
    """Whether a process handles SIGUSR1: one that has become another program by now would die of it. Yes if the system does not say."""
    try:
        found = re.search(r"^SigCgt:\s*([0-9a-f]+)$", Path(f"/proc/{pid}/status").read_text(encoding="ascii", errors="replace"), re.M)
    except OSError:
        return True
    return found is None or bool(int(found[1], 16) >> (signal.SIGUSR1 - 1) & 1)


def _ask_for_stacks(process: Process, stacks: int) -> None:
    for _ in range(stacks - 1):
        process.send_signal(signal.SIGUSR1)
        time.sleep(BETWEEN)
    process.send_signal(signal.SIGABRT)
    try:
        process.wait(DUMP_GRACE)
    except subprocess.TimeoutExpired:
        return  # stuck where no signal gets through; it is killed next


def _outcome(code: int, ended: _End, text: str, seconds: float) -> Outcome:
    seconds = round(seconds, 3)
    if ended != "itself":
        return Outcome(status="timeout", text=text, seconds=seconds, cut=ended == "cut")
    if code < 0:
        said = _raised_before_teardown(text)
        if said is not None:
            return Outcome(status="raised", text=said, exit=1, seconds=seconds)
        return Outcome(status="signal", text=text, signal=_signal_name(-code), seconds=seconds)
    if code > 128 and _signal_name(code - 128).startswith("SIG"):
        # a wrapper (a sandbox, a shell) passes on its child's signal in this way
        return Outcome(status="signal", text=text, signal=_signal_name(code - 128), exit=code, seconds=seconds)
    if code == 0:
        return Outcome(status="ok", text=text, exit=0, seconds=seconds)
    return Outcome(status="raised" if has_raised(code, text) else "exit", text=text, exit=code, seconds=seconds)


def has_raised(code: int, text: str) -> bool:
    """Whether a process that printed `text` and exited with the status `code` ended in an exception, or printed the one that it exited
    for."""
    return code == 1 and _ends_in_exception(text)


def _raised_before_teardown(text: str) -> str | None:
    """What a program printed that raised, and died only while Python shut down, with no frame left.

    Freeing the tensors of a device whose context is dead ends a process this way, after its traceback.
    """
    dump = text.rfind(_FATAL)
    if dump < 0 or not _ALL_FRAMES_GONE.search(text, dump):
        return None
    died = text.rfind(_TERMINATED, 0, dump)
    said = text[: died if died >= 0 else dump]
    return said if _ends_in_exception(said) else None


def _ends_in_exception(text: str) -> bool:
    text = ungrouped(plain(text))
    raised = any(f"\n{header}\n" in "\n" + text for header in (HEADER, GROUP_HEADER))
    return raised or re.search(r"^(?:Syntax|Indentation|Tab)Error: ", text, re.MULTILINE) is not None


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
