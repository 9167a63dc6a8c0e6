"""Brings out files that a program has left, without following where they point."""

from __future__ import annotations

import contextlib
import itertools
import os
import shutil
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path

from bot.sandbox.walk import walk

# The most bytes in total, and the most files; of more, those that come first by name.
MOST_BYTES, MOST_FILES = 512 << 20, 2000
_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def read_plain(path: Path, most: int = MOST_BYTES) -> bytes:
    """The content of the plain file `path`, of at most `most` bytes.

    Raises:
        OSError: it, or the directory that it is in, is a link; or it is not a plain file, or too large.
    """
    with os.fdopen(open_plain(path, most), "rb") as opened:
        return opened.read(most)


def copy_plain_file(source: Path, target: Path, most: int = MOST_BYTES) -> int:
    """Copy the plain file `source`, of at most `most` bytes, to `target`, which is replaced in one step; returns the number of bytes.

    Raises:
        OSError: it, or the directory that it is in, is a link; or it is not a plain file, or too large.
    """
    with os.fdopen(open_plain(source, most), "rb") as opened:
        new = target.with_name(target.name + ".new")
        with open(new, "wb") as written:
            shutil.copyfileobj(opened, written)
            size = written.tell()
        os.replace(new, target)
    return size


def open_plain(path: Path, most: int = MOST_BYTES) -> int:
    """A descriptor that reads the plain file `path`, of at most `most` bytes.

    Raises:
        OSError: it, or the directory that it is in, is a link; or it is not a plain file, or too large.
    """
    # the directory around it may have been exchanged as well
    around = os.open(path.parent, _DIRECTORY)
    try:
        held = os.open(path.name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=around)
    finally:
        os.close(around)
    facts = os.fstat(held)
    # a file with a second name may be somebody else's file
    plain = stat.S_ISREG(facts.st_mode) and facts.st_nlink == 1
    if plain and facts.st_size <= most:
        return held
    os.close(held)
    raise OSError(27, "too large", str(path)) if plain else OSError(22, "no plain file", str(path))


def copy_plain_tree(source: Path, target: Path, most: int = MOST_BYTES) -> None:
    """Copy the plain files below `source` to `target`, at most `most` bytes and `MOST_FILES` files; nothing else is copied.

    Nobody may be able to write to `source` any more.
    """
    count = 0
    for folder, _, files in walk(source):
        here = target / os.path.relpath(folder, source)
        try:
            here.mkdir(parents=True, exist_ok=True)
        except OSError:  # the path is too long for the system
            continue
        for name in files:
            if count >= MOST_FILES or most <= 0:
                return
            try:
                most -= copy_plain_file(Path(folder, name), here / name, most)
            except OSError:
                continue
            count += 1


def take_over(place: Path) -> None:
    """Take ownership of what an ended process left below `place`, which everybody may read: no program may change what another one runs."""
    # each directory before it is looked into: only its owner may be able to do that
    with contextlib.suppress(OSError):
        os.chown(place, os.geteuid(), os.getegid(), follow_symlinks=False)
    for folder, directories, files in walk(place):
        for name in (*directories, *files):
            with contextlib.suppress(OSError):
                os.chown(os.path.join(folder, name), os.geteuid(), os.getegid(), follow_symlinks=False)
    with contextlib.suppress(OSError):
        place.chmod(0o755)


def hand_to_group(directory: Path, group: int) -> None:
    """Let the `group` write to what is ours in `directory`; what a program has put there already belongs to it.

    Programs may be at work there, and may exchange what we have looked at for a link. So each entry is opened first, then checked and
    changed through its descriptor.
    """
    held = os.open(directory, _DIRECTORY)
    waiting = [(held, iter(_take_to_group(held, group)))]
    try:
        while waiting:
            place, names = waiting[-1]
            name = next(names, None)
            if name is None:
                os.close(waiting.pop()[0])
                continue
            with contextlib.suppress(OSError):
                below = os.open(name, _DIRECTORY, dir_fd=place)
                waiting.append((below, iter(_take_to_group(below, group))))
    finally:
        for place, _ in waiting:
            os.close(place)


