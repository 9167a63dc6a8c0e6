"""Exported programs: zip files, whose texts are searched for secrets but not changed, since what was proven is the file as it is."""

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


def holds_secret(file: IO[bytes]) -> bool:
    """Whether there is a secret or a personal path in the archive `file`, or in its names. What is unreadable counts as one."""
    try:
        return any(redact(text) != text for text in _texts(file))
    except (zipfile.BadZipFile, zlib.error, NotImplementedError, RuntimeError, EOFError, OSError, ValueError):
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
            with archive.open(member) as opened:
                # what the directory says about a size need not be true
                text = opened.read(min(_LARGEST, left) + 1)
            if len(text) <= min(_LARGEST, left):
                left -= len(text)
                yield text.decode("latin-1")


def packed(content: bytes) -> str | None:
    """The program `content` as text, by zlib and base64; None where that is too long for a comment, or would hide a secret."""
    text = base64.b64encode(zlib.compress(content, 9)).decode("ascii")
    return text if len(text) <= MOST_PACKED and not holds_secret(io.BytesIO(content)) else None
