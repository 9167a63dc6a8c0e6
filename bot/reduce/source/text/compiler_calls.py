"""Which expressions of a program speak of the compiler, by the names of its entry points."""

from __future__ import annotations

import ast

from bot.inside.entry_points import AT_ONCE, COMPILING, Sort, last_names, places
from bot.reduce.source.text.names import dotted

# Last names of calls that hand something to the compiler.
ENTRIES = last_names(*COMPILING)
# Of those that run what they are given at once.
TRACES = last_names(*AT_ONCE)
EXPORTERS = last_names(Sort.EXPORT)
# Of what returns something that can be called.
MAKES_CALLABLE = ENTRIES | last_names(Sort.LOAD_PACKAGE) | {"module"}
_PLACES = frozenset(places(*COMPILING))
_WRITTEN_ANEW = frozenset(places(Sort.COMPILE, Sort.EXPORT, Sort.TRACE))
# Words that name much else: they count with the name of their module alone, `export` as an imported one as well.
_COMMON = frozenset({"compile", "export", "_export", "optimize"})
_IMPORTED = frozenset({"export", "export.export"})


def entries(text: str) -> int:
    """How often a program's `text` mentions an entry point of the compiler. Raises SyntaxError where it is not Python."""
    return entries_in(ast.parse(text))


def entries_in(tree: ast.AST) -> int:
    """The same of a syntax `tree`."""
    names = (dotted(node) for node in ast.walk(tree) if isinstance(node, (ast.Attribute, ast.Name)))
    return sum(1 for name in names if name and _last(name) in ENTRIES and (name.startswith(("torch", "functorch")) or "." not in name))


def is_compiler(node: ast.expr) -> bool:
    """Whether the expression `node` is an entry point that compiles or traces what it is handed."""
    name = dotted(node) or ""
    return name in _PLACES or name in _IMPORTED or _last(name) in ENTRIES - _COMMON


def compiles_or_exports(node: ast.expr) -> bool:
    """Whether the expression `node` is `torch.compile` or an exporter, under its full name."""
    return dotted(node) in _WRITTEN_ANEW


def _last(name: str) -> str:
    return name.rpartition(".")[2]
