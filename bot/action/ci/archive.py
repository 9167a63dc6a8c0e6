"""Files in an artifact of a run: zip files with hostile content."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Callable, Iterator

from bot.action.archives import UNREADABLE, beginning

MAX_FILES = 500
# Bytes.
MAX_FILE = 32 << 20
MAX_ALL = 256 << 20


# Whether the time for reading is over.
Late = Callable[[], bool]


def never() -> bool:
    """For readers with all the time that they need."""
    return False


def members(archive: bytes, wanted: Callable[[str], bool], late: Late = never) -> Iterator[tuple[str, bytes]]:
    """Names and contents of the files in the zip file `archive` whose names are `wanted`, until it is `late`.

    What is unreadable or too large is skipped.
    """
    left = MAX_ALL
    try:
        with zipfile.ZipFile(io.BytesIO(archive)) as opened:
            names = [info for info in opened.infolist() if wanted(info.filename)]
            for info in names[:MAX_FILES]:
                if late():
                    return
                try:
                    content = beginning(opened, info, min(MAX_FILE, left) + 1)
                except RuntimeError:  # locked, or compressed in a way that is not read: found out at once
                    continue
                except UNREADABLE:  # maybe in its last byte
                    left = max(0, left - MAX_FILE)
                    continue
                if len(content) > min(MAX_FILE, left):
                    continue
                left -= len(content)
                yield info.filename, content
    except UNREADABLE:
        return
