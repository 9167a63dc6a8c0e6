"""Rewritings of values: sizes, inputs, variables that one place reads. Each gives whole texts to ask."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator, Sequence

from bot.reduce.source.layout import MARK
from bot.reduce.source.names import dotted
from bot.reduce.source.prune import has_mark, replaced, unused
from bot.reduce.source.splice import FUNCTIONS, both, code, inner_blocks, loads, scopes, spliced, stores, wrapped

Rewrite = Callable[[str], Iterator[str]]
_WIDTH = 100


def tuples(text: str) -> Iterator[str]:
    """`a, b = x, y` becomes `a = x` where nobody reads `b`."""
    tree = ast.parse(text)
    for scope in scopes(tree):
        for statement in (s for b in inner_blocks(scope) for s in b):
            if not (
                isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Tuple) and isinstance(statement.value, ast.Tuple)
            ):
                continue
            pairs = list(zip(statement.targets[0].elts, statement.value.elts, strict=False))
            kept = [(t, v) for t, v in pairs if not (isinstance(t, ast.Name) and not loads(scope, t.id)) and code(t) != code(v)]
            if len(kept) < len(pairs):
                yield replaced(text, {statement: "\n".join(f"{code(t)} = {code(v)}" for t, v in kept) or None})


def used_once(text: str) -> Iterator[str]:
    """A variable that is read once is written out where it is read; one that only renames another gives way to it."""
    tree = ast.parse(text)
    lines = text.split("\n")
    for scope in scopes(tree):
        captured = {
            n.id
            for f in ast.walk(scope)
            if f is not scope and isinstance(f, (*FUNCTIONS, ast.Lambda))
            for n in ast.walk(f)
            if isinstance(n, ast.Name)
        }
        for block in inner_blocks(scope):
            for position, statement in enumerate(block):
                if not (isinstance(statement, ast.Assign) and len(statement.targets) == 1 and isinstance(statement.targets[0], ast.Name)):
                    continue
                name = statement.targets[0].id
                reads, rebound = _reads_of(name, block[position + 1 :])
                renames = isinstance(statement.value, (ast.Name, ast.Constant))
                if reads is None or not reads or (len(reads) > 1 and not renames) or name in captured or has_mark(text, statement):
                    continue
                inside = sum(len(loads(s, name)) for s in block[position + 1 :])
                if not rebound and block is not scope.body and inside != len(loads(scope, name)) - len(loads(statement, name)):
                    continue
                value = wrapped(statement.value)
                if not renames and any(len(lines[n.lineno - 1].replace("  " + MARK, "")) + len(value) - len(name) > _WIDTH for n in reads):
                    continue
                yield both(text, {statement: None}, [(n, value) for n in reads])


def _reads_of(name: str, later: Sequence[ast.stmt]) -> tuple[list[ast.Name] | None, bool]:
    """Where a variable's value is read in the statements behind its assignment, and whether it is bound anew; None if unclear."""
    out: list[ast.Name] = []
    for statement in later:
        out += loads(statement, name)
        if stores(statement, name):
            plain = isinstance(statement, ast.Assign)
            return (out if plain else None), True
    return out, False


def unread(text: str) -> Iterator[str]:
    """A value that nobody reads needs no name."""
    tree = ast.parse(text)
    names = {name for _, name in unused(text)}
    for scope in scopes(tree):
        for statement in (s for b in inner_blocks(scope) for s in b):
            target = statement.targets[0] if isinstance(statement, ast.Assign) and len(statement.targets) == 1 else None
            if (
                isinstance(statement, ast.Assign)
                and isinstance(target, ast.Name)
                and target.id in names
                and not isinstance(statement.value, ast.Constant)
            ):
                mark = f"  {MARK}" if has_mark(text, statement) else ""
                yield replaced(text, {statement: code(statement.value) + mark})


def numbers(text: str) -> Iterator[str]:
    """Sizes become small: all numbers above 2 at once, then each number everywhere, then in one place."""
    tree = ast.parse(text)
    found = [n for n in ast.walk(tree) if isinstance(n, ast.Constant) and type(n.value) is int and n.value > 1 and n not in _orders(tree)]
    sized = [(n, n.value) for n in found if isinstance(n.value, int)]
    for small in (2, 1):
        large = [n for n, value in sized if value > small]
        if large:
            yield spliced(text, [(n, str(small)) for n in large])
    values = sorted({value for _, value in sized}, reverse=True)
    if len(values) > 1:
        for value in values:
            for small in (1, 2):
                if value > small:
                    yield spliced(text, [(n, str(small)) for n, v in sized if v == value])
    if len(sized) > len(values):
        for node, value in sized:
            for small in (1, 2):
                if value > small:
                    yield spliced(text, [(node, str(small))])


def _orders(tree: ast.AST) -> set[ast.AST]:
    """Numbers that name dimensions: arguments of permute, transpose and the like."""
    return {
        n
        for call in ast.walk(tree)
        if isinstance(call, ast.Call)
        and isinstance(call.func, ast.Attribute)
        and call.func.attr in ("permute", "transpose", "movedim", "unsqueeze", "squeeze", "seed", "manual_seed")
        for a in call.args
        for n in ast.walk(a)
    }


def inputs(text: str) -> Iterator[str]:
    """An input is made in the plainest way."""
    tree = ast.parse(text)
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and (dotted(node.func) or "") in (
            "torch.randn",
            "torch.rand",
            "torch.randint",
            "torch.empty",
            "torch.tensor",
        ):
            for plain in ("torch.ones(())", "torch.ones(2)", "torch.ones(2, 2)", "torch.randn(2)", "torch.randn(2, 2)"):
                if len(plain) < len(code(node)):
                    yield spliced(text, [(node, plain)])


ALL: tuple[tuple[str, Rewrite], ...] = (
    ("tuple", tuples),
    ("number", numbers),
    ("input", inputs),
    ("used once", used_once),
    ("unread", unread),
)
