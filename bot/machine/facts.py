"""What a program ran on, for anybody who needs the same again: the system, its compiler, its processor, its GPU. No machine names."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from bot.machine.capacity import gpu_files
from bot.machine.interpreter import RunCommand

_COMPILERS = ("g++", "clang++", "c++")
# Seconds: nvidia-smi may have to wake the driver.
_LIMIT = 30.0
_LONGEST = 120


def of_machine(ask: RunCommand, devices: Sequence[Path] | None = None, *, most: float = _LIMIT) -> dict[str, str]:
    """The facts that are known, by name: `os`, `cpu`, `compiler`, and with an NVIDIA driver `gpu` and `driver`.

    `ask` runs a command with a limit in seconds, each time `most` or half a minute, whichever is less; `devices` are the GPUs' device
    files, by default this machine's.
    """
    limit = min(most, _LIMIT)
    if devices is None:
        devices = gpu_files()
    found = {"os": _system(), "cpu": _processor(), "compiler": _compiler(ask, limit)}
    if devices:
        said = _said(ask, limit, ["nvidia-smi", "--query-gpu=name,driver_version", "--format=csv,noheader"])
        rows = [row.split(",") for row in said.splitlines()]
        names = [row[0].strip() for row in rows if len(row) == 2]
        if names:
            counted = {name: names.count(name) for name in names}
            found["gpu"] = ", ".join(f"{count} × {name}" if count > 1 else name for name, count in counted.items())
            found["driver"] = rows[0][-1].strip()
    return {name: value[:_LONGEST] for name, value in found.items() if value}


def _system() -> str:
    try:
        name = platform.freedesktop_os_release().get("PRETTY_NAME", "")
    except OSError:
        name = ""
    libc = " ".join(platform.libc_ver()).strip()
    return ", ".join(part for part in (name, f"{platform.system()} {platform.release()} {platform.machine()}", libc) if part)


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        lines = []
    models = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    count = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 0
    name = models[0] if models else platform.processor() or platform.machine()
    return f"{name} ({count} {'core' if count == 1 else 'cores'})" if count else name


def _compiler(ask: RunCommand, limit: float) -> str:
    """The compiler that Inductor uses on a CPU, and its version."""
    name = next((each for each in (os.environ.get("CXX"), *_COMPILERS) if each and shutil.which(each)), None)
    if name is None:
        return ""
    return next(iter(_said(ask, limit, [name, "--version"]).splitlines()), "").strip()


def _said(ask: RunCommand, limit: float, command: Sequence[str]) -> str:
    """What a command prints; empty if it fails."""
    try:
        done = ask(command, limit)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout if done.returncode == 0 else ""
