"""Removes libraries whose compiler was killed while it wrote them. The next process that needs one would load it: a different failure, or
a crash."""

from __future__ import annotations

import os
import struct
import sys
import time

# A file that does not change for this many seconds is not being written any more.
STILL = 0.3
# <elf.h>: the header of a 64-bit file, from its magic number to the offset, size and number of the section headers, which come last.
_HEADER = struct.Struct("<4sB35xQ10xHH")
_MARK, _64_BITS = b"\x7fELF", 2


def remove_half_written(folder: str) -> None:
    """Remove the incomplete shared libraries below `folder` that nothing is writing."""
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
    """Size and time of a file that is not a complete library; None for a complete one, and for one that cannot be read."""
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
