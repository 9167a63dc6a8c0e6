"""Rewritings of a program's structure that a person would try: each takes a text in normal form and gives whole texts to ask.

They take away levels: a loop run once, a function or class that only hands on, an object that only holds values.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator, Mapping

from bot.reduce.source.layout import MARK
from bot.reduce.source.names import dotted, names_of, root
from bot.reduce.source.prune import has_mark, replaced
from bot.reduce.source.splice import (
    FUNCTIONS,
    Function,
    both,
    bound_arguments,
    calls,
    code,
    inner_blocks,
    loads,
    scopes,
    spliced,
    stores,
    wrapped,
)

Rewrite = Callable[[str], Iterator[str]]


def first_turn(text: str) -> Iterator[str]:
    """A loop becomes its first turn: the target is bound to the first element."""
    tree = ast.parse(text)
    yielding = {f.name for f in ast.walk(tree) if isinstance(f, ast.FunctionDef) and any(isinstance(n, ast.Yield) for n in ast.walk(f))}
    for loop in (n for n in ast.walk(tree) if isinstance(n, ast.For)):
        if any(isinstance(n, (ast.Break, ast.Continue)) for n in ast.walk(loop)):
            continue
        read = {n.id for s in loop.body for n in ast.walk(s) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)}
        bindings = [b for b in _first_of(loop.target, loop.iter, yielding) if names_of(ast.parse(b).body[0]).binds & read]
        yield replaced(text, {loop: "\n".join([*bindings, *(_own_text(text, s) for s in loop.body)])})


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


def _own_text(text: str, node: ast.stmt) -> str:
    """The statement's text without its indentation, marks included."""
    lines = text.split("\n")[(min([node.lineno, *(d.lineno for d in getattr(node, "decorator_list", []))])) - 1 : node.end_lineno]
    indent = " " * node.col_offset
    if all(line.startswith(indent) or not line for line in lines):
        return "\n".join(line[node.col_offset :] for line in lines)
    return ast.unparse(node)


def single_modules(text: str) -> Iterator[str]:
    """A list of modules with a loop over it becomes its first module."""
    tree = ast.parse(text)
    for node in ast.walk(tree):
        if not (isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], (ast.Attribute, ast.Name))):
            continue
        element = _element(node.value)
        if element is None:
            continue
        holder = code(node.targets[0])
        expressions: list[tuple[ast.expr, str]] = [(node.value, element)]
        statements: dict[ast.stmt, str | None] = {}
        for use in ast.walk(tree):
            if isinstance(use, ast.Subscript) and code(use.value) == holder and isinstance(use.slice, ast.Constant):
                expressions.append((use, holder))
            elif isinstance(use, ast.For) and code(use.iter) == holder and isinstance(use.target, ast.Name):
                name = use.target.id
                body = [spliced(text, [(n, holder) for n in loads(use, name)])]
                statements[use] = "\n".join(_own_text(body[0], s) for s in use.body) if body[0].count("\n") == text.count("\n") else None
        yield both(text, statements, expressions)


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
    """A generator whose first value alone is asked for becomes a function."""
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


def called_once(text: str) -> Iterator[str]:
    """A function or method called in one place, as a whole statement, is written out there."""
    tree = ast.parse(text)
    for scope in scopes(tree):
        for block in inner_blocks(scope):
            for statement in block:
                value = getattr(statement, "value", None)
                call = value if isinstance(statement, (ast.Expr, ast.Return, ast.Assign)) else None
                if isinstance(call, ast.Call):
                    found = _written_out(text, tree, scope, statement, call)
                    if found is not None:
                        yield found


