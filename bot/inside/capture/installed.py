"""The program's own functions that the compiler holds: lowerings, decompositions, patterns, replacements for the compiler's own functions.

No traceback names one that produces wrong numbers, or code that no compiler accepts. Without it the graph alone does not fail.
"""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import FunctionType, MethodType
from typing import Any

from ..protocol import INSIDE

# The packages whose modules hold them. Functions in the configuration are captured separately (`recipe.py`).
_HOLDERS = ("torch._inductor", "torch._functorch", "torch._decomp")
_CONFIGURATION = ("torch._inductor.config", "torch._functorch.config")
_PATTERNS = "torch._inductor.pattern_matcher"  # whose objects are entries of tables
_OURS = os.path.join(INSIDE, "")
_DEEPEST = 6  # a table, its entry, its function, what that wraps


def installed(file: str, given: Sequence[Any] = ()) -> tuple[list[int], list[str]]:
    """The lines (from 1) of the program's `file` at which such functions begin, and the top-level names of those defined in the modules
    next to it. Functions in `given` count as held as well."""
    file = os.path.abspath(file)
    seen: set[int] = set()
    lines: set[int] = set()
    names: dict[str, None] = {}
    holders = [module for name, module in list(sys.modules.items()) if _is_below(name, _HOLDERS) and name not in _CONFIGURATION]
    for values in (*(list(getattr(module, "__dict__", {}).values()) for module in holders), list(given)):
        for function in _functions(values, seen, _DEEPEST):
            written = function.__code__.co_filename
            path = os.path.abspath(written)
            if written.startswith("<"):  # made from a string, or frozen
                continue
            if path == file:
                lines.add(function.__code__.co_firstlineno)
            elif _is_beside(path, file):
                names[function.__qualname__.partition(".")[0]] = None
    return sorted(lines), list(names)


def _is_beside(path: str, file: str) -> bool:
    """Whether a module at `path` belongs to the same project as `file`."""
    below = path.startswith(os.path.join(os.path.dirname(file), ""))
    return below and not path.startswith(_OURS) and not {"site-packages", "dist-packages"}.intersection(path.split(os.sep))


def _is_below(name: str, packages: Iterable[str]) -> bool:
    return any(name == one or name.startswith(f"{one}.") for one in packages)


def _functions(values: Iterable[Any], seen: set[int], depth: int) -> Iterator[FunctionType]:
    """All functions among the `values`, and in what those hold."""
    for value in values:
        if id(value) in seen:
            continue
        seen.add(id(value))
        if isinstance(value, FunctionType):
            yield value
        if depth:
            yield from _functions(_held(value), seen, depth - 1)


def _held(value: Any) -> list[Any]:
    """The objects that a table, a class of the compiler's, a pattern or a function leads to."""
    if isinstance(value, FunctionType):
        return [getattr(value, "__wrapped__", None), *(one for one in _closed_over(value) if callable(one))]
    if isinstance(value, (MethodType, staticmethod, classmethod)):
        return [value.__func__]
    if isinstance(value, functools.partial):
        return [value.func]
    if isinstance(value, Mapping):
        return list(value.values())
    if isinstance(value, (list, tuple, set, frozenset)):
        return list(value)
    if isinstance(value, type):
        return list(vars(value).values()) if _is_below(value.__module__, _HOLDERS) else []
    return list(getattr(value, "__dict__", {}).values()) if type(value).__module__ == _PATTERNS else []


def _closed_over(function: FunctionType) -> Iterator[Any]:
    for cell in function.__closure__ or ():
        try:
            yield cell.cell_contents
        except ValueError:  # still empty
            continue
