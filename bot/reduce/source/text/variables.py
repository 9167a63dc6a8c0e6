"""Where a syntax tree reads and binds variables."""

from __future__ import annotations

import ast

from bot.reduce.source.text.blocks import FUNCTIONS, in_order, own_now
from bot.reduce.source.text.names import bound_by, names_of, root


def loads(tree: ast.AST, name: str) -> list[ast.Name]:
    """The places in `tree` that read a variable called `name`."""
    return [n for n in ast.walk(tree) if isinstance(n, ast.Name) and n.id == name and isinstance(n.ctx, ast.Load)]


def stores(tree: ast.AST, name: str) -> int:
    """How often a variable called `name` is bound in `tree`, including parameters and definitions."""
    return sum(
        (isinstance(node, ast.Name) and node.id == name and not isinstance(node.ctx, ast.Load))
        or (isinstance(node, ast.arg) and node.arg == name)
        or (isinstance(node, (*FUNCTIONS, ast.ClassDef)) and node.name == name)
        or (isinstance(node, ast.alias) and bound_by(node) == name)
        for node in ast.walk(tree)
    )


def module_names(tree: ast.Module) -> set[str]:
    """The names that the statements of a module (`tree`) bind."""
    return {name for statement in tree.body for name in names_of(statement).binds}


def imported_names(tree: ast.Module) -> set[str]:
    """The names that the imports of a module (`tree`) bind."""
    return {bound_by(a) for s in tree.body if isinstance(s, (ast.Import, ast.ImportFrom)) for a in s.names}


def reads(node: ast.AST) -> set[str]:
    """Names read anywhere in `node`, and attributes read, written as `.name`; including those that `+=` changes."""
    changed = [n.target for n in ast.walk(node) if isinstance(n, ast.AugAssign)]
    read = [n for n in ast.walk(node) if n in changed or not isinstance(getattr(n, "ctx", None), ast.Store)]
    return {n.id for n in read if isinstance(n, ast.Name)} | {"." + n.attr for n in read if isinstance(n, ast.Attribute)}


def writes(node: ast.stmt) -> set[str]:
    """Names and attributes that a statement (`node`) sets, itself or in its blocks; `x` also counts for `x[i] = ...` and `x += ...`."""
    out: set[str] = set()
    for inner in ast.walk(node):
        if isinstance(inner, ast.Name) and isinstance(inner.ctx, ast.Store):
            out.add(inner.id)
        elif isinstance(inner, ast.Attribute) and isinstance(inner.ctx, ast.Store):
            out.add("." + inner.attr)
        elif isinstance(inner, ast.Subscript) and isinstance(inner.ctx, ast.Store):
            name = root(inner)
            out |= {name} if name is not None else set()
        elif isinstance(inner, (*FUNCTIONS, ast.ClassDef)):
            out.add(inner.name)
        elif isinstance(inner, ast.alias):
            out.add(bound_by(inner))
    return out


def parameters(scope: ast.AST) -> set[str]:
    """The parameters of a function (`scope`) and the names it declares global or nonlocal; empty for anything else."""
    if not isinstance(scope, FUNCTIONS):
        return set()
    a = scope.args
    extra = [x for x in (a.vararg, a.kwarg) if x is not None]
    declared = {n for s in in_order(scope.body) if isinstance(s, (ast.Global, ast.Nonlocal)) for n in s.names}
    return {p.arg for p in (*a.posonlyargs, *a.args, *a.kwonlyargs, *extra)} | declared


def binds(statement: ast.stmt) -> set[str]:
    """The names that a `statement` itself binds when it runs, without the statements inside it."""
    if isinstance(statement, (*FUNCTIONS, ast.ClassDef)):
        return {statement.name}
    out = {h.name for h in getattr(statement, "handlers", []) if h.name}
    for node in own_now(statement):
        if isinstance(node, ast.Name):
            if isinstance(node.ctx, ast.Store):
                out.add(node.id)
        elif isinstance(node, ast.alias):
            out.add(bound_by(node))
        elif isinstance(node, (ast.MatchAs, ast.MatchStar)) and node.name:
            out.add(node.name)
    return out
