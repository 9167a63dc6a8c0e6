"""Processes that the program started: which of their errors is the program's failure."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from bot.inside.protocol import CHILD_ERRORS, CHILD_PREFIX, ChildError


@dataclass(frozen=True)
class FailedChild:
    """A process that the program started, in which an `error` left the compiler. `directory` holds its graphs."""

    directory: Path
    error: ChildError

    @property
    def name(self) -> str:
        """The process, for people."""
        rank = self.error["rank"]
        return f"rank {rank}" if rank else f"process {self.directory.name.removeprefix(CHILD_PREFIX)}"


def directories(out: Path) -> list[Path]:
    """The directory of each process that the program started and that called the compiler; `out` is that of the capture."""
    return sorted(path for path in out.glob(f"{CHILD_PREFIX}*") if path.is_dir())


def failing(out: Path, printed: str) -> FailedChild | None:
    """The first error that left the compiler in a child and is in what was `printed`: by the child, or by whoever got it from there.
    What nobody mentions was dealt with. `out` is the directory of the capture."""
    known = [child for child in _children(out) if child.error["said"] and child.error["said"][:200] in printed]
    return min(known, key=lambda child: child.error["time"], default=None)


def _children(out: Path) -> Iterator[FailedChild]:
    for path in sorted(out.glob(f"{CHILD_PREFIX}*/{CHILD_ERRORS}")):
        for error in json.loads(path.read_text(encoding="utf-8"))["errors"]:
            yield FailedChild(path.parent, error)
