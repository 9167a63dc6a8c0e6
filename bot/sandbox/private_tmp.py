"""A `/tmp` of its own for each process, where it may mount things.

What is written there by name (a package at `/tmp/model.pt2`, or AOTInductor of torch before 2.12, which unpacks below `/tmp` whatever
TMPDIR says) would be refused otherwise. What the process may read or write below the machine's `/tmp` stays where it is.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

from bot.sandbox import kernel

PLACE = "/tmp"


def enter(directory: str, read: Sequence[str], write: Sequence[str], listed: Sequence[str]) -> None:
    """Let `directory` be this process's `/tmp`, with those of the paths `read` and `write` that lie below `/tmp` where they were, and of
    the directories `listed` what of these lies in them. Where it fails, this process is in no usable state.

    Raises:
        OSError: not allowed here.
    """
    if os.path.realpath(PLACE) != PLACE:
        raise FileNotFoundError(PLACE)
    kernel.own_mounts()
    # what holds the directory itself comes first: later, all that is mounted in it would come along
    shown = [(path, False) for path in _tops(read)] + [(path, True) for path in _tops(write)]
    for path, writable in sorted(shown, key=lambda each: not directory.startswith(each[0] + os.sep)):
        _show(path, directory, writable=writable)
    for path in _tops(listed, all_of_them=True):
        os.makedirs(directory + path[len(PLACE) :], exist_ok=True)
    kernel.bind(directory, PLACE, writable=True)


def _tops(paths: Sequence[str], *, all_of_them: bool = False) -> list[str]:
    """The `paths` below `/tmp` that exist, without those that lie in another one, or `all_of_them`."""
    found: list[str] = []
    for path in sorted({os.path.realpath(each) for each in paths}):
        inside = not all_of_them and any(path.startswith(top + os.sep) for top in found)
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
