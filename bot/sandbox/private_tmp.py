"""A `/tmp` of its own for each process, where it may mount things.

What is written there by name (a package at `/tmp/model.pt2`, or AOTInductor of torch before 2.12, which unpacks below `/tmp` whatever
TMPDIR says) would be refused otherwise. What the process may read or write below the machine's `/tmp` stays where it is.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

from bot.sandbox import kernel

PLACE = "/tmp"


def enter(directory: str, read: Sequence[str], write: Sequence[str], listed: Sequence[str], named: Sequence[str]) -> None:
    """Let `directory` be this process's `/tmp`, with those of the paths `read` and `write` that lie below `/tmp` where they were, of the
    directories `listed` what of these lies in them, and the links on the way to what is `named`. Where it fails, this process is in no
    usable state.

    Raises:
        OSError: not allowed here, or there is too much to show.
    """
    if os.path.realpath(PLACE) != PLACE:
        raise FileNotFoundError(PLACE)
    shown = [(path, False) for path in tops(read)] + [(path, True) for path in tops(write)]
    kernel.own_mounts()
    # what holds the directory itself comes first: later, all that is mounted in it would come along
    for path, writable in sorted(shown, key=lambda each: not directory.startswith(each[0] + os.sep)):
        try:
            _show(path, directory, writable=writable)
        except FileNotFoundError:
            if os.path.lexists(path):  # else somebody has removed it meanwhile
                raise
    for path in map(os.path.realpath, listed):
        if path.startswith(PLACE + os.sep) and os.path.isdir(path):
            os.makedirs(directory + path[len(PLACE) :], exist_ok=True)
    for path in named:
        _link(os.path.abspath(path), directory)
    kernel.bind(directory, PLACE, writable=True)


def tops(paths: Sequence[str]) -> list[str]:
    """The `paths` below `/tmp` that exist, without those that lie in another one."""
    found: list[str] = []
    for path in sorted({os.path.realpath(each) for each in paths}, key=lambda each: each.split(os.sep)):
        inside = bool(found) and path.startswith(found[-1] + os.sep)
        if path.startswith(PLACE + os.sep) and os.path.exists(path) and not inside:
            found.append(path)
    return found


def _show(path: str, directory: str, *, writable: bool) -> None:
    place = directory + path[len(PLACE) :]
    if not os.path.lexists(place):  # else it lies in what is shown already
        os.makedirs(place if os.path.isdir(path) else os.path.dirname(place), exist_ok=True)
        if not os.path.isdir(path):
            os.close(os.open(place, os.O_CREAT | os.O_WRONLY, 0o644))
    kernel.bind(path, place, writable=writable)


def _link(path: str, directory: str) -> None:
    """Make the links anew that lie below `/tmp` on the way to `path`: what is shown is shown where it really is."""
    reached, *parts = PLACE, *path[len(PLACE) + 1 :].split(os.sep)
    for part in parts if path.startswith(PLACE + os.sep) else ():
        reached = os.path.join(reached, part)
        place = directory + reached[len(PLACE) :]
        if os.path.islink(reached) and not os.path.lexists(place):
            os.makedirs(os.path.dirname(place), exist_ok=True)
            os.symlink(os.readlink(reached), place)
