"""Libraries whose compiler was killed while it wrote them. The next process that needs one loads it: another failure, or a crash."""

from __future__ import annotations

import os
import struct
import sys
import time

# Seconds in which a file does not change that nobody writes any more.
STILL = 0.3
# <elf.h>: the header of a file of 64 bits, from its mark to the place, size and number of the headers of its sections, which come last.
_HEADER = struct.Struct("<4sB35xQ10xHH")
_MARK, _64_BITS = b"\x7fELF", 2


def remove_half_written(folder: str) -> None:
    """Remove the shared libraries below `folder` that are not whole, and that nobody is writing."""
    if sys.platform != "linux":
        return  # other systems have other libraries
    found = {path: changed for path in _libraries(folder) if (changed := _half(path))}
    if not found:
        return
    time.sleep(STILL)
    for path, changed in found.items():
        if _half(path) == changed:
            os.unlink(path)


def _libraries(folder: str) -> list[str]:
    return [os.path.join(place, name) for place, _, names in os.walk(folder) for name in names if name.endswith(".so")]


def _half(path: str) -> tuple[int, int] | None:
    """Size and time of a file that is no whole library; None for a whole one, and for what cannot be read."""
    try:
        with open(path, "rb") as file:
            header, facts = file.read(_HEADER.size), os.fstat(file.fileno())
    except OSError:
        return None
    if len(header) == _HEADER.size:
        mark, bits, sections, size, number = _HEADER.unpack(header)
        if mark == _MARK and (bits != _64_BITS or 0 < sections + size * number <= facts.st_size):
            return None
    return facts.st_size, facts.st_mtime_ns
