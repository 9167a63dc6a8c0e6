"""Runs a command under a time limit, and samples the memory of all its descendants."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

SAMPLE = 0.5  # seconds; reading a process's pages stops it for some milliseconds
DYING = 10.0  # seconds that a killed process may take to give back its memory


@dataclass(frozen=True)
class Run:
    """A command that ended. `status` negative: the signal; None: over its limit and killed. `peak` in MiB, shared pages once."""

    status: int | None
    seconds: float
    peak: float
    output: str


def environment(extra: Mapping[str, str]) -> dict[str, str]:
    """This process's environment without what could color a run, and `extra`."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("TORCH", "PYTHON", "DUMP_AOTI", "AOTINDUCTOR", "TRITON"))}
    return {**kept, **extra}


def run(argv: Sequence[str], *, cwd: Path, env: Mapping[str, str], limit: float, log: Path, sample: bool = True) -> Run:
    """Run to the end or the limit; standard output and error go to `log`, nothing of it is left running afterwards."""
    started = time.monotonic()
    family: dict[int, str] = {}
    peak, late, sampled = 0.0, False, 0.0
    with log.open("wb") as stream:
        child = subprocess.Popen(
            argv, cwd=cwd, env=dict(env), stdin=subprocess.DEVNULL, stdout=stream, stderr=stream, start_new_session=True
        )
        try:
            while True:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    child.wait(timeout=0.05)
                    break
                now = time.monotonic()
                late = now - started > limit
                if late:
                    break
                if now - sampled > SAMPLE:
                    sampled = now
                    _join(family, child.pid)
                    peak = max(peak, sum(_memory(pid) for pid in family) if sample else 0.0)
            seconds = time.monotonic() - started
        finally:
            _join(family, child.pid)
            _end(child, family)
    return Run(None if late else child.returncode, seconds, peak / 1024, log.read_text(encoding="utf-8", errors="replace"))


def _stat(pid: int) -> tuple[int, str] | None:
    """Parent and start time of a process; None where it has ended, collected by its parent or not."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    return None if fields[0] == "Z" else (int(fields[1]), fields[19])


def _join(family: dict[int, str], root: int) -> None:
    """Add to `family` (pid to start time) who descends from it by now; who is gone, leaves it."""
    stats = {pid: stat for pid in map(int, filter(str.isdecimal, os.listdir("/proc"))) if (stat := _stat(pid)) is not None}
    for pid in [pid for pid, born in family.items() if pid not in stats or stats[pid][1] != born]:
        del family[pid]
    grown = True
    while grown:
        grown = False
        for pid, (parent, born) in stats.items():
            if pid not in family and (pid == root or parent in family):
                family[pid] = born
                grown = True


def _memory(pid: int) -> float:
    """KiB of a process, each page divided by the number of processes that share it."""
    try:
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
            if line.startswith("Pss:"):
                return float(line.split()[1])
    except OSError:
        pass  # it ended between the two looks
    return 0.0


def _end(child: subprocess.Popen[bytes], family: Mapping[int, str]) -> None:
    """Kill what is left of the group and of the descendants that left it."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(child.pid, signal.SIGKILL)
    left = dict(family)
    end = time.monotonic() + DYING
    while left and time.monotonic() < end:
        left = {pid: born for pid, born in left.items() if (_stat(pid) or (0, ""))[1] == born}
        for pid in left:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.02)
    child.wait()
