"""Rewrites expressions in a text by their positions, so that everything around them stays as written."""

from __future__ import annotations

import ast
import copy
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from itertools import accumulate

from bot.reduce.source.text.blocks import FUNCTIONS, Function
from bot.reduce.source.text.normal_form import MARK, legal, start_line
from bot.reduce.source.text.repair import has_mark, replaced

Rewrite = Callable[[str], Iterator[str]]
_ATOMS = (ast.Name, ast.Attribute, ast.Call, ast.Subscript, ast.Constant, ast.List, ast.Dict, ast.Set, ast.ListComp)


def spliced(text: str, changes: Iterable[tuple[ast.expr, str]]) -> str:
    """The `text` with each expression in `changes` (a node of its own tree) replaced by code; expressions inside a replaced one are
    skipped."""
    lines = text.split("\n")
    starts = list(accumulate((len(line) + 1 for line in lines), initial=0))

    def offset(line: int, column: int) -> int:
        # columns count UTF-8 bytes
        return starts[line - 1] + len(lines[line - 1].encode()[:column].decode())

    spans = sorted(
        ((offset(n.lineno, n.col_offset), offset(n.end_lineno or n.lineno, n.end_col_offset or 0), code) for n, code in changes),
        key=lambda s: (s[0], -s[1]),
    )
    out: list[str] = []
    at = 0
    for begin, end, code in spans:
        if begin >= at:
            out += [text[at:begin], code]
            at = end
    return "".join(out) + text[at:]


def both(text: str, statements: Mapping[ast.stmt, str | None], expressions: Iterable[tuple[ast.expr, str]]) -> str:
    """The `text` with `statements` and `expressions` replaced; expressions inside a replaced statement are skipped."""
    kept = [
        (node, code)
        for node, code in expressions
        # one line stays one line: the code of an expression has no line breaks
        if "\n" not in code and not any(s.lineno <= node.lineno and (node.end_lineno or 0) <= (s.end_lineno or 0) for s in statements)
    ]
    spread = spliced(text, kept)
    if spread.count("\n") != text.count("\n") or not legal(spread):
        return text
    return replaced(spread, statements)


def code(node: ast.AST, names: Mapping[str, str] | None = None) -> str:
    """The code of `node` on one line, with the variables in `names` replaced by code."""
    if not names:
        return ast.unparse(node)
    return ast.unparse(_Substitution(names).visit(copy.deepcopy(node)))


def code_with(node: ast.AST, part: ast.expr, other: ast.expr) -> str:
    """The code of `node` with the expression `part` inside it replaced by `other`."""
    return ast.unparse(copy.deepcopy(node, {id(part): other}))


class _Substitution(ast.NodeTransformer):
    def __init__(self, names: Mapping[str, str]) -> None:
        self._values = {name: ast.parse(value, mode="eval").body for name, value in names.items()}

    def visit_Name(self, node: ast.Name) -> ast.expr:
        if node.id not in self._values:
            return node
        value = copy.deepcopy(self._values[node.id])
        if isinstance(node.ctx, ast.Store) and isinstance(value, (ast.Name, ast.Attribute)):
            value.ctx = ast.Store()
        return value


def wrapped(node: ast.expr) -> str:
    """The code of an expression (`node`), in parentheses if they may be needed."""
    return code(node) if isinstance(node, _ATOMS) else f"({code(node)})"


def calls(tree: ast.AST, name: str) -> list[ast.Call]:
    """Calls in `tree` of a function or class by its plain `name`."""
    return [n for n in ast.walk(tree) if isinstance(n, ast.Call) and isinstance(n.func, ast.Name) and n.func.id == name]


def scopes(tree: ast.Module) -> Iterator[ast.Module | Function]:
    """The module `tree` and every function in it."""
    yield tree
    yield from (n for n in ast.walk(tree) if isinstance(n, FUNCTIONS))


def defaults(function: Function) -> dict[str, ast.expr]:
    """The default values of the parameters of `function` that have one."""
    a = function.args
    out = {p.arg: d for p, d in zip(reversed([*a.posonlyargs, *a.args]), reversed(a.defaults), strict=False)}
    return out | {p.arg: d for p, d in zip(a.kwonlyargs, a.kw_defaults, strict=True) if d is not None}


def bound_arguments(function: Function, call: ast.Call, *, skip: int = 0) -> dict[str, ast.expr] | None:
    """What a `call` passes for each parameter of `function`, defaults included, without the first `skip` (`self`); None for a star or a
    gap."""
    a = function.args
    if a.vararg or a.kwarg or any(isinstance(x, ast.Starred) for x in call.args) or any(k.arg is None for k in call.keywords):
        return None
    out = defaults(function)
    names = [p.arg for p in (*a.posonlyargs, *a.args)[skip:]]
    if len(call.args) > len(names):
        return None
    out.update(zip(names, call.args, strict=False))
    out.update({k.arg: k.value for k in call.keywords if k.arg is not None})
    wanted = [*names, *(p.arg for p in a.kwonlyargs)]
    return {n: out[n] for n in wanted} if all(n in out for n in wanted) else None


def inner_blocks(scope: ast.Module | Function) -> Iterator[list[ast.stmt]]:
    """The statements of `scope` itself, then those of its `with`, `if` and `for` statements."""
    yield scope.body
    yield from (node.body for node in ast.walk(scope) if isinstance(node, (ast.With, ast.If, ast.For)))


def scoped(tree: ast.Module) -> Iterator[tuple[ast.Module | Function, ast.stmt]]:
    """The statements of the `inner_blocks` of the module `tree` and of every function in it, each with its scope."""
    yield from ((scope, s) for scope in scopes(tree) for block in inner_blocks(scope) for s in block)


def own_text(text: str, node: ast.stmt) -> str:
    """The part of `text` that is the statement `node`, without its indentation, including marks."""
    lines = text.split("\n")[start_line(node) - 1 : node.end_lineno]
    indent = " " * node.col_offset
    if all(line.startswith(indent) or not line for line in lines):
        return "\n".join(line[node.col_offset :] for line in lines)
    return ast.unparse(node)


def mark_of(text: str, node: ast.stmt) -> str:
    """What to append to the code that replaces the statement `node` of `text`, so that a mark on it stays."""
    return f"  {MARK}" if has_mark(text, node) else ""


def pairs(statement: ast.stmt) -> list[tuple[ast.expr, ast.expr]]:
    """The targets of an assignment (`statement`) with their values, `a, b = x, y` split up; empty for anything less simple."""
    if not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
        return []
    target, value = statement.targets[0], statement.value
    if not isinstance(target, (ast.Tuple, ast.List)):
        return [(target, value)]
    if not isinstance(value, (ast.Tuple, ast.List)) or len(value.elts) != len(target.elts):
        return []
    starred = any(isinstance(e, ast.Starred) for e in (*target.elts, *value.elts))
    return [] if starred else list(zip(target.elts, value.elts, strict=True))


def without(statement: ast.stmt, gone: Collection[ast.expr]) -> str | None:
    """The code of such a `statement` without the targets in `gone`; None if none is left."""
    kept = [(t, v) for t, v in pairs(statement) if t not in gone]
    return f"{', '.join(code(t) for t, _ in kept)} = {', '.join(code(v) for _, v in kept)}" if kept else None
