"""Rewrites values: sizes, inputs, variables that only one place reads. Each pass yields whole texts to ask."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from bot.reduce.source.text.blocks import FUNCTIONS
from bot.reduce.source.text.names import dotted, trimmed
from bot.reduce.source.text.normal_form import unmarked
from bot.reduce.source.text.repair import has_mark, replaced, unused
from bot.reduce.source.text.splice import Rewrite, both, code, inner_blocks, mark_of, pairs, scoped, scopes, spliced, without, wrapped
from bot.reduce.source.text.variables import loads, stores

_WIDTH = 100
_SIZES = (("size", 1), ("numel", 0))
_TENSOR_MAKERS = ("torch.randn", "torch.rand", "torch.randint", "torch.empty", "torch.tensor")


def tuples(text: str) -> Iterator[str]:
    """`a, b = x, y` becomes `a = x` if nothing in `text` reads `b`."""
    tree = ast.parse(text)
    attributes = {n.attr for n in ast.walk(tree) if isinstance(n, ast.Attribute) and isinstance(n.ctx, ast.Load)}
    for scope, statement in scoped(tree):
        taken_apart = pairs(statement)
        gone = [
            t
            for t, v in taken_apart
            if code(t) == code(v)
            or (isinstance(t, ast.Name) and not loads(scope, t.id))
            or (isinstance(t, ast.Attribute) and t.attr not in attributes)
        ]
        if gone and len(taken_apart) > 1:
            left = without(statement, gone)
            yield replaced(text, {statement: left + mark_of(text, statement) if left else None})


def used_once(text: str) -> Iterator[str]:
    """Inlines a variable that `text` reads once; replaces one that only renames another by it."""
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
                for target, assigned in pairs(statement):
                    if not isinstance(target, ast.Name):
                        continue
                    name = target.id
                    reads, rebound = _reads_of(name, block[position + 1 :])
                    renames = isinstance(assigned, (ast.Name, ast.Constant))
                    if isinstance(assigned, ast.Constant) and block is scope.body and stores(scope, name) == 1:
                        reads = loads(scope, name)  # also what is read later
                    elif name in captured:
                        continue
                    if reads is None or not reads or (len(reads) > 1 and not renames):
                        continue
                    # a mere renaming never fails, whatever the failure says about that line
                    if has_mark(text, statement) and not renames:
                        continue
                    inside = sum(len(loads(s, name)) for s in block[position + 1 :])
                    if not rebound and block is not scope.body and inside != len(loads(scope, name)) - len(loads(statement, name)):
                        continue
                    value = wrapped(assigned)
                    widest = max(len(unmarked(lines[n.lineno - 1])) for n in reads) + len(value) - len(name)
                    if renames or widest <= _WIDTH:
                        yield both(text, {statement: without(statement, [target])}, [(n, value) for n in reads])


def _reads_of(name: str, later: Sequence[ast.stmt]) -> tuple[list[ast.Name] | None, bool]:
    """Where the statements after an assignment read the variable's value, and whether it is rebound; None if unclear."""
    out: list[ast.Name] = []
    for statement in later:
        out += loads(statement, name)
        if stores(statement, name):
            return (out if isinstance(statement, ast.Assign) else None), True
    return out, False


def unread(text: str) -> Iterator[str]:
    """Drops the name of a value that nothing in `text` reads."""
    tree = ast.parse(text)
    names = {name for _, name in unused(text)}
    for _, statement in scoped(tree):
        if isinstance(statement, ast.Assign) and not isinstance(statement.value, ast.Constant):
            target, *others = statement.targets
            if isinstance(target, ast.Name) and target.id in names and not others:
                yield replaced(text, {statement: code(statement.value) + mark_of(text, statement)})


def numbers(text: str) -> Iterator[str]:
    """Makes sizes in `text` small: all numbers above 2 at once, then each number everywhere, then in one place."""
    tree = ast.parse(text)
    no_sizes = _orders(tree) | _settings(tree)
    found = [n for n in ast.walk(tree) if isinstance(n, ast.Constant) and type(n.value) is int and n.value > 1 and n not in no_sizes]
    sized = [(n, n.value) for n in found if isinstance(n.value, int)]
    for small in (2, 1):
        large = [n for n, value in sized if value > small]
        if large:
            yield spliced(text, [(n, str(small)) for n in large])
    values = sorted({value for _, value in sized}, reverse=True)
    groups = [(value, [n for n, v in sized if v == value]) for value in values] if len(values) > 1 else []
    groups += [(value, [n]) for n, value in sized] if len(sized) > len(values) else []
    for value, nodes in groups:
        for small in (1, 2):
            if value > small:
                yield spliced(text, [(n, str(small)) for n in nodes])


