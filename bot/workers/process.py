"""Running one process to its end, whatever it does: bounded output, a time limit, its whole group killed afterwards."""

from __future__ import annotations

import contextlib
import os
import re
import resource
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import IO

from bot.failure.outcome import Outcome

# Asked now and then; False ends a run with `Interrupted`.
Wanted = Callable[[], bool] | None

# What still runs after so many times what it takes without the compiler (or without comparisons) is not just slow.
HANG_RATIO = 10
KEEP = 2_000_000  # bytes kept of each end of each output stream
DUMP_GRACE = 5.0  # seconds that a process gets to print its stack when its time is over
BETWEEN = 0.3  # seconds between two stacks of a process that is asked for several
DRAIN_GRACE = 10.0  # seconds to read what is left in the pipes of a dead process
# What faulthandler and the C++ library print of a death, and faulthandler of a thread of Python's that runs nothing any more.
_FATAL, _TERMINATED = "Fatal Python error: ", "terminate called after throwing an instance of "
_ALL_FRAMES_GONE = re.compile(
    r"^Current thread \S+ (?:\[[^\n]*\] )?\(most recent call first\):\n(?:  Garbage-collecting\n)?  <no Python frame>$", re.M
)


class Interrupted(Exception):
    """The caller no longer wants the run to go on."""


class _Kept:
    """Reads a stream to its end, always, and keeps its two ends."""

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


def run_process(
    command: Sequence[str], *, timeout: float, cwd: Path, env: Mapping[str, str], wanted: Wanted = None, stacks: int = 1
) -> Outcome:
    """Run a command; standard output and then standard error are the outcome's `text`.

    It starts in the directory `cwd` with the environment `env`. After `timeout` seconds a Python process is asked for its stack
    (SIGABRT, which faulthandler answers), then its whole group is killed. A process that answers SIGUSR1 too can be asked for
    several `stacks`, one after the other.

    Raises:
        Interrupted: `wanted` gave False.
    """
    started = time.monotonic()
    try:
        process = subprocess.Popen(
            list(command),
            cwd=cwd,
            env=dict(env),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
    except OSError as error:
        return Outcome(status="infra", text=f"cannot start {command[0]}: {error}")
    assert process.stdout is not None
    assert process.stderr is not None
    if hasattr(resource, "prlimit"):
        # asking for the stack by SIGABRT must leave no core file in the user's directory
        with contextlib.suppress(ProcessLookupError):
            resource.prlimit(process.pid, resource.RLIMIT_CORE, (0, 0))
    out, err = _Kept(process.stdout), _Kept(process.stderr)
    late = False
    try:
        late = not _ended(process, timeout, wanted)
        if late:
            _ask_for_stacks(process, stacks)
    finally:
        _kill_group(process)
    # Python writes its last words to stderr, so they come last.
    text = out.text() + err.text()
    return _outcome(process.returncode, late, text, time.monotonic() - started)


def _ended(process: subprocess.Popen[bytes], timeout: float, wanted: Wanted) -> bool:
    """Wait for the process; False when its time is over."""
    deadline = time.monotonic() + timeout
    while (left := deadline - time.monotonic()) > 0:
        try:
            process.wait(min(left, 0.1))
            return True
        except subprocess.TimeoutExpired:
            if wanted is not None and not wanted():
                raise Interrupted from None
    return False


def _ask_for_stacks(process: subprocess.Popen[bytes], stacks: int) -> None:
    for _ in range(stacks - 1):
        process.send_signal(signal.SIGUSR1)
        time.sleep(BETWEEN)
    process.send_signal(signal.SIGABRT)
    try:
        process.wait(DUMP_GRACE)
    except subprocess.TimeoutExpired:
        return  # stuck where no signal gets through; it is killed next


def _kill_group(process: subprocess.Popen[bytes]) -> None:
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        return
    finally:
        process.wait()


def _outcome(code: int, late: bool, text: str, seconds: float) -> Outcome:
    seconds = round(seconds, 3)
    if late:
        return Outcome(status="timeout", text=text, seconds=seconds)
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
    raised = code == 1 and _ends_in_exception(text)
    return Outcome(status="raised" if raised else "exit", text=text, exit=code, seconds=seconds)


def _raised_before_teardown(text: str) -> str | None:
    """What was printed by a program that raised, and died only when Python was taking itself down: no frame was left.

    Freeing tensors of a device whose context is dead ends a process so, after its traceback.
    """
    dump = text.rfind(_FATAL)
    if dump < 0 or not _ALL_FRAMES_GONE.search(text, dump):
        return None
    died = text.rfind(_TERMINATED, 0, dump)
    said = text[: died if died >= 0 else dump]
    return said if _ends_in_exception(said) else None


def _ends_in_exception(text: str) -> bool:
    return (
        "\nTraceback (most recent call last):\n" in "\n" + text
        or re.search(r"^(?:Syntax|Indentation|Tab)Error: ", text, re.MULTILINE) is not None
    )


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
