"""A program that checks its own results and says by itself that they are wrong: by an error that it raises, or by its exit status.

Standard library only: the capture asks while it still has the graphs, the engine of what it got.
"""

from __future__ import annotations

import re

_HEADER = "Traceback (most recent call last):"
_FRAME = re.compile(r'^  File "(?P<path>[^"\n]+)", line \d+')
# What runs compiled code. A decorator such as `torch.no_grad()` runs the program's own.
_COMPILER = re.compile(r"(?:^|[/\\])(?:torch|triton)[/\\](?!utils[/\\]_contextlib\.py$|amp[/\\]autocast_mode\.py$)")
_LIBRARY = re.compile(r"[/\\](?:site|dist)-packages[/\\]|[/\\]lib[/\\]python\d[\d.]*[/\\]|^<frozen ")
_RAISE = re.compile(r"raise\b")


def says_it_failed(status: str, text: str) -> bool:
    """Whether a run was ended by the program's own verdict on something, as far as its `status` and its `text` show: `exit`, with a status
    other than zero, or `raised`, with the traceback of a `raise` of the program's own that nothing of the compiler's ran."""
    if status == "exit":
        return True
    if status != "raised" or text.count(_HEADER) != 1:
        return False
    lines = text.split("\n")
    frames = [(number, found["path"]) for number, line in enumerate(lines) if (found := _FRAME.match(line))]
    if not frames or any(_COMPILER.search(path) for _, path in frames):
        return False
    number, path = frames[-1]
    return not _LIBRARY.search(path) and number + 1 < len(lines) and _RAISE.match(lines[number + 1].strip()) is not None
