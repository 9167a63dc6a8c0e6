"""The processes below another one, and whether one has ended."""

from __future__ import annotations

import contextlib
import time
from pathlib import Path


def children_of(pid: int) -> list[int]:
    """The children of the process `pid`, whichever of its threads started them; none where it has ended."""
    found: list[int] = []
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):
        for thread in Path(f"/proc/{pid}/task").iterdir():
            with contextlib.suppress(FileNotFoundError, ProcessLookupError):
                found += map(int, (thread / "children").read_text().split())
    return found


def ended(pid: int, within: float = 5.0) -> bool:
    """Whether the process `pid` is gone, or waits to be collected, after so many seconds: to die takes a turn of a processor."""
    until = time.monotonic() + within
    while True:
        try:
            if Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] in "ZX":
                return True
        except (FileNotFoundError, ProcessLookupError):
            return True
        if time.monotonic() > until:
            return False
        time.sleep(0.05)
