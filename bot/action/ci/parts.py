"""The parts of a text between Markdown's fences: each may show a failure of its own."""

from __future__ import annotations

import bisect
from collections.abc import Iterable, Sequence

from bot.action.ci.tracebacks import PrintedTraceback, is_whole
from bot.models.failure import Signature

_FENCE = "```"


class Parts:
    """The parts into which fences divide the lines of `text`; a log has none, and is one part."""

    def __init__(self, text: list[str]) -> None:
        self._fences = [i for i, line in enumerate(text) if line == _FENCE]

    def of(self, line: int) -> int:
        """The number of the part in which the line with that index is."""
        return bisect.bisect(self._fences, line)

    def tell_again(self, signature: Signature, others: Iterable[Signature]) -> bool:
        """Whether one of `others` is the failure of this `signature`: people show one twice, once with less of its message."""
        return bool(self._fences) and any(_is_same(signature, other) for other in others)


def without_excerpts(blocks: Sequence[PrintedTraceback]) -> list[PrintedTraceback]:
    """Those of the `blocks` that are no part of another one, which shows what was raised: somebody may copy frames of it again."""
    whole = [block.text for block in blocks if is_whole(block.text)]
    return [block for block in blocks if is_whole(block.text) or not any(block.text.partition("\n")[2] in text for text in whole)]


def _is_same(one: Signature, other: Signature) -> bool:
    said, again = (each.message.removesuffix("...").strip() for each in (one, other))
    return one.exception[-1:] == other.exception[-1:] and (said.startswith(again) or again.startswith(said))