def _written_out(text: str, tree: ast.Module, scope: ast.Module | Function, statement: ast.stmt, call: ast.Call) -> str | None:
    names: dict[str, str] = {}
    if isinstance(call.func, ast.Name):
        name = call.func.id
        found = [s for s in tree.body if isinstance(s, ast.FunctionDef) and s.name == name]
        others = len(loads(tree, name))
        skip = 0
    elif isinstance(call.func, ast.Attribute) and isinstance(call.func.value, ast.Name):
        name = call.func.attr
        found = [m for c in tree.body if isinstance(c, ast.ClassDef) for m in c.body if isinstance(m, ast.FunctionDef) and m.name == name]
        others = sum(1 for n in ast.walk(tree) if isinstance(n, ast.Attribute) and n.attr == name)
        skip = 1
    else:
        return None
    if skip and found and not found[0].args.args:
        return None
    if len(found) != 1 or others != 1 or found[0] is scope or found[0].decorator_list or name.startswith("__"):
        return None
    function = found[0]
    returns = [n for n in ast.walk(function) if isinstance(n, ast.Return)]
    if any(isinstance(n, (ast.Yield, ast.YieldFrom, ast.Global)) for n in ast.walk(function)) or any(
        r is not function.body[-1] for r in returns
    ):
        return None
    given = bound_arguments(function, call, skip=skip)
    if given is None:
        return None
    if skip and isinstance(call.func, ast.Attribute):
        names[function.args.args[0].arg] = code(call.func.value)
    opening: list[str] = []
    for parameter, value in given.items():
        plain = isinstance(value, (ast.Name, ast.Constant)) and stores(function, parameter) == 1
        if plain:
            names[parameter] = code(value)
        else:
            opening.append(f"{parameter} = {code(value)}")
    taken = {n.id for n in ast.walk(scope) if isinstance(n, ast.Name)} if not isinstance(scope, ast.Module) else _module_names(tree)
    local = {n.id for n in ast.walk(function) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)} - set(names)
    targets = (
        {n.id for t in statement.targets for n in ast.walk(t) if isinstance(n, ast.Name)} if isinstance(statement, ast.Assign) else set()
    )
    if local & (taken - targets):
        return None
    body: list[str] = []
    for inner in function.body:
        mark = f"  {MARK}" if has_mark(text, inner) and not hasattr(inner, "body") else ""
        if isinstance(inner, ast.Return):
            value_code = code(inner.value, names) if inner.value is not None else "None"
            if isinstance(statement, ast.Assign):
                body.append(f"{' = '.join(code(t) for t in statement.targets)} = {value_code}{mark}")
            elif isinstance(statement, ast.Return):
                body.append(f"return {value_code}{mark}")
            else:
                body.append(f"{value_code}{mark}")
        else:
            body.append(code(inner, names) + mark)
    if isinstance(statement, ast.Assign) and not returns:
        return None
    return replaced(text, {statement: "\n".join([*opening, *body]), function: None})


def _module_names(tree: ast.Module) -> set[str]:
    out: set[str] = set()
    for statement in tree.body:
        out |= names_of(statement).binds
    return out


def handing_on(text: str) -> Iterator[str]:
    """A class whose forward only calls one attribute gives way to that attribute's value; a function likewise."""
    tree = ast.parse(text)
    imported = {n for s in tree.body if isinstance(s, (ast.Import, ast.ImportFrom)) for n in names_of(s).binds}
    for node in tree.body:
        if isinstance(node, ast.FunctionDef) and len(node.body) == 1 and not node.decorator_list:
            target = _hands_to(node, 0)
            # to a function of torch itself it does not: nobody compiles one alone
            if isinstance(target, ast.Name) and target.id in _module_names(tree) - imported:
                uses = [(n, code(target)) for n in loads(tree, node.name)]
                yield both(text, {node: None}, uses)
        if not isinstance(node, ast.ClassDef):
            continue
        methods = {m.name: m for m in node.body if isinstance(m, ast.FunctionDef)}
        forward, init = methods.get("forward") or methods.get("__call__"), methods.get("__init__")
        if forward is None or init is None or len(forward.body) != 1:
            continue
        target = _hands_to(forward, 1)
        if not (isinstance(target, ast.Attribute) and root(target) == "self"):
            continue
        value = _set_in(init, target.attr)
        if value is None or loads(value, "self"):
            continue
        made = calls(tree, node.name)
        given = [bound_arguments(init, call, skip=1) for call in made]
        if made and len(made) == len(loads(tree, node.name)) and all(g is not None for g in given):
            values = [code(value, {k: wrapped(v) for k, v in (g or {}).items()}) for g in given]
            yield both(text, {node: None}, list(zip(made, values, strict=True)))


def _hands_to(function: Function, skip: int) -> ast.expr | None:
    """What a function calls with just its own parameters, if that is all it does."""
    statement = function.body[0]
    call = statement.value if isinstance(statement, (ast.Return, ast.Expr)) else None
    parameters = [a.arg for a in function.args.args][skip:]
    if not isinstance(call, ast.Call) or call.keywords or function.args.kwonlyargs:
        return None
    given = [a.id if isinstance(a, ast.Name) else None for a in call.args]
    return call.func if given == parameters else None


