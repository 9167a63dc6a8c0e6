"""Reads foreign zip files within limits. Exported programs are zip files: their texts are searched for secrets but not changed, since the
file itself was verified."""

from __future__ import annotations

import base64
import io
import zipfile
import zlib
from collections.abc import Iterator
from typing import IO

from bot.action.redaction import redact

# Maximum characters of a packed program in a comment.
MOST_PACKED = 8 << 10
# Bytes: a larger member contains tensors; the limit for all together; number of members.
_LARGEST, _MOST, _MEMBERS = 4 << 20, 32 << 20, 2_000
# What reading a bad zip file may raise: not a zip file, torn, password-protected, unsupported compression, or offsets beyond its end.
UNREADABLE = (zipfile.BadZipFile, zlib.error, NotImplementedError, RuntimeError, EOFError, OSError, ValueError, OverflowError)
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
    """The program `content` as text, by zlib and base64; None if it is too long for a comment, or would hide a secret."""
    text = base64.b64encode(zlib.compress(content, 9)).decode("ascii")
    # a part that looks like a secret by chance would be removed, and the rest would not be a program
    fits = len(text) <= MOST_PACKED and redact(text) == text
    return text if fits and not holds_secret(io.BytesIO(content)) else None
