"""The program as one text that runs alone: the script with the modules of its project written into it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from bot.engine.capture.hints import script_lines
from bot.engine.capture.local_modules import local_modules, module_lines
from bot.engine.capture.source import Source
from bot.reduce.source.join_modules import joined


@dataclass(frozen=True)
class Whole:
    """A `text`, its `lines` (1-based) that a traceback names, and the modules of the project that the script imports.

    Where they cannot be written in, `text` is the script's own.
    """

    text: str
    lines: tuple[int, ...]
    modules: tuple[str, ...]


def whole(source: Source, text: str, said: str, places: Sequence[Path] = ()) -> Whole:
    """`text`, one of the texts of `source`, with the modules that lie beside its file or in `places`. `said` is the traceback."""
    modules = local_modules(source.file, places, source.package)
    complete, lines = joined(text, script_lines(said, source.name), modules, module_lines(said, modules), source.package)
    return Whole(complete, lines, tuple(modules))
