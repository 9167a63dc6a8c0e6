"""Small files that the program reads, written into its script: a repro stands alone."""

from __future__ import annotations

import ast
import os
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path, PurePath

from bot.engine.capture.hints import script_lines
from bot.failure.machine_faults import Need, last_line, missing
from bot.failure.outcome import Outcome
from bot.inside.protocol import SCRIPT
from bot.reduce.source.contents import with_content

# How many files are written into a script, and the characters of each: a longer one is data, and nobody reads that in a repro.
MOST_FILES, MOST_CHARACTERS = 4, 2_000
# Says what is in a file. The program's own account reads it: where a link leads, we may go and it may not.
_SAYS = "raise RuntimeError(ascii(open({path!r}, encoding='utf-8').read({most})))\n"


def with_own_files(
    text: str, ended: Outcome, observe: Callable[[str], Outcome], places: Sequence[Path]
) -> tuple[str, tuple[int, ...]] | None:
    """The script `text` with what it reads from files below the `places`, its directory and the working directory, and its lines (from 1)
    that the traceback of the failure names then. None where it lacks no file, or one that cannot be written into it: no text, too long,
    hidden, or read where the script does not say so.

    `ended` is how it ends where it runs alone, and `observe` runs a script so.
    """
    found, outcome = text, ended
    for _ in range(MOST_FILES):
        need = missing(outcome)
        if need is None or need.what != "file":
            break
        content = _content(PurePath(need.name), places, observe)
        step = _without_need(found, need, outcome, content, observe) if content is not None else None
        if step is None:
            return None
        found, outcome = step
    return (found, script_lines(outcome.text, SCRIPT)) if found != text and missing(outcome) is None else None


def _without_need(text: str, need: Need, outcome: Outcome, content: str, observe: Callable[[str], Outcome]) -> tuple[str, Outcome] | None:
    for line in reversed(script_lines(outcome.text, SCRIPT)):
        for candidate in with_content(text, line, content):
            ended = observe(candidate)
            # an object that is no path where one is wanted is an error of its own, in the same place
            if missing(ended) != need and script_lines(ended.text, SCRIPT)[-1:] != (line + candidate.count("\n") - text.count("\n"),):
                return candidate, ended
    return None


def _content(name: PurePath, places: Iterable[Path], observe: Callable[[str], Outcome]) -> str | None:
    """The text of a file that a script in another directory looked for by this `name`."""
    parts = name.parts[1:] if name.is_absolute() else name.parts
    for place, end in ((place, parts[first:]) for place in places for first in range(len(parts))):
        path = place.joinpath(*end)
        if os.path.isfile(path) and not any(part.startswith(".") for part in end):
            kind, _, said = last_line(observe(_SAYS.format(path=str(path), most=MOST_CHARACTERS + 1))).partition(": ")
            text = str(ast.literal_eval(said)) if kind == "RuntimeError" else ""
            return text if 0 < len(text) <= MOST_CHARACTERS and all(one.isprintable() or one in "\n\t\r" for one in text) else None
    return None
