"""Rewrites classes: what an object holds is inlined where it is read, and a class without state becomes a function."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping

from bot.reduce.source.text.blocks import FUNCTIONS
from bot.reduce.source.text.names import dotted, names_of, root
from bot.reduce.source.text.repair import replaced
from bot.reduce.source.text.splice import both, bound_arguments, calls, code, mark_of, own_text, pairs, scoped, spliced, without, wrapped
from bot.reduce.source.text.variables import imported_names, loads, stores


def empty_bases(text: str) -> Iterator[str]:
    """Replaces a class in `text` that adds nothing to its bases by them."""
    tree = ast.parse(text)
    inherited = {b for c in ast.walk(tree) if isinstance(c, ast.ClassDef) for b in c.bases}
    for node in tree.body:
        if not isinstance(node, ast.ClassDef) or node.decorator_list or node.keywords or not node.bases:
            continue
        uses = loads(tree, node.name)
        # a class has several bases, a call has one callee
        if all(isinstance(s, ast.Pass) for s in node.body) and (len(node.bases) == 1 or inherited.issuperset(uses)):
            bases = ", ".join(code(b) for b in node.bases)
            yield both(text, {node: None}, [(n, bases) for n in uses])


def fields(text: str) -> Iterator[str]:
    """Inlines constant fields of classes (configs) in `text` where they are read."""
    tree = ast.parse(text)
    constants: dict[str, str] = {}
    set_elsewhere: dict[str, int] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            set_elsewhere[node.attr] = set_elsewhere.get(node.attr, 0) + 1
        if not isinstance(node, ast.ClassDef):
            continue
        given = {k.arg: k.value for c in calls(tree, node.name) for k in c.keywords}
        for statement in node.body:
            own = [(statement.target, statement.value)] if isinstance(statement, ast.AnnAssign) else pairs(statement)
            for target, default in own:
                value = given.get(target.id, default) if isinstance(target, ast.Name) else None
                if isinstance(target, ast.Name) and default is not None and isinstance(value, (ast.Constant, ast.Tuple, ast.UnaryOp)):
                    constants[target.id] = wrapped(value)
        init = _constructor(node)
        for target, value in (p for s in init.body for p in pairs(s)) if init is not None else ():
            if isinstance(target, ast.Attribute) and isinstance(value, ast.Constant):
                constants[target.attr] = code(value)
    imported = imported_names(tree)
    reads = [
        (n, constants[n.attr])
        for n in ast.walk(tree)
        if isinstance(n, ast.Attribute)
        and isinstance(n.ctx, ast.Load)
        and n.attr in constants
        and isinstance(n.value, (ast.Name, ast.Attribute))
        and root(n) not in imported
        and set_elsewhere.get(n.attr, 0) <= 1
    ]
    if reads:
        given_too = [
            (c, code(ast.Call(c.func, c.args, [k for k in c.keywords if k.arg not in constants])))
            for owner in tree.body
            if isinstance(owner, ast.ClassDef)
            for c in calls(tree, owner.name)
            if any(k.arg in constants for k in c.keywords)
        ]
        yield spliced(text, [*reads, *given_too])
        for attribute in dict.fromkeys(n.attr for n, _ in reads if isinstance(n, ast.Attribute)):
            yield spliced(text, [(n, c) for n, c in reads if isinstance(n, ast.Attribute) and n.attr == attribute])


def holders(text: str) -> Iterator[str]:
    """Replaces an object in `text` that only holds its constructor's arguments by plain variables."""
    tree = ast.parse(text)
    classes = {c.name: c for c in tree.body if isinstance(c, ast.ClassDef)}
    for scope, statement in scoped(tree):
        target, call = (statement.targets[0], statement.value) if isinstance(statement, ast.Assign) else (None, None)
        if not isinstance(target, ast.Name) or not isinstance(call, ast.Call) or not isinstance(call.func, ast.Name):
            continue
        name = target.id
        init = _constructor(classes[call.func.id]) if call.func.id in classes and stores(scope, name) == 1 else None
        reads = [n for n in ast.walk(scope) if isinstance(n, ast.Attribute) and isinstance(n.value, ast.Name) and n.value.id == name]
        given = bound_arguments(init, call, skip=1) if init is not None else None
        if init is None or given is None or not reads or len(reads) != len(loads(scope, name)):
            continue
        bodies = [s for s in init.body if not (isinstance(s, ast.Expr) and "super()" in code(s))]
        kept = {t.attr: v for s in bodies for t, v in pairs(s) if isinstance(t, ast.Attribute)}
        if len(kept) != sum(len(pairs(s)) or 1 for s in bodies) or not {r.attr for r in reads} <= set(kept):
            continue
        taken = {n.id for n in ast.walk(scope) if isinstance(n, ast.Name)} | set(classes)
        own = {a: a if a not in taken else f"{name}_{a}" for a in kept}
        names = {k: wrapped(v) for k, v in given.items()}
        setting = {f"self.{a}": own[a] for a in kept}
        made = "\n".join(f"{own[a]} = {_with_attributes(code(v, names), setting)}" for a, v in kept.items())
        yield both(text, {statement: made}, [(r, own[r.attr]) for r in reads])


