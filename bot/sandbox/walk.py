"""Walks through directories, in a module of its own: a supervisor starts with each process, so it imports little."""

from __future__ import annotations

import os
from collections.abc import Iterator

_DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def walk(top: str | os.PathLike[str]) -> Iterator[tuple[str, list[str], list[str]]]:
    """Like `os.walk`, but sorted; a link counts as a file, and no depth is too much: before Python 3.12, `os.walk` is recursive.

    `top` is the directory to begin with. A link in its place is not followed either: a program may have put it there.
    """
    waiting = [os.fspath(top)]
    while waiting:
        folder = waiting.pop()
        try:
            held = os.open(folder, _DIRECTORY)
        except OSError:
            continue
        try:
            with os.scandir(held) as entries:
                found = sorted((entry.name, entry.is_dir(follow_symlinks=False)) for entry in entries)
        except OSError:
            continue
        finally:
            os.close(held)
        directories = [name for name, is_directory in found if is_directory]
        yield folder, directories, [name for name, is_directory in found if not is_directory]
        waiting += (os.path.join(folder, name) for name in reversed(directories))
