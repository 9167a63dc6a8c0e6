"""Which expressions of a program refer to the compiler, by the names of its entry points."""

from __future__ import annotations

import ast

from bot.inside.entry_points import AT_ONCE, COMPILING, Sort, last_names, places
from bot.reduce.source.text.names import dotted

# Last names of calls that pass something to the compiler.
ENTRIES = last_names(*COMPILING)
# Those that run what they are given immediately.
TRACES = last_names(*AT_ONCE)
EXPORTERS = last_names(Sort.EXPORT)
# Those that return something callable.
MAKES_CALLABLE = ENTRIES | last_names(Sort.LOAD_PACKAGE) | {"module"}
_PLACES = frozenset(places(*COMPILING))
_WRITTEN_ANEW = frozenset(places(Sort.COMPILE, Sort.EXPORT, Sort.TRACE))
# Names with many other uses: they count only with the name of their module; `export` also as an imported name.
_COMMON = frozenset({"compile", "export", "_export", "optimize"})
_IMPORTED = frozenset({"export", "export.export"})


def entries(text: str) -> int:
    """How often a program's `text` mentions an entry point of the compiler. Raises SyntaxError if it is not Python."""
    return entries_in(ast.parse(text))


def entries_in(tree: ast.AST) -> int:
    """Like `entries`, for a syntax `tree`."""
    names = (dotted(node) for node in ast.walk(tree) if isinstance(node, (ast.Attribute, ast.Name)))
    return sum(1 for name in names if name and _last(name) in ENTRIES and (name.startswith(("torch", "functorch")) or "." not in name))


def is_compiler(node: ast.expr) -> bool:
    """Whether the expression `node` is an entry point that compiles or traces its argument."""
    name = dotted(node) or ""
    return name in _PLACES or name in _IMPORTED or _last(name) in ENTRIES - _COMMON


def compiles_or_exports(node: ast.expr) -> bool:
    """Whether the expression `node` is `torch.compile` or an exporter, by its full name."""
    return dotted(node) in _WRITTEN_ANEW


def _last(name: str) -> str:
    return name.rpartition(".")[2]
