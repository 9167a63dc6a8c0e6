"""Finds out in few questions which of many edits can be made together."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

T = TypeVar("T")


def adaptive(atoms: Sequence[T], works: Callable[[Sequence[Sequence[T]]], int | None]) -> list[T]:
    """A largest possible set of `atoms` that can be applied together, found greedily.

    All are tried at once, then each half of what failed, and so on: about 2 k log(n / k) questions if k of n atoms have to stay. `works`
    takes alternatives, best first, and returns the index of the first that works. Two halves are asked together so that workers can try
    both at once; the answer does not depend on the number of workers.
    """
    accepted: list[T] = []

    def ask(blocks: Sequence[Sequence[T]]) -> int | None:
        return works([[*accepted, *block] for block in blocks])

    def split(block: Sequence[T]) -> None:
        """The block is known to fail as a whole."""
        if len(block) < 2:
            return
        middle = len(block) // 2
        left, right = block[:middle], block[middle:]
        found = ask([left, right])
        if found == 0:
            accepted.extend(left)
            attempt(right)
        elif found == 1:
            accepted.extend(right)
            split(left)
        else:
            split(left)
            split(right)

    def attempt(block: Sequence[T]) -> None:
        if not block:
            return
        if ask([block]) == 0:
            accepted.extend(block)
        else:
            split(block)

    attempt(list(atoms))
    return accepted