def _orders(tree: ast.AST) -> set[ast.AST]:
    """Numbers that name dimensions, and seeds: arguments of permute, transpose and the like."""
    return {
        n
        for call in ast.walk(tree)
        if isinstance(call, ast.Call)
        and isinstance(call.func, ast.Attribute)
        and call.func.attr in ("permute", "transpose", "movedim", "unsqueeze", "squeeze", "seed", "manual_seed")
        for a in call.args
        for n in ast.walk(a)
    }


def _settings(tree: ast.Module) -> set[ast.AST]:
    """Numbers that PyTorch settings are set to, mainly limits: with a lower limit, more would exceed it than in the program."""
    modules = {"torch": "torch"}
    for statement in ast.walk(tree):
        if isinstance(statement, ast.Import):
            modules |= {alias.asname: alias.name for alias in statement.names if alias.asname}
        elif isinstance(statement, ast.ImportFrom) and statement.module:
            modules |= {alias.asname or alias.name: f"{statement.module}.{alias.name}" for alias in statement.names}

    def is_config(node: ast.expr) -> bool:
        root, _, rest = (dotted(node) or "").partition(".")
        path = f"{modules.get(root, root)}.{rest}".split(".")
        return path[0] == "torch" and "config" in path

    found: list[ast.AST] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and any(isinstance(target, ast.Attribute) and is_config(target) for target in node.targets):
            found.append(node.value)
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and is_config(node.func):
            found.append(node)
    return {n for value in found for n in ast.walk(value)}


def read_sizes(text: str) -> Iterator[str]:
    """Replaces a size in `text` that is read from a tensor (`x.shape[0] * x.size(1)`) by a number; -1 lets PyTorch infer it."""
    sizes = [n for n in ast.walk(ast.parse(text)) if isinstance(n, ast.expr) and _is_size(n)]
    parts = {part for n in sizes for part in ast.walk(n) if part is not n}
    for node in sizes:
        if node not in parts:
            for number in ("-1", "2", "1"):
                yield spliced(text, [(node, number)])


def _is_size(node: ast.AST) -> bool:
    """Whether an expression is a size of a tensor, or computed from sizes and numbers only."""
    if isinstance(node, ast.BinOp):
        sides = (node.left, node.right)
        return any(map(_is_size, sides)) and all(_is_size(side) or isinstance(side, ast.Constant) for side in sides)
    if isinstance(node, ast.Subscript):
        return isinstance(node.value, ast.Attribute) and node.value.attr == "shape" and not isinstance(node.slice, ast.Slice)
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and (node.func.attr, len(node.args)) in _SIZES


def strings(text: str) -> Iterator[str]:
    """Replaces an f-string of constants in `text` (`f"layer{0}"`, from a loop reduced to its first iteration) by a plain string."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.JoinedStr):
            plain = [n.value if isinstance(n, ast.FormattedValue) and not n.format_spec and n.conversion < 0 else n for n in node.values]
            known = [str(n.value) for n in plain if isinstance(n, ast.Constant)]
            if len(known) == len(plain):
                yield spliced(text, [(node, repr("".join(known)))])


def inputs(text: str) -> Iterator[str]:
    """Makes an input in `text` in the plainest way.

    Literal numbers become random ones only if the script is seeded; otherwise the script would fail only now and then.
    """
    calls = [(node, dotted(node.func) or "") for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Call)]
    seeded = any(name.endswith("manual_seed") for _, name in calls)
    for node, maker in calls:
        if maker in _TENSOR_MAKERS:
            random = ("torch.randn(2)", "torch.randn(2, 2)") if seeded or maker != "torch.tensor" else ()
            for plain in ("torch.ones(())", "torch.ones(2)", "torch.ones(2, 2)", *random):
                if len(plain) < len(code(node)):
                    yield spliced(text, [(node, plain)])


def imports(text: str) -> Iterator[str]:
    """Removes the unused imports of `text`, all of them at once, since some imports have side effects."""
    unread_names = {name for scope, name in unused(text) if not scope}
    changes: dict[ast.stmt, str | None] = {}
    for statement in ast.parse(text).body:
        if isinstance(statement, (ast.Import, ast.ImportFrom)) and getattr(statement, "module", None) != "__future__":
            left = trimmed(statement, lambda name: name not in unread_names)
            if left != code(statement):
                changes[statement] = left + mark_of(text, statement) if left else None
    if changes:
        yield replaced(text, changes)


ALL: tuple[tuple[str, Rewrite], ...] = (
    ("tuple", tuples),
    ("number", numbers),
    ("size", read_sizes),
    ("string", strings),
    ("input", inputs),
    ("used once", used_once),
    ("unread", unread),
    ("import", imports),
)
