"""The files of a result that belong together: those that its result.json names, with the hashes it gives.

The engine replaces them one after the other, and they are copied meanwhile. They wait under hidden names, which an upload leaves out,
until all of them have come. Files that do not belong together are dropped, and the previous ones stay.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from bot.models.result import CONTENTS, Result

RESULT, *_BESIDE = CONTENTS[:5]
TORN = "the result: its files were exchanged meanwhile, or not all of them have come"
# Bytes: no result of the engine is larger.
_LONGEST = 4 << 20


def waiting(name: str) -> str:
    """The temporary name of the file `name` until it is put in its place."""
    return f".{name}.new"


def is_waiting(name: str) -> bool:
    """Whether a file that waits may be called `name`. None that comes may be: it would take the place of one whose hash is known."""
    return name.startswith(".") and name.endswith(".new")


@dataclass
class ResultSet:
    """The files of a result that wait in the directory with the descriptor `target`.

    `came`: their hashes as received. `refused`: those that came and were not wanted. `told`: the content of result.json.
    """

    target: int
    came: dict[str, str] = field(default_factory=dict)
    refused: set[str] = field(default_factory=set)
    told: bytes | None = None

    def holds(self, name: str) -> bool:
        """Whether the file `name` is part of a result."""
        return name == RESULT or name in _BESIDE

    def takes(self, name: str, sha: str, content: bytes) -> bool:
        """Record the file `name`, received with the hash `sha` and this `content`, if it is part of a result; returns whether it has to
        wait for the others."""
        if self.holds(name):
            self.came[name] = sha
            self.told = content if name == RESULT else self.told
        return self.holds(name)

    def settle(self, note: Callable[[Sequence[str]], None]) -> bool:
        """Put the files in their places, and remove what the previous result named; returns whether they belong together. If not, the
        previous result stays.

        `note` is called before that, with their names; if it fails, nothing has changed. If we are killed after it, there is no
        result.json.

        Raises:
            OSError: one of them cannot be put in its place, or `note` failed.
        """
        named = self._named(self.told or b"")
        if self.told is None:
            whole = RESULT not in self.refused and not self._stands(RESULT)
        else:
            whole = all(self.came.get(name) == sha or name in self.refused for name, sha in (named or {}).items())
        try:
            if whole:
                kept = [name for name in (*_BESIDE, RESULT) if name in self.came and (named is None or name in named or name == RESULT)]
                # in a directory with other things in it, remove only files that a result named
                before = self._named(self._standing()) or {} if self.told is not None else {}
                note(kept)
                for name in (*((RESULT,) if self.told is not None else ()), *(one for one in before if one in _BESIDE)):
                    self._drop(name)
                for name in kept:
                    os.replace(waiting(name), name, src_dir_fd=self.target, dst_dir_fd=self.target)
        finally:
            for name in self.came:
                self._drop(waiting(name))
        return whole

    def _named(self, told: bytes) -> Mapping[str, str] | None:
        """The hashes that a result.json (`told`) gives for its files; None if it gives none."""
        try:
            return Result.model_validate_json(told[: _LONGEST + 1]).files.sha256
        except ValueError:
            return None

    def _standing(self) -> bytes:
        """The previous result.json; empty if there is none."""
        try:
            held = os.open(RESULT, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=self.target)
        except OSError:
            return b""
        with os.fdopen(held, "rb") as opened:
            return opened.read(_LONGEST + 1)

    def _stands(self, name: str) -> bool:
        try:
            os.stat(name, dir_fd=self.target, follow_symlinks=False)
        except OSError:
            return False
        return True

    def _drop(self, name: str) -> None:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(name, dir_fd=self.target)
