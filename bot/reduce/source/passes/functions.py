"""Rewrites functions and their calls: inlines what only one place calls, and removes what only forwards."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping

from bot.reduce.source.text.blocks import FUNCTIONS, Function, in_order, own_nodes, own_now
from bot.reduce.source.text.names import dotted, root
from bot.reduce.source.text.repair import replaced
from bot.reduce.source.text.splice import both, bound_arguments, calls, code, code_with, mark_of, own_text, pairs, scoped, spliced, wrapped
from bot.reduce.source.text.variables import binds, imported_names, loads, module_names, stores

_PROPERTIES = ("property", "cached_property", "functools.cached_property")


def called_once(text: str) -> Iterator[str]:
    """Inlines a function or method in `text` that is called in one place: its return value into the statement, the rest before it."""
    tree = ast.parse(text)
    for scope, statement in scoped(tree):
        if isinstance(statement, (ast.Expr, ast.Return, ast.Assign)):
            for call in (n for n in own_now(statement) if isinstance(n, ast.Call)):
                found = _call_written_out(text, tree, scope, statement, call)
                if found is not None:
                    yield found


def _call_written_out(text: str, tree: ast.Module, scope: ast.Module | Function, statement: ast.stmt, call: ast.Call) -> str | None:
    owner = call.func.value if isinstance(call.func, ast.Attribute) else None
    if isinstance(call.func, ast.Name):
        name, bodies = call.func.id, [tree.body]
        uses = len(loads(tree, name))
    elif isinstance(call.func, ast.Attribute) and isinstance(owner, ast.Name):
        name, bodies = call.func.attr, [c.body for c in tree.body if isinstance(c, ast.ClassDef)]
        uses = len(_reads_of_attribute(tree, name))
    else:
        return None
    found = [s for body in bodies for s in body if isinstance(s, ast.FunctionDef) and s.name == name]
    if len(found) != 1 or uses != 1 or found[0].decorator_list or name.startswith("__") or (owner and not found[0].args.args):
        return None
    given = bound_arguments(found[0], call, skip=1 if owner else 0)
    if given is None:
        return None
    names = {found[0].args.args[0].arg: code(owner)} if owner else {}
    opening: list[str] = []
    for parameter, value in given.items():
        if isinstance(value, (ast.Name, ast.Constant)) and stores(found[0], parameter) == 1:
            names[parameter] = code(value)
        else:
            opening.append(f"{parameter} = {code(value)}")
    return _written_out(text, tree, scope, statement, call, found[0], names, opening)


def _reads_of_attribute(tree: ast.AST, name: str) -> list[ast.Attribute]:
    return [n for n in ast.walk(tree) if isinstance(n, ast.Attribute) and n.attr == name]


def properties(text: str) -> Iterator[str]:
    """Inlines a property in `text` that is read in one place; the program's own descriptor becomes a property first."""
    tree = ast.parse(text)
    classes = [c for c in tree.body if isinstance(c, ast.ClassDef)]
    descriptors = {c.name: c for c in classes if any(isinstance(m, ast.FunctionDef) and m.name == "__get__" for m in c.body)}
    for method in (m for c in classes for m in c.body if isinstance(m, ast.FunctionDef) and len(m.decorator_list) == 1):
        decorator = method.decorator_list[0]
        descriptor = descriptors.get(dotted(decorator) or "")
        if descriptor is not None and len(loads(tree, descriptor.name)) == 1:
            # its frame may be one of the failing ones, so nothing else would remove it
            yield both(text, {descriptor: None}, [(decorator, "property")])
        uses = _reads_of_attribute(tree, method.name)
        if dotted(decorator) not in _PROPERTIES or len(uses) != 1 or dotted(uses[0]) is None or len(method.args.args) != 1:
            continue
        names = {method.args.args[0].arg: code(uses[0].value)}
        # the innermost scope that contains the read comes last
        for scope, statement in reversed(list(scoped(tree))):
            if not hasattr(statement, "body") and uses[0] in ast.walk(statement):
                found = _written_out(text, tree, scope, statement, uses[0], method, names, [])
                if found is not None:
                    yield found


