"""Reads foreign zip files within limits. Exported programs are zip files: their texts are searched for secrets but not changed, since the
file itself was verified."""

from __future__ import annotations

import base64
import io
import os
import struct
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from typing import IO, cast

from bot.action.redaction import redact

# Maximum characters of a packed program in a comment.
MOST_PACKED = 8 << 10
# Bytes: a larger member contains tensors; the limit for all together; number of members.
_LARGEST, _MOST, _MEMBERS = 4 << 20, 32 << 20, 2_000
# Bytes around the members, which are those of their names and places, if somebody has written nothing else there.
MOST_AROUND = 4 << 20
_HEADER, _LENGTHS = 30, struct.Struct("<26xHH")  # of a member: what precedes its name, of which the last are two lengths
# What reading a bad zip file may raise: not a zip file, torn, password-protected, unsupported compression, or offsets beyond its end.
UNREADABLE = (zipfile.BadZipFile, zlib.error, struct.error, NotImplementedError, RuntimeError, EOFError, OSError, ValueError, OverflowError)
# The other methods decompress a whole block at once, however little is requested: 500 bytes may become half a gigabyte.
_BOUNDED = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)


def beginning(archive: zipfile.ZipFile, member: zipfile.ZipInfo, most: int) -> bytes:
    """The first `most` bytes of a `member` of the `archive`, whose stated size is not trusted. Raises UNREADABLE if it cannot be read."""
    if member.compress_type not in _BOUNDED:
        raise NotImplementedError(f"compressed in the way {member.compress_type}")
    with archive.open(member) as opened:
        return opened.read(most)


def holds_secret(file: IO[bytes]) -> bool:
    """Whether the archive `file`, or one of its names, contains a secret or a personal path. An unreadable one counts as if it did."""
    try:
        return any(redact(text) != text for text in _texts(file))
    except UNREADABLE:
        return True


class _InParts:
    """A `file` of which no more than `most` bytes are read at once: zipfile reads a directory of members as a whole, however long it is."""

    def __init__(self, file: IO[bytes], most: int) -> None:
        self._most = most
        self.seek, self.tell, self._read = file.seek, file.tell, file.read

    def read(self, size: int = -1) -> bytes:
        if size > self._most:
            raise ValueError("too much at once")
        return self._read(self._most if size < 0 else size)

    def seekable(self) -> bool:
        return True


def _texts(file: IO[bytes]) -> Iterator[str]:
    left = _MOST
    with zipfile.ZipFile(cast(IO[bytes], _InParts(file, _LARGEST + MOST_AROUND))) as archive:
        yield archive.comment.decode("latin-1")
        members = archive.infolist()
        if len(members) > _MEMBERS:
            raise ValueError("too many members")
        yield "\n".join(f"{member.filename}\n{member.comment.decode('latin-1')}" for member in members)
        yield _around(file, members)
        for member in members:
            text = beginning(archive, member, min(_LARGEST, left) + 1)
            if len(text) <= min(_LARGEST, left):
                left -= len(text)
                yield text.decode("latin-1")


def _around(file: IO[bytes], members: Sequence[zipfile.ZipInfo]) -> str:
    """What is in an archive around the contents of its `members`. Raises ValueError if it is too much."""
    parts, at, left = [], 0, MOST_AROUND
    for begins, ends in (*sorted(_place(file, member) for member in members), (file.seek(0, os.SEEK_END),) * 2):
        if begins - at > left:
            raise ValueError("too much around the members")
        file.seek(at)
        parts.append(file.read(max(begins - at, 0)))
        left -= len(parts[-1])
        at = max(at, ends)
    return b"\n".join(parts).decode("latin-1")


def _place(file: IO[bytes], member: zipfile.ZipInfo) -> tuple[int, int]:
    """Where the content of a `member` begins and ends."""
    file.seek(member.header_offset)
    begins = member.header_offset + _HEADER + sum(_LENGTHS.unpack(file.read(_HEADER)))
    return begins, begins + member.compress_size


def packed(content: bytes) -> str | None:
    """The program `content` as text, by zlib and base64; None if it is too long for a comment, or would hide a secret."""
    text = base64.b64encode(zlib.compress(content, 9)).decode("ascii")
    # a part that looks like a secret by chance would be removed, and the rest would not be a program
    fits = len(text) <= MOST_PACKED and redact(text) == text
    return text if fits and not holds_secret(io.BytesIO(content)) else None
