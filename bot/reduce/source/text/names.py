"""Which names a statement binds and which it uses, according to Python's own symbol tables."""

from __future__ import annotations

import ast
import builtins
import symtable
from collections.abc import Callable
from dataclasses import dataclass

BUILTINS = frozenset(dir(builtins)) | {"__name__", "__file__", "__doc__", "__builtins__"}


@dataclass(frozen=True)
class Names:
    """Names in the scope of a statement: those it binds, and those it reads at once or when its functions run."""

    binds: frozenset[str]
    uses: frozenset[str]


def names_of(node: ast.stmt) -> Names:
    """Names of one statement (`node`), as if it were at the top level of a module. Builtins are left out."""
    module = ast.Module(body=[_standing_alone(node)], type_ignores=[])
    try:
        binds, uses = global_names(ast.unparse(ast.fix_missing_locations(module)))
    except SyntaxError:  # `await` or `break` in an illegal place: read the tree instead
        return _plainly(node)
    if any(isinstance(n, ast.ImportFrom) and n.names[0].name == "*" for n in ast.walk(node)):
        binds.add("*")
    return Names(frozenset(binds), frozenset(uses - BUILTINS))


def global_names(text: str) -> tuple[set[str], set[str]]:
    """Global names that a program binds and those that it reads, anywhere in its `text`. Raises SyntaxError if it is not Python."""
    binds: set[str] = set()
    uses: set[str] = set()
    todo = [(symtable.symtable(text, "<program>", "exec"), True)]
    while todo:
        table, top = todo.pop()
        for symbol in table.get_symbols():
            if top or symbol.is_global():
                binds |= {symbol.get_name()} if symbol.is_assigned() or symbol.is_imported() else set()
                uses |= {symbol.get_name()} if symbol.is_referenced() else set()
        todo += [(child, False) for child in table.get_children()]
    return binds, uses


def bound_by(alias: ast.alias) -> str:
    """The name that one part of an import (`alias`) binds: `a` for `import a.b`."""
    return (alias.asname or alias.name).split(".")[0]


def trimmed(node: ast.Import | ast.ImportFrom, wanted: Callable[[str], bool]) -> str | None:
    """The code of an import (`node`) with only the names that are `wanted`; None if there are none."""
    kept = [a for a in node.names if wanted(bound_by(a))]
    left = ast.Import(kept) if isinstance(node, ast.Import) else ast.ImportFrom(node.module, kept, node.level)
    return ast.unparse(left) if kept else None


def root(node: ast.expr) -> str | None:
    """The name at the start of an expression (`node`): `a` for `a.b[c](d).e`; None if it does not start with a name."""
    while True:
        if isinstance(node, (ast.Attribute, ast.Subscript, ast.Starred)):
            node = node.value
        elif isinstance(node, ast.Call):
            node = node.func
        else:
            return node.id if isinstance(node, ast.Name) else None


def dotted(node: ast.expr) -> str | None:
    """`a.b.c` as text if `node` is such an expression, else None."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name):
        return None
    return ".".join([node.id, *reversed(parts)])


def last_name(node: ast.expr) -> str:
    """The last name of an expression (`node`): `c` for `a.b.c`; empty if it does not end in one."""
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def _standing_alone(node: ast.stmt) -> ast.stmt:
    if isinstance(node, ast.Return):
        return ast.Expr(node.value if node.value is not None else ast.Constant(None))
    if isinstance(node, (ast.Nonlocal, ast.Break, ast.Continue)):
        return ast.Pass()
    return node


def _plainly(node: ast.stmt) -> Names:
    binds: set[str] = set()
    uses: set[str] = set()
    for inner in ast.walk(node):
        if isinstance(inner, ast.Name):
            (uses if isinstance(inner.ctx, ast.Load) else binds).add(inner.id)
        elif isinstance(inner, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            binds.add(inner.name)
        elif isinstance(inner, ast.alias):
            binds.add(bound_by(inner))
    return Names(frozenset(binds), frozenset(uses - BUILTINS))
