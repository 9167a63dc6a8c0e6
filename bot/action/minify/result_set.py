"""The files of a result that belong together: those that its result.json names, with the hashes that it gives them.

The engine replaces them one after the other, and they are looked at while it does. They wait under hidden names, which an upload leaves
out, until all of them have come. Those that do not belong together are dropped, and what was there before them stays.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from bot.models.result import CONTENTS, Result

RESULT, *_BESIDE = CONTENTS[:5]
TORN = "the result: its files were exchanged meanwhile, or not all of them have come"
# Bytes: more is no result of the engine's.
_LONGEST = 4 << 20


def waiting(name: str) -> str:
    """What the file `name` is called until it is put to its place."""
    return f".{name}.new"


def is_waiting(name: str) -> bool:
    """Whether a file that waits may be called `name`. None that comes may be: it would take the place of one whose hash is known."""
    return name.startswith(".") and name.endswith(".new")


@dataclass
class ResultSet:
    """Those of a result that wait in the directory with the descriptor `target`.

    `came`: their hashes, as they came. `refused`: those that came and were not wanted. `told`: what result.json says.
    """

    target: int
    came: dict[str, str] = field(default_factory=dict)
    refused: set[str] = field(default_factory=set)
    told: bytes | None = None

    def holds(self, name: str) -> bool:
        """Whether the file `name` is one of a result."""
        return name == RESULT or name in _BESIDE

    def takes(self, name: str, sha: str, content: bytes) -> bool:
        """Whether the file `name`, which came with the hash `sha` and this `content`, waits for the others."""
        if self.holds(name):
            self.came[name] = sha
            self.told = content if name == RESULT else self.told
        return self.holds(name)

    def settle(self, note: Callable[[Sequence[str]], None]) -> bool:
        """Put them to their places, and take away what the result before them named; whether they belong together, else all of that stays.

        `note` is called before, with their names; where it fails nothing has changed. Where we are killed behind it, there is no
        result.json.

        Raises:
            OSError: one of them cannot be put to its place, or `note` failed.
        """
        named = self._named(self.told or b"")
        if self.told is None:
            whole = RESULT not in self.refused and not self._stands(RESULT)
        else:
            whole = all(self.came.get(name) == sha or name in self.refused for name, sha in (named or {}).items())
        try:
            if whole:
                kept = [name for name in (*_BESIDE, RESULT) if name in self.came and (named is None or name in named or name == RESULT)]
                # of a directory that somebody keeps other things in, no file goes that no result named
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
        """The hashes that a result.json (`told`) gives to its files; None where it gives none."""
        try:
            return Result.model_validate_json(told[: _LONGEST + 1]).files.sha256
        except ValueError:
            return None

    def _standing(self) -> bytes:
        """The result.json that was there before; nothing where there is none."""
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
