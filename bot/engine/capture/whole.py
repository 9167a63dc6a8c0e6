"""The program as one text that runs alone: the script with its project's modules written into it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from bot.engine.capture.hints import below_torch, defined_at, failing_line, script_lines
from bot.engine.capture.local_modules import local_modules, module_lines
from bot.engine.capture.region import Capture
from bot.engine.capture.source import Source
from bot.reduce.source.join_modules import joined


@dataclass(frozen=True)
class Whole:
    """A `text`, its `lines` (from 1) that a traceback names, and the `modules` of the project that the script imports.

    If they cannot be written in, `text` is the script's own.
    """

    text: str
    lines: tuple[int, ...]
    modules: tuple[str, ...]


@dataclass(frozen=True)
class Carried:
    """Where the definitions come from that go with a graph: the `text` (None if there is none), its `failing_line` that called into torch
    (None for the whole text), and the names of its functions that the compiler holds (`installed`)."""

    text: str | None = None
    failing_line: int | None = None
    installed: tuple[str, ...] = ()


def carried(source: Source, capture: Capture, places: Sequence[Path] = ()) -> Carried:
    """What goes with the graphs of a `capture`: the script in `source`, together with the modules next to it or in `places` if the compiler
    holds functions of these."""
    said = capture.outcome.text
    # the functions that the compiler had called when it failed are fewer than all that it holds
    called = below_torch(said, source.name, source.text)
    if capture.beside and not called:
        complete = whole(source, source.text, (), places).text
        return Carried(complete, None, (*defined_at(capture.installed, source.text), *capture.beside))
    return Carried(source.text, failing_line(said, source.name), called or defined_at(capture.installed, source.text))


def whole(source: Source, text: str, said: Sequence[str], places: Sequence[Path] = ()) -> Whole:
    """`text`, one of the texts of `source`, with the modules next to its file or in `places`. `said` are tracebacks; the lines of the first
    come first."""
    modules = local_modules(source.file, places, source.package)
    named = tuple(dict.fromkeys(line for stack in said for line in script_lines(stack, source.name)))
    if not modules:
        return Whole(text, named, ())
    of_modules = [module_lines(stack, modules) for stack in said]
    in_modules = {name: tuple(dict.fromkeys(line for found in of_modules for line in found[name])) for name in modules}
    complete, lines = joined(text, named, modules, in_modules, source.package)
    return Whole(complete, lines, tuple(modules))