def _written_out(
    text: str,
    tree: ast.Module,
    scope: ast.Module | Function,
    statement: ast.stmt,
    use: ast.expr,
    function: ast.FunctionDef,
    names: Mapping[str, str],
    opening: list[str],
) -> str | None:
    """The text with a function's body before the only statement that uses it, and its return value in place of that use.

    None if the function does anything but end in a return, or if one of its variables has a name that is taken there.
    """
    statements = list(in_order(function.body))  # without those of nested functions
    leaving = [n for s in statements for n in own_nodes(s) if isinstance(n, (ast.Return, ast.Yield, ast.YieldFrom, ast.Global))]
    returns = isinstance(function.body[-1], ast.Return)
    shared = any(isinstance(n, ast.Nonlocal) for n in ast.walk(function))
    if leaving != (function.body[-1:] if returns else []) or shared or function is scope:
        return None
    if not returns and not (isinstance(statement, (ast.Expr, ast.Return)) and statement.value is use):
        return None
    taken = module_names(tree) if isinstance(scope, ast.Module) else {n.id for n in ast.walk(scope) if isinstance(n, ast.Name)}
    local = {name for s in statements if not isinstance(s, (ast.Import, ast.ImportFrom)) for name in binds(s)} - set(names)
    targets = {n.id for t in getattr(statement, "targets", []) for n in ast.walk(t) if isinstance(n, ast.Name)}
    if local & (taken - targets):
        return None
    body: list[str] = []
    spread = both(text, {}, [(n, names[n.id]) for n in ast.walk(function) if isinstance(n, ast.Name) and n.id in names])
    for inner in function.body:
        mark = mark_of(text, inner)
        if isinstance(inner, ast.Return):
            value = ast.parse(code(inner.value or ast.Constant(None), names), mode="eval").body
            # a statement that does more with the return value may be the one that fails
            own = "" if getattr(statement, "value", None) is use else mark_of(text, statement)
            body.append(code_with(statement, use, value) + (mark or own))
        else:  # a block keeps its inner marks
            body.append(own_text(spread, inner) if hasattr(inner, "body") else code(inner, names) + mark)
    return replaced(text, {statement: "\n".join([*opening, *body]), function: None})


def forwarders(text: str) -> Iterator[str]:
    """Replaces a class in `text` whose forward only calls one attribute by the value of that attribute; a function likewise."""
    tree = ast.parse(text)
    # only one of the program's own names may replace a function: nobody compiles a function of torch alone
    own = module_names(tree) - imported_names(tree)
    for node in tree.body:
        if isinstance(node, ast.FunctionDef) and len(node.body) == 1 and not node.decorator_list:
            target = _hands_to(node, 0)
            if target is not None and _names_one_of(target, own, node):
                uses = [(n, code(target)) for n in loads(tree, node.name)]
                yield both(text, {node: None}, uses)
            elif target is None:
                yield from _with_its_arguments(text, tree, node, own)
        if not isinstance(node, ast.ClassDef):
            continue
        methods = {m.name: m for m in node.body if isinstance(m, ast.FunctionDef)}
        forward, init = methods.get("forward") or methods.get("__call__"), methods.get("__init__")
        target = _hands_to(forward, 1) if forward is not None and len(forward.body) == 1 else None
        if init is None or not (isinstance(target, ast.Attribute) and root(target) == "self"):
            continue
        value = next((v for s in init.body for t, v in pairs(s) if isinstance(t, ast.Attribute) and t.attr == target.attr), None)
        if value is None or loads(value, "self"):
            continue
        made = calls(tree, node.name)
        given = [bound_arguments(init, call, skip=1) for call in made]
        if made and len(made) == len(loads(tree, node.name)) and all(g is not None for g in given):
            values = [code(value, {k: wrapped(v) for k, v in (g or {}).items()}) for g in given]
            yield both(text, {node: None}, list(zip(made, values, strict=True)))


def _with_its_arguments(text: str, tree: ast.Module, function: ast.FunctionDef, own: set[str]) -> Iterator[str]:
    """`torch.compile(f)(x)`, where `f(x)` returns `g(x, 1)`, becomes `torch.compile(g)(x, 1)`."""
    inner = getattr(function.body[0], "value", None)
    uses = loads(tree, function.name)
    if not isinstance(inner, ast.Call) or not _names_one_of(inner.func, own, function) or len(uses) != 1:
        return
    for outer in (n for n in ast.walk(tree) if isinstance(n, ast.Call)):
        given = bound_arguments(function, outer) if isinstance(outer.func, ast.Call) and outer.func.args[:1] == uses else None
        if isinstance(outer.func, ast.Call) and given is not None:
            handed = ast.Call(ast.Name("_"), inner.args, inner.keywords)
            arguments = code(handed, {k: code(v) for k, v in given.items()}).removeprefix("_")
            yield both(text, {function: None}, [(outer, code_with(outer.func, uses[0], inner.func) + arguments)])