def _constructor(owner: ast.ClassDef) -> ast.FunctionDef | None:
    return next((m for m in owner.body if isinstance(m, ast.FunctionDef) and m.name == "__init__"), None)


def _with_attributes(text: str, names: Mapping[str, str]) -> str:
    """The code of an expression with whole attributes (`self.x`) replaced by names."""
    for attribute, name in names.items():
        text = re.sub(rf"\b{re.escape(attribute)}\b", name, text)
    return text


def classes_to_functions(text: str) -> Iterator[str]:
    """Turns a module class in `text` that has no state into a function."""
    tree = ast.parse(text)
    for node in tree.body:
        if not isinstance(node, ast.ClassDef) or node.decorator_list:
            continue
        methods = [m for m in node.body if isinstance(m, FUNCTIONS)]
        forward = next((m for m in methods if m.name in ("forward", "__call__")), None)
        if forward is None or len(methods) != len(node.body) or any(m.name not in ("forward", "__call__", "__init__") for m in methods):
            continue
        if not forward.args.args or loads(forward, forward.args.args[0].arg):
            continue
        made = calls(tree, node.name)
        if len(made) != len(loads(tree, node.name)):
            continue
        # `Module().forward` is the function as well
        through: dict[ast.expr, ast.expr] = {
            n.value: n for n in ast.walk(tree) if isinstance(n, ast.Attribute) and n.value in made and n.attr == forward.name
        }
        name = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", node.name).lower()
        name = name if stores(tree, name) == 0 and not loads(tree, name) else "fn"
        rest = code(forward.args).partition(",")[2].strip()
        body = "\n".join(own_text(text, forward).split("\n")[forward.body[0].lineno - forward.lineno :])
        yield both(text, {node: f"def {name}({rest}):\n{body}"}, [(through.get(c, c), name) for c in made])


def buffers(text: str) -> Iterator[str]:
    """Replaces `self.register_buffer("pos", value)` in `text` by `self.pos = value`."""
    for statement in (n for n in ast.walk(ast.parse(text)) if isinstance(n, ast.Expr)):
        call = statement.value
        if not (isinstance(call, ast.Call) and dotted(call.func) == "self.register_buffer" and len(call.args) > 1):
            continue
        name, value = call.args[:2]
        said = name.value if isinstance(name, ast.Constant) else None
        if isinstance(said, str) and said.isidentifier() and not isinstance(value, (ast.Constant, ast.Starred)):
            yield replaced(text, {statement: f"self.{said} = {code(value)}{mark_of(text, statement)}"})


def attributes_once(text: str) -> Iterator[str]:
    """Inlines an attribute that a constructor in `text` sets and only one place reads, using the arguments of the only instance."""
    tree = ast.parse(text)
    outside = {n for s in tree.body for n in names_of(s).binds}
    for owner in (c for c in tree.body if isinstance(c, ast.ClassDef)):
        init, made = _constructor(owner), calls(tree, owner.name)
        if init is None:
            continue
        given = bound_arguments(init, made[0], skip=1) if len(made) == len(loads(tree, owner.name)) == 1 else None
        known = {k: code(v) for k, v in (given or {}).items() if names_of(ast.Expr(v)).uses <= outside}
        local = ({a.arg for a in init.args.args} | {n for s in init.body for n in names_of(s).binds}) - known.keys()
        for statement, target, value in ((s, t, v) for s in init.body for t, v in pairs(s)):
            if not isinstance(target, ast.Attribute) or any(loads(value, n) for n in local):
                continue
            reads = [n for n in ast.walk(tree) if isinstance(n, ast.Attribute) and n.attr == target.attr and isinstance(n.ctx, ast.Load)]
            if len(reads) == 1 and root(reads[0]) == "self":
                shown = wrapped(ast.parse(code(value, known), mode="eval").body)
                yield both(text, {statement: without(statement, [target])}, [(reads[0], shown)])
