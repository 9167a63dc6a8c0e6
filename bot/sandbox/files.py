"""Files that a program has left, brought out without following where it points."""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
import tempfile
from pathlib import Path

# Bytes in all, and files: of more, what comes first by name.
MOST_BYTES, MOST_FILES = 512 << 20, 2000


def read_plain(path: Path, most: int = MOST_BYTES) -> bytes:
    """What the plain file `path` holds, of at most so many bytes (`most`).

    Raises:
        OSError: it is a link, no plain file, or too large.
    """
    with os.fdopen(_opened(path, most), "rb") as opened:
        return opened.read(most)


def copy_plain_file(source: Path, target: Path, most: int = MOST_BYTES) -> int:
    """Copy the plain file `source`, of at most so many bytes (`most`), to `target`, which is replaced in one step; the bytes copied.

    Raises:
        OSError: it is a link, no plain file, or too large.
    """
    with os.fdopen(_opened(source, most), "rb") as opened:
        new = target.with_name(target.name + ".new")
        with open(new, "wb") as written:
            shutil.copyfileobj(opened, written)
            size = written.tell()
        os.replace(new, target)
    return size


def _opened(path: Path, most: int) -> int:
    held = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    facts = os.fstat(held)
    # a second name of a file may be a name of somebody else's file
    plain = stat.S_ISREG(facts.st_mode) and facts.st_nlink == 1
    if plain and facts.st_size <= most:
        return held
    os.close(held)
    raise OSError(27, "too large", str(path)) if plain else OSError(22, "no plain file", str(path))


def copy_plain_tree(source: Path, target: Path, most: int = MOST_BYTES) -> None:
    """Copy the plain files below `source` to `target`, no more than so many bytes (`most`) and `MOST_FILES` files; nothing else is copied.

    Nobody may write to `source` any more.
    """
    count = 0
    for folder, directories, files in os.walk(source):
        directories[:] = sorted(name for name in directories if not os.path.islink(os.path.join(folder, name)))
        here = target / os.path.relpath(folder, source)
        here.mkdir(parents=True, exist_ok=True)
        for name in sorted(files):
            if count >= MOST_FILES or most <= 0:
                return
            try:
                most -= copy_plain_file(Path(folder, name), here / name, most)
            except OSError:
                continue
            count += 1


def take_over(place: Path) -> None:
    """Make ours, for everybody to read, what a process that has ended left below `place`: no program may change what another one runs."""
    # each directory before it is looked into: that may be its owner's alone
    with contextlib.suppress(OSError):
        os.chown(place, os.geteuid(), os.getegid(), follow_symlinks=False)
    for folder, directories, files in os.walk(place):
        for name in (*directories, *files):
            with contextlib.suppress(OSError):
                os.chown(os.path.join(folder, name), os.geteuid(), os.getegid(), follow_symlinks=False)
    with contextlib.suppress(OSError):
        place.chmod(0o755)


def remove(path: Path) -> None:
    """Remove the directory `path`, whatever rights a program has taken away from what is in it."""
    shutil.rmtree(path, ignore_errors=True)
    if not path.is_dir() or path.is_symlink():
        return
    _take(str(path))
    for folder, directories, _ in os.walk(path):
        for name in directories:
            _take(os.path.join(folder, name))
    shutil.rmtree(path, ignore_errors=True)


class Scratch(tempfile.TemporaryDirectory[str]):
    """A temporary directory into which other accounts write: Python's own ends with an error where it may not change their rights."""

    def cleanup(self) -> None:
        """Remove it; what cannot be removed stays."""
        remove(Path(self.name))
        with contextlib.suppress(OSError):
            super().cleanup()


def _take(directory: str) -> None:
    """Make a directory ours to empty, no link."""
    if not os.path.islink(directory):
        with contextlib.suppress(OSError):
            os.chown(directory, os.geteuid(), -1, follow_symlinks=False)
            os.chmod(directory, 0o700)
