"""A `/tmp` of its own for each process that may mount things.

Otherwise, what is written there by name would be refused (a package at `/tmp/model.pt2`, or AOTInductor of torch before 2.12, which unpacks
below `/tmp` whatever TMPDIR says). What the process may read or write below the machine's `/tmp` stays where it is.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Sequence

from bot.sandbox import kernel

PLACE = "/tmp"
_PROCESSES = "/proc"
_MOST_LINKS = 40  # as many as the kernel follows


def enter(directory: str, read: Sequence[str], write: Sequence[str], listed: Sequence[str], named: Sequence[str]) -> None:
    """Make `directory` this process's `/tmp`. It shows, in their usual places, those of the paths `read` and `write` that lie below `/tmp`,
    the directories `listed` with only what of these lies in them, and the links on the way to what is `named`. If it fails, this process is
    in no usable state. Raises OSError if that is not allowed.
    """
    if os.path.realpath(PLACE) != PLACE:
        raise FileNotFoundError(PLACE)
    directory = os.path.realpath(directory)
    shown = [(path, False) for path in tops(read)] + [(path, True) for path in tops(write)]
    outer = tops([path for path, _ in shown])
    kernel.own_mounts()
    for path in outer:
        _make_place(path, directory)
    empty = [path for path in map(os.path.realpath, listed) if path.startswith(PLACE + os.sep) and os.path.isdir(path)]
    for path in empty:
        if not _lies_in(path, outer):
            os.makedirs(directory + path[len(PLACE) :], exist_ok=True)
    for path in named:
        with contextlib.suppress(OSError):
            _link(os.path.abspath(path), directory, outer)
    # the directories that lead to what is shown stay where they are, as mounts of their own
    for top in {os.sep.join(path.split(os.sep)[:3]) for path in (*outer, *empty)}.difference(outer):
        kernel.bind(directory + top[len(PLACE) :], directory + top[len(PLACE) :], writable=False)
    # a path that contains the directory itself comes first: later, everything that is mounted in the directory would come along
    for path, writable in sorted(shown, key=lambda each: not directory.startswith(each[0] + os.sep)):
        try:
            kernel.bind(path, directory + path[len(PLACE) :], writable=writable)
        except FileNotFoundError:
            if os.path.lexists(path):  # otherwise somebody has removed it meanwhile
                raise
    kernel.bind(directory, PLACE, writable=True)
    # Landlock does not control changes of modes, times and attributes, nor of access times
    apart = [path for path in map(os.path.realpath, write) if os.path.isdir(path) and not path.startswith(PLACE + os.sep)]
    for path in apart:
        kernel.bind(path, path, writable=True)
    kernel.read_only(os.sep, whole=True)
    for path in (*apart, *tops(write), PLACE):
        kernel.read_only(path, on=False)
    _open_processes()


def _open_processes() -> None:
    """Make `/proc` writable, except for what is about the machine: there, root needs no capability."""
    with os.scandir(_PROCESSES) as entries:
        machines = [entry.path for entry in entries if not entry.name.isdecimal() and not entry.is_symlink() and _may_be_written(entry)]
    for path in machines:
        # one that cannot be mounted costs no `/tmp`: whether what matters is read-only is looked at before any of it is opened
        with contextlib.suppress(OSError):
            kernel.bind(path, path, writable=False)
    kernel.read_only(_PROCESSES, on=False)


def _may_be_written(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir() or bool(entry.stat().st_mode & 0o222)
    except OSError:
        return False


def tops(paths: Sequence[str]) -> list[str]:
    """The `paths` below `/tmp` that exist, without those that lie in another one of them."""
    found: list[str] = []
    for path in sorted({os.path.realpath(each) for each in paths}, key=lambda each: each.split(os.sep)):
        inside = bool(found) and path.startswith(found[-1] + os.sep)
        if path.startswith(PLACE + os.sep) and os.path.exists(path) and not inside:
            found.append(path)
    return found


def _lies_in(path: str, outer: Sequence[str]) -> bool:
    return any(path == each or path.startswith(each + os.sep) for each in outer)


def _make_place(path: str, directory: str) -> None:
    place = directory + path[len(PLACE) :]
    os.makedirs(place if os.path.isdir(path) else os.path.dirname(place), exist_ok=True)
    if not os.path.isdir(path):
        os.close(os.open(place, os.O_CREAT | os.O_WRONLY, 0o644))


def _link(path: str, directory: str, outer: Sequence[str], most: int = _MOST_LINKS) -> None:
    """Recreate the links below `/tmp` on the way to `path`: what is shown is shown at its real path."""
    reached, *parts = PLACE, *path[len(PLACE) + 1 :].split(os.sep)
    for count, part in enumerate(parts if path.startswith(PLACE + os.sep) else (), 1):
        reached = os.path.join(reached, part)
        if not os.path.islink(reached):
            continue
        target, place = os.readlink(reached), directory + reached[len(PLACE) :]
        if not _lies_in(reached, outer) and not os.path.lexists(place):
            os.makedirs(os.path.dirname(place), exist_ok=True)
            os.symlink(target, place)
        if most:
            further = os.path.join(os.path.dirname(reached), target, *parts[count:])
            _link(os.path.normpath(further), directory, outer, most - 1)
        return
