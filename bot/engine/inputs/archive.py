"""Archives (`.zip`, `.tar`, `.tar.gz`, `.gz`), unpacked within bounds: what they say about themselves is not believed."""

from __future__ import annotations

import gzip
import tarfile
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import IO, cast

from bot.engine.inputs.taken import NotUnderstood

MOST_FILES, MOST_UNPACKED = 20_000, 4 * 2**30
# Graphs and logs shrink to a tenth or so. What unpacks to more than this many times its size, and past so many bytes, is something else.
MOST_RATIO, RATIO_FROM = 200, 64 * 2**20
_BLOCK = 2**20
# The other methods unpack a whole piece at once, however little is read: 500 bytes may become a gigabyte.
_BOUNDED = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
# Raised for archives that are damaged, cut off or locked with a password, that point outside the file, or have an entry without a name.
UNREADABLE = (
    *(zipfile.BadZipFile, tarfile.TarError, zlib.error, EOFError, OSError, RuntimeError),
    *(NotImplementedError, ValueError, OverflowError, IndexError),
)
_GZIP = b"\x1f\x8b"


def is_archive(path: Path) -> bool:
    """Whether the file `path` is an archive that `unpack` reads."""
    try:
        return zipfile.is_zipfile(path) or tarfile.is_tarfile(path) or _is_gzip(path)
    except UNREADABLE:
        return True  # compressed, and cut off before a name: `unpack` says so


def is_of_torch(path: Path) -> bool:
    """Whether torch wrote the archive `path`: an exported program, a package, saved tensors. A damaged one does not count: `unpack` says
    what is wrong with it."""
    try:
        if not zipfile.is_zipfile(path):
            return False
        with zipfile.ZipFile(path) as archive:
            # the names are below the archive's own; `version` and `byteorder` are the files of torch's writer
            last = {name.rpartition("/")[2] for name in archive.namelist() if name.count("/") <= 2}
    except UNREADABLE:
        return False
    return "byteorder" in last or "archive_format" in last or {"version", "data.pkl"} <= last


def unpack(path: Path, into: Path, unpacked: int = 0) -> int:
    """Write the plain files of the archive `path` below the empty directory `into`, without links and devices. Returns how many bytes that
    are, including those that were `unpacked` before. Raises NotUnderstood if it is damaged or encrypted, holds a path that leads out of it,
    or unpacks to more than anybody sends.
    """
    before, packed = unpacked, path.stat().st_size
    try:
        for count, (name, stream) in enumerate(_members(path)):
            if count >= MOST_FILES:
                raise NotUnderstood(f"an archive of more than {MOST_FILES:,} files")
            target = _inside(into, name)
            target.parent.mkdir(parents=True, exist_ok=True)
            if target.exists():
                raise NotUnderstood(f"an archive that holds {name[:100]!r} twice: refused")
            with stream, target.open("xb") as out:
                while block := stream.read(_BLOCK):
                    unpacked += len(block)
                    if unpacked > MOST_UNPACKED or unpacked - before > max(RATIO_FROM, MOST_RATIO * packed):
                        raise NotUnderstood(f"an archive of {packed:,} bytes that unpacks to more than {unpacked - before:,}: refused")
                    out.write(block)
    except UNREADABLE as error:
        raise NotUnderstood(f"an archive that cannot be unpacked: {error}") from error
    return unpacked


def _members(path: Path) -> Iterator[tuple[str, IO[bytes]]]:
    if zipfile.is_zipfile(path):
        yield from _zipped(path)
    elif _is_gzip(path) and not tarfile.is_tarfile(path):
        yield path.stem, cast("IO[bytes]", gzip.open(path))  # noqa: SIM115 - who unpacks closes it
    else:
        yield from _tarred(path)


def _is_gzip(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(len(_GZIP)) == _GZIP


def _zipped(path: Path) -> Iterator[tuple[str, IO[bytes]]]:
    with zipfile.ZipFile(path) as archive:
        for entry in archive.infolist():
            # the upper half of its attributes is a Unix mode, which marks links
            if not entry.is_dir() and (entry.external_attr >> 28) not in (0xA,):
                if entry.compress_type not in _BOUNDED:
                    raise NotUnderstood(f"an archive with {entry.filename[:100]!r} compressed in a way that is not read: use deflate")
                yield entry.filename, archive.open(entry)


def _tarred(path: Path) -> Iterator[tuple[str, IO[bytes]]]:
    with tarfile.open(path, "r|gz" if _is_gzip(path) else "r|") as archive:
        for entry in archive:
            stream = archive.extractfile(entry) if entry.isfile() else None
            if stream is not None:
                yield entry.name, stream


def _inside(root: Path, name: str) -> Path:
    """Where a member goes. Raises NotUnderstood if that is not below `root`."""
    parts = PurePosixPath(name.replace("\\", "/")).parts
    if not parts or "\0" in name or ".." in parts or parts[0] == "/" or ":" in parts[0]:
        raise NotUnderstood(f"an archive with a path that leads out of it: {name[:100]!r}: refused")
    return root.joinpath(*parts)
