"""Which names a statement binds and which it uses, by the compiler's own symbol tables."""

from __future__ import annotations

import ast
import builtins
import symtable
from dataclasses import dataclass

BUILTINS = frozenset(dir(builtins)) | {"__name__", "__file__", "__doc__", "__builtins__"}


@dataclass(frozen=True)
class Names:
    """Names in the scope a statement stands in: those it binds, and those it reads at once or when its functions run."""

    binds: frozenset[str]
    uses: frozenset[str]


def names_of(node: ast.stmt) -> Names:
    """Names of one statement, taken as if it stood at the top of a module. Builtins are left out."""
    module = ast.Module(body=[_standing_alone(node)], type_ignores=[])
    try:
        table = symtable.symtable(ast.unparse(ast.fix_missing_locations(module)), "<statement>", "exec")
    except SyntaxError:  # `await` or `break` outside its place: fall back on plain reading
        return _plainly(node)
    binds: set[str] = set()
    uses: set[str] = set()
    _collect(table, True, binds, uses)
    if any(isinstance(n, ast.ImportFrom) and n.names[0].name == "*" for n in ast.walk(node)):
        binds.add("*")
    return Names(frozenset(binds), frozenset(uses - BUILTINS))


def root(node: ast.expr) -> str | None:
    """The name at the start of `a.b[c](d).e`, if it is a name."""
    while True:
        if isinstance(node, (ast.Attribute, ast.Subscript, ast.Starred)):
            node = node.value
        elif isinstance(node, ast.Call):
            node = node.func
        else:
            return node.id if isinstance(node, ast.Name) else None


def dotted(node: ast.expr) -> str | None:
    """`a.b.c` as text, or None for anything else."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if not isinstance(node, ast.Name):
        return None
    return ".".join([node.id, *reversed(parts)])


def _collect(table: symtable.SymbolTable, top: bool, binds: set[str], uses: set[str]) -> None:
    for symbol in table.get_symbols():
        name = symbol.get_name()
        if top:
            if symbol.is_assigned() or symbol.is_imported():
                binds.add(name)
            if symbol.is_referenced():
                uses.add(name)
        elif symbol.is_global():
            if symbol.is_assigned():
                binds.add(name)
            if symbol.is_referenced():
                uses.add(name)
    for child in table.get_children():
        _collect(child, False, binds, uses)


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
            binds.add((inner.asname or inner.name).split(".")[0])
    return Names(frozenset(binds), frozenset(uses - BUILTINS))