def _names_one_of(callee: ast.expr, names: set[str], function: Function) -> bool:
    """Whether `a.b.c` starts at one of the names, and that name is not a parameter of the enclosing function."""
    return dotted(callee) is not None and root(callee) in names and not stores(function.args, root(callee) or "")


def _hands_to(function: Function, skip: int) -> ast.expr | None:
    """The callee, if all a function does is call it with exactly its own parameters."""
    statement = function.body[0]
    call = statement.value if isinstance(statement, (ast.Return, ast.Expr)) else None
    parameters = [a.arg for a in function.args.args][skip:]
    if not isinstance(call, ast.Call) or call.keywords or function.args.kwonlyargs:
        return None
    given = [a.id if isinstance(a, ast.Name) else None for a in call.args]
    return call.func if given == parameters else None


def constant_parameters(text: str) -> Iterator[str]:
    """Inlines a parameter in `text` to which every call passes the same constant, or a global with the parameter's own name.

    A parameter of an `autograd.Function` that `forward` does not read goes as well, with what `backward` returns for it.
    """
    tree = ast.parse(text)
    for function, made, skip in _all_called(tree):
        given = [bound_arguments(function, c, skip=skip) for c in made]
        if any(g is None for g in given):
            continue
        positional = [a.arg for a in (*function.args.posonlyargs, *function.args.args)[skip:]]
        for parameter in positional + [a.arg for a in function.args.kwonlyargs]:
            values = {code(g[parameter]): g[parameter] for g in given if g is not None}
            value, expression = next(iter(values.items()))
            constant = len(values) == 1 and (isinstance(expression, (ast.Constant, ast.UnaryOp)) or value == parameter)
            backward = _backward(tree, function)
            reads = [n for s in function.body for n in loads(s, parameter)]
            if not (constant or (function.name == "forward" and not reads)) or stores(function, parameter) != 1:
                continue
            expressions: list[tuple[ast.expr, str]] = [(n, value) for n in reads]
            expressions += [(c, _call_without(c, function, parameter, skip)) for c in made]
            if backward is not None and len(backward.elts) == len(positional) > 1:
                kept = [e for e, p in zip(backward.elts, positional, strict=True) if p != parameter]
                expressions.append((backward, ", ".join(code(e) for e in kept)))
            header = _header_without(text, function, parameter)
            if header is not None:
                lines = spliced(text, expressions).split("\n")
                lines[function.lineno - 1] = " " * function.col_offset + header
                yield "\n".join(lines)


def _all_called(tree: ast.Module) -> Iterator[tuple[Function, list[ast.Call], int]]:
    """Functions that are only ever called, with these calls and the number of leading parameters that a call does not pass.

    A constructor is called through its class, `forward` of an `autograd.Function` through `apply`.
    """
    classes = [c for c in tree.body if isinstance(c, ast.ClassDef)]
    named: list[tuple[str, Function, int]] = [(f.name, f, 0) for f in tree.body if isinstance(f, FUNCTIONS)]
    named += [(c.name, m, 1) for c in classes for m in c.body if isinstance(m, FUNCTIONS) and m.name == "__init__"]
    for name, function, skip in named:
        made = calls(tree, name)
        if made and len(made) == len(loads(tree, name)):
            yield function, made, skip
    for owner in (c for c in classes if any((dotted(b) or "").endswith("Function") for b in c.bases)):
        applied = [n for n in ast.walk(tree) if isinstance(n, ast.Attribute) and dotted(n) == f"{owner.name}.apply"]
        made = [n for n in ast.walk(tree) if isinstance(n, ast.Call) and n.func in applied]
        for method in owner.body:
            if isinstance(method, FUNCTIONS) and method.name == "forward" and made and len(made) == len(applied):
                yield method, made, 1


def _backward(tree: ast.Module, forward: Function) -> ast.Tuple | None:
    """The tuple of gradients that the `backward` next to a `forward` returns at its end."""
    for owner in (c for c in tree.body if isinstance(c, ast.ClassDef) and forward in c.body):
        for method in (m for m in owner.body if isinstance(m, FUNCTIONS) and m.name == "backward"):
            value = getattr(method.body[-1], "value", None)
            return value if isinstance(value, ast.Tuple) else None
    return None


def _call_without(call: ast.Call, function: Function, parameter: str, skip: int) -> str:
    order = [a.arg for a in (*function.args.posonlyargs, *function.args.args)][skip:]
    kept = [a for i, a in enumerate(call.args) if order[i] != parameter]
    return code(ast.Call(call.func, kept, [k for k in call.keywords if k.arg != parameter]))


def _header_without(text: str, function: Function, parameter: str) -> str | None:
    """The `def` line without one parameter; None if it runs over several lines."""
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
