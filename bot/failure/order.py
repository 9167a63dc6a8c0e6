"""Which of two runs of one script came further.

The control of a program may end behind the statement that fails with the compiler: that looks at what the compiler made (a graph, a
counter), and the stand-in has none. Eager has then done all that the failure is about.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from bot.failure.traceback import HEADER

_FRAME = re.compile(r'^  File "(?P<path>[^"\n]+)", line (?P<line>\d+), in (?P<function>.+)$', re.M)


def further(control: str, failed: str, script: str) -> bool:
    """Whether the error in the text `control` was raised at a later statement of the script than the one in `failed`."""
    for (ours, function), (theirs, other) in zip(_frames(control, script), _frames(failed, script), strict=False):
        if function != other:
            return False
        if ours != theirs:
            return ours > theirs
    return False


def _frames(text: str, script: str) -> Iterator[tuple[int, str]]:
    """Line and function of the script's frames in the last traceback, from its outermost to the first that is not the script's."""
    at = text.rfind(HEADER)
    begun = False
    for match in _FRAME.finditer(text, at) if at >= 0 else ():
        path = match["path"].replace("\\", "/")
        if path == script or path.endswith("/" + script):
            begun = True
            yield int(match["line"]), match["function"]
        elif begun:
            return
