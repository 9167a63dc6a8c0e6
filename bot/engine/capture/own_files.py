"""Writes small files that the program reads into its script: a repro stands alone."""

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

# The most files that are written into a script, and the most characters of each: a longer file is data that nobody reads in a repro.
MOST_FILES, MOST_CHARACTERS = 4, 2_000
# Shows what is in a file. It runs under the program's account, since we could follow a link that the program may not.
_SAYS = "raise RuntimeError(ascii(open({path!r}, encoding='utf-8').read({most})))\n"


def with_own_files(
    text: str, ended: Outcome, observe: Callable[[str], Outcome], places: Sequence[Path]
) -> tuple[str, tuple[int, ...]] | None:
    """The script `text` with the files that it reads written into it, and the lines (from 1) that the failure's traceback then names. Files
    are looked for below the `places`: the script's directory and the working directory. None if no file is missing, or if one cannot be
    written in: it is not text, too long or hidden, or no line of the script visibly reads it.

    `ended` is the outcome of the script run alone, and `observe` runs a script that way.
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
            # passing an object where a path is wanted is another error at the same line
            if missing(ended) != need and script_lines(ended.text, SCRIPT)[-1:] != (line + candidate.count("\n") - text.count("\n"),):
                return candidate, ended
    return None


def _content(name: PurePath, places: Iterable[Path], observe: Callable[[str], Outcome]) -> str | None:
    """The text of the file that a script in another directory looked for by this `name`."""
    parts = name.parts[1:] if name.is_absolute() else name.parts
    for place, end in ((place, parts[first:]) for place in places for first in range(len(parts))):
        path = place.joinpath(*end)
        if os.path.isfile(path) and not any(part.startswith(".") for part in end):
            kind, _, said = last_line(observe(_SAYS.format(path=str(path), most=MOST_CHARACTERS + 1))).partition(": ")
            text = str(ast.literal_eval(said)) if kind == "RuntimeError" else ""
            return text if 0 < len(text) <= MOST_CHARACTERS and all(one.isprintable() or one in "\n\t\r" for one in text) else None
    return None
