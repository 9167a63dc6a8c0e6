"""Rewrites a program's structure as a person would try: each pass takes a text in normal form and yields whole texts to ask.

They remove levels: a loop that runs once, a function or class that only forwards, an object that only holds values.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from bot.reduce.source.passes.classes import attributes_once, buffers, classes_to_functions, empty_bases, fields, holders
from bot.reduce.source.passes.command_line import options
from bot.reduce.source.passes.functions import called_once, constant_parameters, forwarders, properties
from bot.reduce.source.text.blocks import FUNCTIONS
from bot.reduce.source.text.names import dotted, names_of
from bot.reduce.source.text.repair import replaced
from bot.reduce.source.text.splice import Rewrite, both, code, mark_of, own_text, spliced
from bot.reduce.source.text.variables import loads, stores


def first_turn(text: str) -> Iterator[str]:
    """Replaces a loop in `text` by its first iteration: the target is bound to the first element."""
    tree = ast.parse(text)
    yielding = {f.name for f in ast.walk(tree) if isinstance(f, ast.FunctionDef) and any(isinstance(n, ast.Yield) for n in ast.walk(f))}
    for loop in (n for n in ast.walk(tree) if isinstance(n, ast.For)):
        if any(isinstance(n, (ast.Break, ast.Continue)) for n in ast.walk(loop)):
            continue
        read = {n.id for s in loop.body for n in ast.walk(s) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)}
        bindings = [b for b in _first_of(loop.target, loop.iter, yielding) if names_of(ast.parse(b).body[0]).binds & read]
        yield replaced(text, {loop: "\n".join([*bindings, *(own_text(text, s) for s in loop.body)])})


def _first_of(target: ast.expr, iterable: ast.expr, yielding: set[str]) -> list[str]:
    name = dotted(iterable.func) if isinstance(iterable, ast.Call) and iterable.args else None
    if isinstance(iterable, ast.Call) and name == "range":
        return [f"{code(target)} = {code(iterable.args[0]) if len(iterable.args) > 1 else 0}"]
    if isinstance(iterable, ast.Call) and name == "enumerate" and isinstance(target, ast.Tuple) and len(target.elts) == 2:
        return [f"{code(target.elts[0])} = 0", *_first_of(target.elts[1], iterable.args[0], yielding)]
    if isinstance(iterable, (ast.List, ast.Tuple)) and iterable.elts:
        return [f"{code(target)} = {code(iterable.elts[0])}"]
    if isinstance(iterable, (ast.Name, ast.Attribute)):
        return [f"{code(target)} = {code(iterable)}[0]"]
    if isinstance(iterable, ast.Call) and dotted(iterable.func) in yielding:
        return [f"{code(target)} = next({code(iterable)})"]
    return [f"{code(target)} = next(iter({code(iterable)}))"]


def counters(text: str) -> Iterator[str]:
    """Replaces the counter of a loop in `text` over `enumerate(...)` by 0, its value in the first iteration."""
    tree = ast.parse(text)
    for loop in (n for n in ast.walk(tree) if isinstance(n, ast.For)):
        call, target = loop.iter, loop.target
        if not (isinstance(call, ast.Call) and dotted(call.func) == "enumerate" and len(call.args) == 1 and not call.keywords):
            continue
        if not (isinstance(target, ast.Tuple) and len(target.elts) == 2 and isinstance(target.elts[0], ast.Name)):
            continue
        name = target.elts[0].id
        inside = [n for s in loop.body for n in loads(s, name)]
        if stores(tree, name) == 1 and len(inside) == len(loads(tree, name)):
            header: list[tuple[ast.expr, str]] = [(target, code(target.elts[1])), (call, code(call.args[0]))]
            yield spliced(text, [*header, *((n, "0") for n in inside)])


def single_modules(text: str) -> Iterator[str]:
    """Replaces a list of modules in `text` and a loop over it by its first module."""
    tree = ast.parse(text)
    for node in ast.walk(tree):
        if not (isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], (ast.Attribute, ast.Name))):
            continue
        element = _element(node.value)
        if element is None:
            continue
        expressions: list[tuple[ast.expr, str]] = [(node.value, element)]
        statements: dict[ast.stmt, str | None] = {}
        for use in ast.walk(tree):
            if isinstance(use, ast.Subscript) and _is_called(use.value, node.targets[0]) and isinstance(use.slice, ast.Constant):
                expressions.append((use, code(use.value)))
            elif isinstance(use, ast.For) and _is_called(use.iter, node.targets[0]) and isinstance(use.target, ast.Name):
                name, holder = use.target.id, code(use.iter)
                spread = spliced(text, [(n, holder) for n in loads(use, name)])
                statements[use] = "\n".join(own_text(spread, s) for s in use.body) if spread.count("\n") == text.count("\n") else None
        yield both(text, statements, expressions)


def _is_called(use: ast.expr, target: ast.Name | ast.Attribute) -> bool:
    """Whether an expression may stand for what is assigned to a target: `model.blocks` for `self.blocks`."""
    return isinstance(use, ast.Attribute) and use.attr == target.attr if isinstance(target, ast.Attribute) else code(use) == target.id


def _element(node: ast.expr) -> str | None:
    if isinstance(node, ast.Call) and (dotted(node.func) or "").endswith(("ModuleList", "Sequential")) and len(node.args) >= 1:
        node = node.args[0].value if isinstance(node.args[0], ast.Starred) else node.args[0]
        if isinstance(node, ast.Call):
            return code(node)
    if isinstance(node, (ast.ListComp, ast.GeneratorExp)):
        targets = {n.id for g in node.generators for n in ast.walk(g.target) if isinstance(n, ast.Name)}
        return code(node.elt, dict.fromkeys(targets, "0"))
    if isinstance(node, ast.List) and node.elts:
        return code(node.elts[0])
    return None


def generators(text: str) -> Iterator[str]:
    """Turns a generator in `text` of which only the first value is used into a function."""
    tree = ast.parse(text)
    for function in (n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef)):
        yields = [s for s in function.body if isinstance(s, ast.Expr) and isinstance(s.value, ast.Yield)]
        if len(yields) != 1 or yields[0] is not function.body[-1] or not isinstance(yields[0].value, ast.Yield):
            continue
        value = yields[0].value.value
        firsts = [
            (n, code(call))
            for n in ast.walk(tree)
            if isinstance(n, ast.Call) and dotted(n.func) == "next" and n.args
            for call in [n.args[0].args[0] if isinstance(n.args[0], ast.Call) and dotted(n.args[0].func) == "iter" else n.args[0]]
            if isinstance(call, ast.Call) and dotted(call.func) == function.name
        ]
        yield both(text, {yields[0]: f"return {code(value) if value is not None else None}"}, firsts)


def conditions(text: str) -> Iterator[str]:
    """Replaces an `if` in `text` that only decides what is stored by its condition, alone or before a plain return."""
    tree = ast.parse(text)
    lines = text.split("\n")
    in_functions = {n for f in ast.walk(tree) if isinstance(f, FUNCTIONS) for n in ast.walk(f)}
    for node in ast.walk(tree):
        if not isinstance(node, ast.If) or node.orelse or lines[node.lineno - 1].lstrip().startswith("elif"):
            continue
        returns = isinstance(node.body[0], ast.Return) and node.body[0].value is None
        stores_only = all(isinstance(s, (ast.Assign, ast.AugAssign, ast.Pass)) for s in node.body)
        if not (returns or stores_only) or any(isinstance(n, ast.Call) for s in node.body for n in ast.walk(s)):
            continue
        test, mark = code(node.test), mark_of(text, node)
        yield replaced(text, {node: f"bool({test}){mark}"})
        if stores_only and node in in_functions:
            yield replaced(text, {node: f"if {test}:{mark}\n    return"})


ALL: tuple[tuple[str, Rewrite], ...] = (
    ("option", options),
    ("counter", counters),
    ("first turn", first_turn),
    ("single module", single_modules),
    ("generator", generators),
    ("condition", conditions),
    ("called once", called_once),
    ("property", properties),
    ("empty base", empty_bases),
    ("field", fields),
    ("constant parameter", constant_parameters),
    ("hand on", forwarders),
    ("holder", holders),
    ("buffer", buffers),
    ("attribute once", attributes_once),
    ("class to function", classes_to_functions),
)
