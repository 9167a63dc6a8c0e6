"""Deletes the values in a script's `forward` after their last use, as a compiled program frees them.

A rendered `forward` gives each value its own name, so eager would hold all of them until it returns. The text is not changed: the
deletions are inserted into its syntax tree, without lines of their own, so tracebacks match the text. Only for eager runs: to Dynamo a
deletion is one more use, and a value that is yet to be deleted at a graph break becomes an output.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Sequence

# A `forward` with up to this many statements is run unchanged.
SHORT = 20
# Code that mentions one of these may look at any local.
_LOOKS = frozenset({"locals", "vars", "dir", "eval", "exec", "sys", "inspect"})
_SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


def shortened(text: str, on_delete: str | None = None) -> str | ast.Module:
    """What to compile in place of a script (`text`) for an eager run: its tree with deletions, or the text if they do not pay off.

    `on_delete` is the name of a function that is called with each name and value before the deletion, including the script's own
    deletions.
    """
    if "class Repro" not in text:
        return text
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return text  # compiling it will report what is wrong
    function = forward(tree)
    if function is None:
        return text
    statements = [node for node in ast.walk(function) if isinstance(node, ast.stmt)]
    told = on_delete is not None and any(isinstance(node, ast.Delete) for node in statements)
    if told:
        _tell(function.body, on_delete)
    if len(statements) > SHORT:
        shorten(function, on_delete)
    return tree if told or len(statements) > SHORT else text


def forward(tree: ast.Module) -> ast.FunctionDef | None:
    """The method `forward` of the class `Repro` in a `tree`."""
    for outer in tree.body:
        if isinstance(outer, ast.ClassDef) and outer.name == "Repro":
            for inner in outer.body:
                if isinstance(inner, ast.FunctionDef) and inner.name == "forward":
                    return inner
    return None


def shorten(function: ast.FunctionDef, on_delete: str | None = None) -> None:
    """Delete each local of a `function` after the statement that mentions it last; for `on_delete` see `shortened`.

    This covers only locals that are certainly bound there and certainly not used again: those that plain assignments create, one after the
    other, and that no inner function, comprehension or `del` mentions. All others are left.
    """
    mentions = _Mentions()
    mentions.block(function.body)
    if not _LOOKS & mentions.ends.keys():
        ends: dict[ast.stmt, list[str]] = defaultdict(list)
        for name, statement in mentions.ends.items():
            if name in mentions.bound - mentions.left and not isinstance(statement, (ast.Return, ast.Raise)):
                ends[statement].append(name)
        _delete(function.body, ends, on_delete)


class _Mentions:
    """The statement that mentions each name of a function last, and which of the names may be deleted."""

    def __init__(self) -> None:
        self.ends: dict[str, ast.stmt] = {}
        self.bound: set[str] = set()  # by statements that run one after the other
        self.left: set[str] = set()  # bound or used in another way

    def block(self, statements: Sequence[ast.stmt]) -> None:
        for statement in statements:
            targets = _targets(statement)
            self.bound.update(target.id for target in targets)
            inside = _inside(statement)
            parts: Sequence[ast.AST] = statement.items if inside and isinstance(statement, ast.With) else [statement]
            for node in (node for part in parts for node in ast.walk(part)):
                self._mention(node, statement, node in targets)
            self.block(inside)

    def _mention(self, node: ast.AST, statement: ast.stmt, target: bool) -> None:
        if isinstance(node, ast.Name):
            self.ends[node.id] = statement
            if not isinstance(node.ctx, ast.Load) and not target:
                self.left.add(node.id)
        elif isinstance(node, (ast.Global, ast.Nonlocal)):
            self.left.update(node.names)
        elif isinstance(node, _SCOPES):
            self.left.update(inner.id for inner in ast.walk(node) if isinstance(inner, ast.Name))
        # a function, an import, an exception, a pattern
        name = getattr(node, "name", None)
        if isinstance(name, str):
            self.left.add(name)


def assigned(statement: ast.stmt) -> str | None:
    """The first name that an assignment (`statement`) binds; None for any other statement."""
    return statement.targets[0].id if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name) else None


def _targets(statement: ast.stmt) -> list[ast.Name]:
    """The names that a plain assignment binds."""
    if isinstance(statement, ast.Assign):
        found = [item for target in statement.targets for item in (target.elts if isinstance(target, ast.Tuple) else [target])]
        return [target for target in found if isinstance(target, ast.Name)]
    return [statement.target] if isinstance(statement, ast.AugAssign) and isinstance(statement.target, ast.Name) else []


def _inside(statement: ast.stmt) -> list[ast.stmt]:
    """The body of a `with` block whose contexts are torch's: these let every exception through, so all of the body runs."""
    if isinstance(statement, ast.With) and all(ast.unparse(item.context_expr).startswith("torch.") for item in statement.items):
        return statement.body
    return []


def _tell(block: list[ast.stmt], on_delete: str | None) -> None:
    """Call `on_delete` before each deletion of local variables in the script itself."""
    longer: list[ast.stmt] = []
    for statement in block:
        _tell(_inside(statement), on_delete)
        names = [target.id for target in statement.targets if isinstance(target, ast.Name)] if isinstance(statement, ast.Delete) else []
        longer += [*_placed("\n".join(f"{on_delete}({name!r}, {name})" for name in names), statement), statement]
    block[:] = longer


def _placed(text: str, at: ast.stmt) -> list[ast.stmt]:
    """The statements of `text`, at the position of another statement."""
    added = ast.parse(text).body
    for node in (node for statement in added for node in ast.walk(statement)):
        ast.copy_location(node, at)
    return added


def _delete(block: list[ast.stmt], ends: dict[ast.stmt, list[str]], on_delete: str | None) -> None:
    longer: list[ast.stmt] = []
    for statement in block:
        longer.append(statement)
        _delete(_inside(statement), ends, on_delete)
        for name in ends.get(statement, ()):
            longer += _placed(f"{on_delete}({name!r}, {name})\ndel {name}" if on_delete else f"del {name}", statement)
    block[:] = longer