def _take_to_group(place: int, group: int) -> list[str]:
    """Hand the directory with the descriptor `place`, and the files in it, to the `group` if they are ours; returns the directories in
    it."""
    if os.fstat(place).st_uid != os.geteuid():
        return []
    os.fchown(place, -1, group)
    os.fchmod(place, 0o2770)
    directories = []
    for name in os.listdir(place):
        with contextlib.suppress(OSError):
            file = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=place)
            try:
                facts = os.fstat(file)
                if stat.S_ISDIR(facts.st_mode):
                    directories.append(name)
                elif stat.S_ISREG(facts.st_mode) and facts.st_uid == os.geteuid() and facts.st_nlink == 1:
                    # a file with a second name may be somebody else's
                    os.fchown(file, -1, group)
                    os.fchmod(file, 0o660)
            finally:
                os.close(file)
    return directories


def remove(path: str | os.PathLike[str]) -> None:
    """Remove the directory `path`, whatever permissions a program has taken away from what is in it, and however deep that is."""
    with contextlib.suppress(RecursionError):  # before Python 3.13
        shutil.rmtree(path, ignore_errors=True)
    if not os.path.isdir(path) or os.path.islink(path):
        return
    with contextlib.suppress(OSError):
        os.chown(path, os.geteuid(), -1)
        os.chmod(path, 0o700)
        empty(path)
        os.rmdir(path)


def empty(path: str | os.PathLike[str]) -> None:
    """Remove what is in the directory `path`, as `remove` does. It stays the same directory, so a process that has it mounted does not
    write to another one. Raises OSError if it cannot be opened.
    """
    top = os.open(path, _DIRECTORY)
    try:
        _empty(top)
    finally:
        os.close(top)


def _empty(top: int) -> None:
    """Remove what is in the directory with the descriptor `top`. What is in a directory below it is moved up first: so no path gets too
    long, and only names have to be remembered."""
    numbers = itertools.count()
    waiting = os.listdir(top)
    while waiting:
        name = waiting.pop()
        with contextlib.suppress(OSError):
            if not stat.S_ISDIR(os.stat(name, dir_fd=top, follow_symlinks=False).st_mode):
                os.unlink(name, dir_fd=top)
                continue
            os.chown(name, os.geteuid(), -1, dir_fd=top, follow_symlinks=False)
            os.chmod(name, 0o700, dir_fd=top)
            below = os.open(name, _DIRECTORY, dir_fd=top)
            try:
                for inner in os.listdir(below):
                    waiting += _moved(inner, below, top, numbers)
            finally:
                os.close(below)
            os.rmdir(name, dir_fd=top)


def _moved(name: str, source: int, target: int, numbers: Iterator[int]) -> list[str]:
    """Move `name` from the directory with the descriptor `source` to the one with `target`; returns its new name there, if it could be
    moved."""
    new = f"{next(numbers)}.gone"
    try:
        # moving a directory requires write access to it; only its owner may change the owner of a file with a set-user-ID bit
        if stat.S_ISDIR(os.stat(name, dir_fd=source, follow_symlinks=False).st_mode):
            os.chown(name, os.geteuid(), -1, dir_fd=source, follow_symlinks=False)
            os.chmod(name, 0o700, dir_fd=source)
        os.rename(name, new, src_dir_fd=source, dst_dir_fd=target)
    except OSError:
        return []
    return [new]


class Scratch(tempfile.TemporaryDirectory[str]):
    """A temporary directory that other accounts write to: Python's own raises if it may not change their permissions."""

    def cleanup(self) -> None:
        """Remove it; what cannot be removed stays."""
        remove(Path(self.name))
        with contextlib.suppress(OSError):
            super().cleanup()
