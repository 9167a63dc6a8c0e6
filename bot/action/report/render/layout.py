"""Fits a comment into its limit: what matters most gets its room first, and everything keeps its position."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from bot.action.report.render.text import size

_BETWEEN = "\n\n"


@dataclass(frozen=True)
class Block:
    """A part of a comment.

    `rank`: lower ranks are served first. `within`: its text in at most the given number of bytes, empty if it cannot be that short.
    """

    rank: tuple[int, ...]
    within: Callable[[int], str]


def whole(rank: tuple[int, ...], text: str, less: str = "") -> Block:
    """A block of that `rank` that consists of `text`, or of `less`, or of nothing."""

    def within(room: int) -> str:
        return text if size(text) <= room else less if size(less) <= room else ""

    return Block(rank, within)


def fit(blocks: Sequence[Block], limit: int) -> str:
    """The `blocks` in their order, together at most `limit` bytes of UTF-8."""
    placed: dict[int, str] = {}
    left = limit + len(_BETWEEN)  # nothing comes before the first
    for index in sorted(range(len(blocks)), key=lambda index: (blocks[index].rank, index)):
        text = blocks[index].within(max(left - len(_BETWEEN), 0)) if left >= len(_BETWEEN) else ""
        if text:
            placed[index] = text
            left -= size(text) + len(_BETWEEN)
    return _BETWEEN.join(placed[index] for index in sorted(placed))
