"""Files in an artifact of a run: zip files with hostile content."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from bot.action.archives import UNREADABLE, beginning

MAX_FILES = 500
# Bytes.
MAX_FILE = 32 << 20
MAX_ALL = 256 << 20
# Of zip files in an archive: to list all that one of them names takes a second for each ten of these.
MAX_PACKED = 64 << 20


# Whether the time for reading is over.
Late = Callable[[], bool]


def never() -> bool:
    """For readers with all the time that they need."""
    return False


@dataclass
class _Room:
    """What may still be read: `files`, and `left` bytes of them, `packed` ones of zip files."""

    files: int
    left: int
    packed: int


def members(archive: bytes, wanted: Callable[[str], bool], late: Late = never) -> Iterator[tuple[str, bytes]]:
    """Names and contents of the files whose names are `wanted` in the zip file `archive`, and in zip files in it, until it is `late`.

    Names of those in a zip file have its own before them. What is unreadable or too large is skipped.
    """
    return _members(archive, wanted, late, _Room(MAX_FILES, MAX_ALL, MAX_PACKED), inner=True)


def _is_packed(info: zipfile.ZipInfo) -> bool:
    return info.filename.lower().endswith(".zip")


def _members(archive: bytes, wanted: Callable[[str], bool], late: Late, room: _Room, *, inner: bool) -> Iterator[tuple[str, bytes]]:
    try:
        with zipfile.ZipFile(io.BytesIO(archive)) as opened:
            # plain ones first: of the others there may be any number
            for info in sorted(opened.infolist(), key=_is_packed):
                packed = inner and _is_packed(info)
                if not packed and not wanted(info.filename):
                    continue
                if room.files <= 0 or late():
                    return
                room.files -= 1
                most = min(MAX_FILE, room.left, room.packed if packed else MAX_FILE)
                try:
                    content = beginning(opened, info, most + 1)
                except RuntimeError:  # locked, or compressed in a way that is not read: found out at once
                    continue
                except UNREADABLE:  # maybe in its last byte
                    room.left = max(0, room.left - MAX_FILE)
                    continue
                if len(content) > most:
                    continue
                room.left -= len(content)
                if packed:
                    room.packed -= len(content)
                    for name, member in _members(content, wanted, late, room, inner=False):
                        yield f"{info.filename}/{name}", member
                else:
                    yield info.filename, content
    except UNREADABLE:
        return