def _set_in(init: ast.FunctionDef, attribute: str) -> ast.expr | None:
    for statement in init.body:
        if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Attribute) and statement.targets[0].attr == attribute:
            return statement.value
    return None


def fields(text: str) -> Iterator[str]:
    """Constant fields of a class (a config) are written where they are read."""
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
            target: ast.expr | None = statement.target if isinstance(statement, ast.AnnAssign) else None
            if isinstance(statement, ast.Assign):
                target = statement.targets[0]
            value: ast.expr | None = getattr(statement, "value", None)
            if isinstance(target, ast.Name) and value is not None:
                value = given.get(target.id, value)
                if isinstance(value, (ast.Constant, ast.Tuple, ast.UnaryOp)):
                    constants[target.id] = wrapped(value)
        for method in node.body:
            if isinstance(method, ast.FunctionDef) and method.name == "__init__":
                for statement in method.body:
                    if (
                        isinstance(statement, ast.Assign)
                        and isinstance(statement.targets[0], ast.Attribute)
                        and isinstance(statement.value, ast.Constant)
                    ):
                        constants[statement.targets[0].attr] = code(statement.value)
    imported = {n for s in tree.body if isinstance(s, (ast.Import, ast.ImportFrom)) for n in names_of(s).binds}
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
    """An object that only holds what its constructor was given becomes plain variables."""
    tree = ast.parse(text)
    classes = {c.name: c for c in tree.body if isinstance(c, ast.ClassDef)}
    for scope in scopes(tree):
        for statement in (s for b in inner_blocks(scope) for s in b):
            if not (
                isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name) and isinstance(statement.value, ast.Call)
            ):
                continue
            name, call = statement.targets[0].id, statement.value
            owner = classes.get(call.func.id) if isinstance(call.func, ast.Name) else None
            if owner is None or stores(scope, name) != 1:
                continue
            init = next((m for m in owner.body if isinstance(m, ast.FunctionDef) and m.name == "__init__"), None)
            reads = [n for n in ast.walk(scope) if isinstance(n, ast.Attribute) and isinstance(n.value, ast.Name) and n.value.id == name]
            given = bound_arguments(init, call, skip=1) if init is not None else None
            if init is None or given is None or not reads or len(reads) != len(loads(scope, name)):
                continue
            bodies = [s for s in init.body if not (isinstance(s, ast.Expr) and "super()" in code(s))]
            attributes = [s.targets[0].attr for s in bodies if isinstance(s, ast.Assign) and isinstance(s.targets[0], ast.Attribute)]
            if len(attributes) != len(bodies) or not {r.attr for r in reads} <= set(attributes):
                continue
            taken = {n.id for n in ast.walk(scope) if isinstance(n, ast.Name)} | set(classes)
            own = {a: a if a not in taken else f"{name}_{a}" for a in attributes}
            names = {k: wrapped(v) for k, v in given.items()}
            setting = {f"self.{a}": own[a] for a in attributes}
            lines = [_with_attributes(code(s.value, names), setting) for s in bodies if isinstance(s, ast.Assign)]
            made = "\n".join(f"{own[a]} = {line}" for a, line in zip(attributes, lines, strict=True))
            yield both(text, {statement: made}, [(r, own[r.attr]) for r in reads])


def _with_attributes(text: str, names: Mapping[str, str]) -> str:
    """An expression's code with whole attributes (`self.x`) replaced by names."""
    for attribute, name in names.items():
        text = re.sub(rf"\b{re.escape(attribute)}\b", name, text)
    return text


def classes_to_functions(text: str) -> Iterator[str]:
    """A module class that keeps nothing becomes a function."""
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
        lines = _own_text(text, forward).split("\n")
        rest = next(a.strip() for a in [code(forward.args)])
        rest = rest.split(",", 1)[1].strip() if "," in rest else ""
        start = forward.body[0].lineno - forward.lineno
        body = "\n".join(lines[start:])
        yield both(text, {node: f"def {name}({rest}):\n{body}"}, [(through.get(c, c), name) for c in made])


