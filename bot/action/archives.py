"""Zip files of others, read within bounds. Exported programs are such: their texts are searched for secrets but not changed, since what was
proven is the file as it is."""

from __future__ import annotations

import base64
import io
import zipfile
import zlib
from collections.abc import Iterator
from typing import IO

from bot.action.redaction import redact

# Characters of a packed program that a comment holds.
MOST_PACKED = 8 << 10
# Bytes: a larger member holds tensors; of all together; members.
_LARGEST, _MOST, _MEMBERS = 4 << 20, 32 << 20, 2_000
# What a zip file may raise that is none, torn, locked with a password, compressed in a way that is not read, or leads beyond all files.
UNREADABLE = (zipfile.BadZipFile, zlib.error, NotImplementedError, RuntimeError, EOFError, OSError, ValueError, OverflowError)
# The others unpack a whole piece at once, however little is asked for: 500 bytes may become half a gigabyte.
_BOUNDED = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)


def beginning(archive: zipfile.ZipFile, member: zipfile.ZipInfo, most: int) -> bytes:
    """The first `most` bytes of a `member` of the `archive`: what that says of their number is not believed. Raises UNREADABLE where it
    cannot be read."""
    if member.compress_type not in _BOUNDED:
        raise NotImplementedError(f"compressed in the way {member.compress_type}")
    with archive.open(member) as opened:
        return opened.read(most)


def holds_secret(file: IO[bytes]) -> bool:
    """Whether there is a secret or a personal path in the archive `file`, or in its names. What is unreadable counts as one."""
    try:
        return any(redact(text) != text for text in _texts(file))
    except UNREADABLE:
        return True


def _texts(file: IO[bytes]) -> Iterator[str]:
    left = _MOST
    with zipfile.ZipFile(file) as archive:
        yield archive.comment.decode("latin-1")
        members = archive.infolist()
        if len(members) > _MEMBERS:
            raise ValueError("too many members")
        yield "\n".join(member.filename for member in members)
        for member in members:
            text = beginning(archive, member, min(_LARGEST, left) + 1)
            if len(text) <= min(_LARGEST, left):
                left -= len(text)
                yield text.decode("latin-1")


def packed(content: bytes) -> str | None:
    """The program `content` as text, by zlib and base64; None where that is too long for a comment, or would hide a secret."""
    text = base64.b64encode(zlib.compress(content, 9)).decode("ascii")
    # what looks like a secret by chance would be taken out of it, and the rest be no program
    fits = len(text) <= MOST_PACKED and redact(text) == text
    return text if fits and not holds_secret(io.BytesIO(content)) else None
