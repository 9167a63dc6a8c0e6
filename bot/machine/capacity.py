"""How much can run here at a time."""

from __future__ import annotations

import os
from pathlib import Path

# Where Linux says how much memory a new process may have without swapping.
_MEMORY = Path("/proc/meminfo")
_DEVICES = Path("/dev")


def processors() -> int:
    """The CPUs in this process's affinity mask."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def gpus(devices: Path = _DEVICES) -> int:
    """The number of NVIDIA GPUs that this machine or container has, by their files in `devices`."""
    return len([path for path in devices.glob("nvidia*") if path.name.removeprefix("nvidia").isdigit()])


def gpu_files() -> list[Path]:
    """The device files of the GPUs that this machine or container has; WSL has one for all of them."""
    return [*_DEVICES.glob("nvidia[0-9]*"), *_DEVICES.glob("dxg")]


def free_memory(meminfo: Path = _MEMORY) -> int | None:
    """Bytes of memory that new processes may take, according to `meminfo`; None if the system does not say."""
    try:
        for line in meminfo.read_text(encoding="ascii").splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) << 10
    except (OSError, ValueError, IndexError):
        return None
    return None