def attributes_once(text: str) -> Iterator[str]:
    """An attribute that the constructor sets and one place reads is written out there."""
    tree = ast.parse(text)
    for owner in (c for c in tree.body if isinstance(c, ast.ClassDef)):
        init = next((m for m in owner.body if isinstance(m, ast.FunctionDef) and m.name == "__init__"), None)
        for statement in init.body if init is not None else []:
            target = statement.targets[0] if isinstance(statement, ast.Assign) else None
            if init is None or not isinstance(statement, ast.Assign) or not isinstance(target, ast.Attribute):
                continue
            reads = [n for n in ast.walk(tree) if isinstance(n, ast.Attribute) and n.attr == target.attr and isinstance(n.ctx, ast.Load)]
            local = {a.arg for a in init.args.args} | {n for s in init.body for n in names_of(s).binds}
            if len(reads) == 1 and root(reads[0]) == "self" and not any(loads(statement.value, n) for n in local):
                yield both(text, {statement: None}, [(reads[0], wrapped(statement.value))])


def constant_parameters(text: str) -> Iterator[str]:
    """A parameter that every call gives the same constant, or a global of its own name, is written into the body."""
    tree = ast.parse(text)
    functions: list[tuple[str, Function, int]] = [(f.name, f, 0) for f in tree.body if isinstance(f, FUNCTIONS)]
    for owner in (c for c in tree.body if isinstance(c, ast.ClassDef)):
        functions += [(owner.name, m, 1) for m in owner.body if isinstance(m, FUNCTIONS) and m.name == "__init__"]
    for name, function, skip in functions:
        made = calls(tree, name)
        given = [bound_arguments(function, c, skip=skip) for c in made]
        if not made or len(made) != len(loads(tree, name)) or any(g is None for g in given):
            continue
        for parameter in [a.arg for a in (*function.args.posonlyargs, *function.args.args)[skip:]] + [
            a.arg for a in function.args.kwonlyargs
        ]:
            values = {code(g[parameter]) for g in given if g is not None}
            value = next(iter(values))
            expression = ast.parse(value, mode="eval").body
            constant = isinstance(expression, (ast.Constant, ast.UnaryOp)) or value == parameter
            if len(values) != 1 or not constant or stores(function, parameter) != 1:
                continue
            expressions: list[tuple[ast.expr, str]] = [(n, value) for s in function.body for n in loads(s, parameter)]
            expressions += [(c, _call_without(c, function, parameter, skip)) for c in made]
            header = _header_without(text, function, parameter)
            if header is not None:
                yield _with_header(spliced(text, expressions), function, header)


def _call_without(call: ast.Call, function: Function, parameter: str, skip: int) -> str:
    order = [a.arg for a in (*function.args.posonlyargs, *function.args.args)][skip:]
    index = order.index(parameter) if parameter in order else None
    kept = [a for i, a in enumerate(call.args) if i != index]
    return code(ast.Call(call.func, kept, [k for k in call.keywords if k.arg != parameter]))


def _header_without(text: str, function: Function, parameter: str) -> str | None:
    """The `def` line without one parameter; None where it runs over several lines."""
    if function.body[0].lineno != function.lineno + 1 or text.split("\n")[function.lineno - 1].count("def ") != 1:
        return None
    bare = ast.parse(code(function)).body[0]
    assert isinstance(bare, FUNCTIONS)
    a = bare.args
    positional = [*a.posonlyargs, *a.args]
    defaults: list[ast.expr | None] = [None] * (len(positional) - len(a.defaults)) + list(a.defaults)
    kept = [(p, d) for p, d in zip(positional, defaults, strict=True) if p.arg != parameter]
    only = [(p, d) for p, d in zip(a.kwonlyargs, a.kw_defaults, strict=True) if p.arg != parameter]
    bare.args = ast.arguments(
        [], [p for p, _ in kept], a.vararg, [p for p, _ in only], [d for _, d in only], a.kwarg, [d for _, d in kept if d]
    )
    bare.decorator_list, bare.body = [], [ast.Pass()]
    return code(bare).split("\n")[0]


def _with_header(text: str, function: Function, header: str) -> str:
    lines = text.split("\n")
    lines[function.lineno - 1] = " " * function.col_offset + header
    return "\n".join(lines)


ALL: tuple[tuple[str, Rewrite], ...] = (
    ("first turn", first_turn),
    ("single module", single_modules),
    ("generator", generators),
    ("called once", called_once),
    ("field", fields),
    ("constant parameter", constant_parameters),
    ("hand on", handing_on),
    ("holder", holders),
    ("attribute once", attributes_once),
    ("class to function", classes_to_functions),
)
