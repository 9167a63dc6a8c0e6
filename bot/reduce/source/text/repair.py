"""Removes statements from a text in normal form, and what has to go with them.

`repaired` deletes what cannot run any more because a name is gone; `collected` deletes what is not used any more. Both read the text with
Python's own `ast` and `symtable`, and edit whole lines.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache

from bot.reduce.source.text.blocks import FUNCTIONS, blocks, in_order, own_nodes, own_now
from bot.reduce.source.text.names import BUILTINS, dotted, global_names, root, trimmed
from bot.reduce.source.text.normal_form import MARK, end_line, start_line
from bot.reduce.source.text.variables import binds, imported_names, parameters

_ROUNDS = 60


def replaced(text: str, changes: Mapping[ast.stmt, str | None]) -> str:
    """The `text` with each statement in `changes` replaced by new code (written without indentation), or deleted if it is None.

    A block that loses all its statements becomes `pass`. The statements are nodes of the text's own tree.
    """
    lines: list[str | None] = list(text.split("\n"))
    whole = _outermost(changes)
    for node in whole:
        first, last = start_line(node) - 1, end_line(node) - 1
        code = changes[node]
        indent = " " * node.col_offset
        lines[first] = None if code is None else "\n".join(indent + c if c else c for c in code.split("\n"))
        for i in range(first + 1, last + 1):
            lines[i] = None
    for line, column in _emptied(text, {n for n in whole if changes[n] is None}):
        lines[line] = " " * column + "pass"
    return "\n".join(line for line in lines if line is not None)


def _outermost(nodes: Collection[ast.stmt]) -> list[ast.stmt]:
    """The statements that are not inside another one of them."""
    out: list[ast.stmt] = []
    for node in sorted(nodes, key=lambda n: (start_line(n), -end_line(n), n.col_offset)):
        if not out or not _holds(out[-1], node):
            out.append(node)
    return out


def _emptied(text: str, gone: Collection[ast.stmt]) -> Iterator[tuple[int, int]]:
    """(line index, indentation) of a `pass` for each block that loses all its statements."""
    if not gone:
        return
    places = {(start_line(n), n.col_offset) for n in gone}
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Module) or (isinstance(node, ast.stmt) and (start_line(node), node.col_offset) in places):
            continue
        for block in blocks(node):
            if all((start_line(s), s.col_offset) in places for s in block):
                yield start_line(block[0]) - 1, block[0].col_offset


def _holds(outer: ast.stmt, inner: ast.stmt) -> bool:
    return start_line(outer) <= start_line(inner) and end_line(inner) <= end_line(outer) and outer.col_offset < inner.col_offset


def has_mark(text: str, node: ast.stmt) -> bool:
    """Whether a statement of `text` (`node`), or one inside it, is marked."""
    return any(start_line(node) <= line <= end_line(node) for line in _marked_lines(text))


@lru_cache(maxsize=4)  # called for each statement of a text
def _marked_lines(text: str) -> tuple[int, ...]:
    return tuple(number for number, line in enumerate(text.split("\n"), 1) if MARK in line) if MARK in text else ()


# --- names that are missing


@dataclass(frozen=True)
class Missing:
    """What a text reads that nothing in it defines."""

    names: frozenset[str]  # global names
    attributes: frozenset[str]  # `self.x` that no statement sets


def missing(text: str) -> Missing:
    """Global names that `text` reads but never binds, and attributes of `self` that it reads but never sets."""
    bound, uses = global_names(text)
    tree = ast.parse(text)
    starred = any(isinstance(n, ast.ImportFrom) and n.names[0].name == "*" for n in ast.walk(tree))
    loads = [n for n in ast.walk(tree) if isinstance(n, ast.Attribute) and isinstance(n.ctx, ast.Load)]
    of_self = {n.attr for n in loads if isinstance(n.value, ast.Name) and n.value.id == "self"}
    return Missing(frozenset() if starred else frozenset(uses - bound - BUILTINS), frozenset(of_self - _set_attributes(tree)))


def _set_attributes(tree: ast.AST) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            found.add(node.attr)
        elif isinstance(node, ast.ClassDef):
            for inner in node.body:
                if isinstance(inner, (*FUNCTIONS, ast.ClassDef)):
                    found.add(inner.name)
                found |= {n.id for n in ast.walk(inner) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.isidentifier():
            found.add(node.value)  # setattr, register_buffer
    return found


def repaired(text: str, before: Missing) -> str | None:
    """The `text` without the statements that read what is gone; None if a marked statement or too much would have to go.

    `before` is what was already missing in the text before the edit (names from star imports, inherited attributes).
    """
    for _ in range(_ROUNDS):
        try:
            now = missing(text)
        except SyntaxError:
            return None
        names, attributes = now.names - before.names, now.attributes - before.attributes
        tree = ast.parse(text)
        broken = [n for n in ast.walk(tree) if isinstance(n, ast.stmt) and _reads(n, names, attributes)] if names or attributes else []
        broken += _early(tree)
        if not broken:
            return text if not names else None
        if any(has_mark(text, s) for s in broken):
            return None
        text = replaced(text, dict.fromkeys(broken))
    return None


def _reads(node: ast.stmt, names: Collection[str], attributes: Collection[str]) -> bool:
    return any(
        (isinstance(n, ast.Name) and n.id in names and isinstance(n.ctx, (ast.Load, ast.Del)))
        or (isinstance(n, ast.Attribute) and n.attr in attributes and isinstance(n.ctx, ast.Load) and root(n) == "self")
        for n in own_nodes(node)
    )


def _early(tree: ast.Module) -> list[ast.stmt]:
    """Statements that read a name of their own scope before anything in the scope has bound it."""
    found: list[ast.stmt] = []
    for scope in (tree, *(n for n in ast.walk(tree) if isinstance(n, FUNCTIONS))):
        bound = parameters(scope)
        order = [(s, binds(s)) for s in in_order(scope.body)]
        later = {name for _, names in order for name in names} - BUILTINS
        for statement, own_names in order:
            own = list(own_now(statement))
            # names bound by a comprehension or a walrus in the statement itself count as bound
            inside = {n.id for n in own if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store) and not _plain_target(statement, n)}
            reads = {n.id for n in own if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)}
            if isinstance(statement, ast.AugAssign) and isinstance(statement.target, ast.Name):
                reads.add(statement.target.id)
            if (reads - bound - inside) & later:
                found.append(statement)
            bound |= own_names
    return found


def _plain_target(statement: ast.stmt, name: ast.Name) -> bool:
    targets = statement.targets if isinstance(statement, ast.Assign) else [getattr(statement, "target", None)]
    return any(t is not None and name in list(ast.walk(t)) for t in targets) and not isinstance(statement, (ast.For, ast.AsyncFor))


# --- what is no longer used


def unused(text: str) -> frozenset[tuple[str, str]]:
    """(scope, name) of everything that `text` binds and never reads; attributes of `self` have the scope "self", methods "method"."""
    return frozenset(key for key, _ in _unused(text, ast.parse(text)))


def _unused(text: str, tree: ast.Module) -> Iterator[tuple[tuple[str, str], ast.stmt]]:
    _, uses = global_names(text)
    for statement in in_order(tree.body):
        for name in binds(statement) - uses:
            yield ("", name), statement
    for function in (n for n in ast.walk(tree) if isinstance(n, FUNCTIONS)):
        loads = {n.id for n in ast.walk(function) if isinstance(n, ast.Name) and isinstance(n.ctx, (ast.Load, ast.Del))}
        declared = parameters(function)
        for statement in in_order(function.body):
            for name in binds(statement) - loads - declared:
                yield (function.name, name), statement
    attributes = {n.attr for n in ast.walk(tree) if isinstance(n, ast.Attribute) and isinstance(n.ctx, ast.Load)}
    attributes |= {n.target.attr for n in ast.walk(tree) if isinstance(n, ast.AugAssign) and isinstance(n.target, ast.Attribute)}
    words = {n.value for n in ast.walk(tree) if isinstance(n, ast.Constant) and isinstance(n.value, str)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Attribute):
            target = node.targets[0]
            if root(target) == "self" and target.attr not in attributes | words:
                yield ("self", target.attr), node
        elif isinstance(node, ast.ClassDef):
            for inner in node.body:
                if isinstance(inner, FUNCTIONS) and inner.name not in attributes | words | {"forward"} and not inner.name.startswith("__"):
                    yield ("method", inner.name), inner
                elif isinstance(inner, ast.AnnAssign) and isinstance(inner.target, ast.Name) and inner.target.id not in attributes | words:
                    yield ("method", inner.target.id), inner


def collected(text: str, before: frozenset[tuple[str, str]]) -> str:
    """The `text` without what it binds and never reads, unless that was already unread before the edit (`before`)."""
    for _ in range(_ROUNDS):
        tree = ast.parse(text)
        keys: defaultdict[ast.stmt, set[tuple[str, str]]] = defaultdict(set)
        for key, statement in _unused(text, tree):
            keys[statement].add(key)
        changes: dict[ast.stmt, str | None] = {}
        for statement, found in keys.items():
            if not found <= before:
                _collect(text, statement, {name for _, name in found - before}, changes)
        changes.update(_hollow(text, tree))
        if not changes:
            return text
        text = replaced(text, changes)
    return text


def _collect(text: str, statement: ast.stmt, names: set[str], changes: dict[ast.stmt, str | None]) -> None:
    if isinstance(statement, (ast.Import, ast.ImportFrom)):
        changes[statement] = trimmed(statement, lambda name: name not in names)
    elif isinstance(statement, (*FUNCTIONS, ast.ClassDef)):
        if not has_mark(text, statement):
            changes[statement] = None
    elif isinstance(statement, (ast.Assign, ast.AnnAssign)):
        if has_mark(text, statement) and statement.value is not None:
            written = ast.get_source_segment(text, statement.value)
            changes[statement] = (written if written and "\n" not in written else ast.unparse(statement.value)) + f"  {MARK}"
        elif binds(statement) <= names:
            # if no frame of the failure is known, a call of the user's own code may be the one that fails
            value = statement.value
            changes[statement] = ast.unparse(value) if value is not None and MARK not in text and _calls_own(text, value) else None


def _calls_own(text: str, value: ast.expr) -> bool:
    """Whether an expression calls anything but an imported function, a class of the text or a builtin."""
    tree = ast.parse(text)
    harmless = {n.name for n in tree.body if isinstance(n, ast.ClassDef)} | imported_names(tree) | BUILTINS
    return any(dotted(c.func) is None or root(c.func) not in harmless for c in ast.walk(value) if isinstance(c, ast.Call))


def _hollow(text: str, tree: ast.Module) -> dict[ast.stmt, str | None]:
    """Leftovers: `pass` next to other statements, compound statements that do nothing, code after a return."""
    out: dict[ast.stmt, str | None] = {}
    for node in ast.walk(tree):
        for block in blocks(node):
            if len(block) > 1:
                out.update(dict.fromkeys([s for s in block if isinstance(s, ast.Pass)]))
            for i, statement in enumerate(block[:-1]):
                if isinstance(statement, (ast.Return, ast.Raise, ast.Break, ast.Continue)):
                    out.update(dict.fromkeys(block[i + 1 :]))
                    break
        if isinstance(node, (ast.If, ast.For, ast.While, ast.With, ast.Try)) and not has_mark(text, node):
            everything = [s for block in blocks(node) for s in block] + [s for h in getattr(node, "handlers", []) for s in h.body]
            if all(isinstance(s, ast.Pass) for s in everything):
                out[node] = None
    return out
