"""Where a program can be cut: independent edits that remove something, by kind.

Every function takes the tree of a text in normal form and returns edits of it; the search finds out how many can be made.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import libcst as cst

from bot.reduce.source.text.compiler_calls import ENTRIES, EXPORTERS, MAKES_CALLABLE
from bot.reduce.source.text.cst_edits import Edit, blocks, body_of, is_pass, level, remove, show, small, statements, together, walk, width
from bot.reduce.source.text.normal_form import MARK

_COMPOUND = (cst.If, cst.For, cst.While, cst.With, cst.Try)
# The operands that may replace an expression.
_SIDES: dict[type[cst.CSTNode], tuple[str, ...]] = {
    cst.BinaryOperation: ("left", "right"),
    cst.BooleanOperation: ("left", "right"),
    cst.Comparison: ("left",),
    cst.IfExp: ("body", "orelse"),
    cst.UnaryOperation: ("expression",),
    cst.Await: ("expression",),
    cst.Subscript: ("value",),
}


def levels(module: cst.Module, depth: int) -> list[Edit]:
    """Deletions of the statements of `module` at one `depth` of nesting, the last statement first."""
    return [remove(s) for s in reversed(level(module, depth)) if not is_pass(s)]


def unwraps(module: cst.Module) -> list[Edit]:
    """Replaces a `with`, `if`, `for`, `while` or `try` in `module` by its body, and an `if` also by its `else`; removes an `else`, and one
    of several contexts.

    What a removed context bound becomes its expression, or an operand of it.
    """
    out: list[Edit] = []
    for statement in statements(module):
        if isinstance(statement, cst.With):
            out += [Edit(((statement, change),), 8) for item in statement.items for change in _left(item, len(statement.items))]
        if isinstance(statement, _COMPOUND) and isinstance(statement.body, cst.IndentedBlock):
            out.append(Edit(((statement, _body),), 8))
            if isinstance(statement, (cst.If, cst.For, cst.While)) and statement.orelse is not None:
                out.append(remove(statement.orelse))
            if isinstance(statement, cst.If) and statement.orelse is not None:
                out.append(Edit(((statement, _otherwise),), 8))
    return out


def _left(item: cst.WithItem, items: int) -> list[Any]:
    """Functions that remove this one of `items` contexts from a `with`; the `with` itself goes with its last context."""
    shown, target = show(item.item), item.asname and item.asname.name

    def without(give: Any) -> Any:
        def change(node: Any) -> Any:
            found = [one for one in getattr(node, "items", ()) if show(one.item) == shown]
            rest = [one for one in getattr(node, "items", ()) if one not in found]
            if not found or not (rest or target):
                return node
            line = [cst.SimpleStatementLine([cst.Assign([cst.AssignTarget(target)], give(found[0].item))])] if target else []
            kept = (
                [node.with_changes(items=[*rest[:-1], rest[-1].with_changes(comma=cst.MaybeSentinel.DEFAULT)])] if rest else node.body.body
            )
            return cst.FlattenSentinel([*line, *kept])

        return change

    if target is None:
        return [without(None)] if items > 1 else []
    return [without(give) for give in (_itself, *_operand_changes(item.item)[:1])]


def _itself(node: Any) -> Any:
    return node


def _otherwise(node: cst.CSTNode) -> cst.CSTNode | cst.FlattenSentinel[Any]:
    other: Any = getattr(node, "orelse", None)
    return node if other is None else other if isinstance(other, cst.If) else _body(other)


def _body(node: cst.CSTNode) -> cst.FlattenSentinel[Any]:
    body: Any = getattr(node, "body", None)
    return cst.FlattenSentinel(list(body.body))


def operands(module: cst.Module, which: int = 0) -> list[Edit]:
    """Replaces an expression in `module` by one of its operands: a call by its object or first argument, `a + b` by `a`.

    `which` selects the operand: 1 is the second one, of expressions that have that many.
    """
    return [
        Edit(((node, change),), width(node))
        for statement in statements(module)
        for expression in _expressions(statement)
        for node in _operands_in(expression)
        for change in _operand_changes(node)[which : which + 1]
    ]


def _expressions(statement: cst.CSTNode) -> Iterator[cst.CSTNode]:
    """The expressions that a statement evaluates: for a compound statement, those in its header."""
    line = small(statement)
    if line is not None:
        if not isinstance(line, (cst.Import, cst.ImportFrom)):
            yield line
    elif isinstance(statement, (cst.If, cst.While)):
        # `if x.sum() > 0` as `if x.sum()`: the other operand of a comparison is usually a constant
        yield cst.Expr(statement.test)
    elif isinstance(statement, cst.For):
        yield cst.Expr(statement.iter)
    elif isinstance(statement, cst.With):
        yield from statement.items


def _operands_in(line: cst.CSTNode) -> Iterator[cst.CSTNode]:
    """The expressions below a node that have operands, outermost first."""
    for child in line.children:
        # callees and targets are not values
        named = isinstance(child, cst.Attribute) and child in (getattr(line, "func", None), getattr(line, "target", None))
        if not named and _operand_changes(child):
            yield child
        yield from _operands_in(child)


def _operand_changes(node: cst.CSTNode) -> list[Any]:
    """Functions that turn an expression (with its parts already edited) into one of its operands."""
    if isinstance(node, cst.Call):
        if _callee(node) in ENTRIES:
            return []
        own = isinstance(node.func, cst.Attribute) and _computed(node.func.value) and not _is_module(node.func.value)
        given = [_argument(index) for index, a in enumerate(node.args) if a.star == "" and _computed(a.value)]
        return [_object, *given] if own else given
    if isinstance(node, cst.Attribute):
        if not isinstance(node.value, (cst.Call, cst.BinaryOperation, cst.Subscript)):
            return []
        return [_side("value"), *(_below(change) for change in _operand_changes(node.value))]
    if isinstance(node, cst.UnaryOperation) and isinstance(node.expression, (cst.Integer, cst.Float)):
        return []
    return [_side(name) for name in _SIDES.get(type(node), ())]


def _callee(node: cst.Call) -> str:
    if isinstance(node.func, cst.Attribute):
        return node.func.attr.value
    return node.func.value if isinstance(node.func, cst.Name) else ""


def _computed(node: cst.BaseExpression) -> bool:
    """Whether it is a variable or a computation, which may replace a call."""
    return isinstance(node, (cst.Name, cst.Call, cst.BinaryOperation, cst.Attribute, cst.Subscript)) and not (
        isinstance(node, cst.Name) and node.value in ("True", "False", "None", "self")
    )


def _is_module(node: cst.BaseExpression) -> bool:
    while isinstance(node, cst.Attribute):
        node = node.value
    return isinstance(node, cst.Name) and node.value in ("torch", "nn", "F", "np", "math", "self", "super")


def _argument(index: int) -> Any:
    # after other edits it may not be a call any more
    return lambda node: node.args[min(index, len(node.args) - 1)].value if isinstance(node, cst.Call) and node.args else node


def _object(node: Any) -> Any:
    return node.func.value if isinstance(node, cst.Call) and isinstance(node.func, cst.Attribute) else node


def _side(name: str) -> Any:
    return lambda node: getattr(node, name, node)


def _below(change: Any) -> Any:
    return lambda node: change(node.value) if isinstance(node, cst.Attribute) else node


def plain_values(module: cst.Module) -> list[Edit]:
    """Drops the assignment in a statement of `module` but keeps its value; `x = e` before `return x` becomes `return e`."""
    out: list[Edit] = []
    for block in (b for outer in (module, *statements(module)) for b in blocks(outer)):
        body = body_of(block)
        for statement, following in zip(body, [*body[1:], None], strict=True):
            line = small(statement)
            after = small(following) if following is not None else None
            if isinstance(line, cst.Assign) and isinstance(after, cst.Return) and _is_name(line.targets[0].target, after.value):
                assert following is not None
                kept = following if MARK in show(following) else statement
                out.append(Edit(((statement, _returned(kept)), *remove(following).changes), width(line.targets[0])))
            elif isinstance(line, cst.AugAssign) or (isinstance(line, cst.Assign) and not isinstance(line.targets[0].target, cst.Name)):
                out.append(Edit(((line, _value),), width(line) - width(line.value)))
    return out


def _value(node: Any) -> Any:
    return cst.Expr(node.value)


def _is_name(target: cst.BaseAssignTargetExpression, value: cst.BaseExpression | None) -> bool:
    return isinstance(target, cst.Name) and isinstance(value, cst.Name) and target.value == value.value


def _returned(marked: Any) -> Any:
    return lambda node: node.with_changes(body=[cst.Return(node.body[0].value)], trailing_whitespace=marked.trailing_whitespace)


def arguments(module: cst.Module) -> list[Edit]:
    """Removes an argument of a call, an element of a list, a base class or a decorator in `module`."""
    out: list[Edit] = []
    targets = _targets_in(module)
    for node in walk(module):
        if isinstance(node, cst.Call):
            first = 1 if _callee(node) in ENTRIES else 0
            # a simpler backend than the default tells the reader which parts are not at fault
            out += [remove(a) for a in reversed(node.args[first:]) if not (first and a.keyword and a.keyword.value == "backend")]
        elif isinstance(node, (cst.List, cst.Tuple, cst.Set, cst.Dict)) and node not in targets:
            out += [remove(e) for e in reversed(node.elements)]
        elif isinstance(node, cst.ClassDef):
            out += [remove(n) for n in (*node.bases, *node.keywords, *node.decorators)]
        elif isinstance(node, cst.FunctionDef):
            out += [remove(d) for d in node.decorators if not _binds(d)]
    return out


def unread_names(module: cst.Module) -> list[Edit]:
    """A name that an `except` or a `with` of `module` gives and that nothing below it reads goes."""
    out: list[Edit] = []
    for node in walk(module):
        if isinstance(node, cst.ExceptHandler):
            out += _without_name(node, "name", node.body)
        elif isinstance(node, cst.With):
            for item in node.items:
                out += _without_name(item, "asname", module)
    return out


def _without_name(node: Any, place: str, readers: cst.CSTNode) -> list[Edit]:
    given = getattr(node, place)
    if given is None or not isinstance(given.name, cst.Name):
        return []
    reads = sum(isinstance(one, cst.Name) and one.value == given.name.value for one in walk(readers))
    if reads > (place == "asname"):  # there it is among them itself
        return []
    return [Edit(((node, lambda one: one.with_changes(**{place: None})),), width(given))]


def _binds(decorator: cst.Decorator) -> bool:
    """Whether the decorator determines how a method is called: without it, the method works only by luck."""
    return isinstance(decorator.decorator, cst.Name) and decorator.decorator.value in ("staticmethod", "classmethod", "property")


def _targets_in(module: cst.Module) -> set[cst.CSTNode]:
    """Assignment targets, and the lists and tuples that such a target unpacks."""
    found: set[cst.CSTNode] = set()
    for node in walk(module):
        if isinstance(node, (cst.AssignTarget, cst.For, cst.CompFor)):
            found.add(node.target)
        elif isinstance(node, cst.Assign) and isinstance(node.targets[0].target, (cst.Tuple, cst.List)):
            found.add(node.value)
    return found


def type_annotations(module: cst.Module) -> list[Edit]:
    """Removes type annotations from `module`."""
    out: list[Edit] = []
    for node in walk(module):
        if isinstance(node, cst.FunctionDef) and node.returns is not None:
            out.append(Edit(((node, lambda n: n.with_changes(returns=None)),), 8))
        elif isinstance(node, cst.Param) and node.annotation is not None:
            out.append(Edit(((node, _bare_parameter),), 6))
    return out


def _bare_parameter(node: Any) -> Any:
    equal = cst.AssignEqual(cst.SimpleWhitespace(""), cst.SimpleWhitespace(""))
    return node.with_changes(annotation=None, equal=equal if node.default is not None else cst.MaybeSentinel.DEFAULT)


def parameters(module: cst.Module) -> list[Edit]:
    """Removes a parameter in `module`, together with the arguments for it in calls by that name; repair removes what reads it."""
    out: list[Edit] = []
    calls = [n for n in walk(module) if isinstance(n, cst.Call)]
    aliases = _aliases(module)
    shared = {n.value for s in module.body for n in _targets(s)}
    tuples = _tuples(module)
    for name, function, method in _functions(module):
        positional = [*function.params.posonly_params, *function.params.params]
        for parameter in reversed([*positional, *function.params.kwonly_params]):
            if method and positional and parameter is positional[0]:
                continue
            own = parameter.name.value
            if own in shared and any(isinstance(n, cst.Name) and n.value == own for n in walk(function.body)):
                continue  # the body would read the outer variable with that name
            index = next((i for i, p in enumerate(positional) if p is parameter), None)
            edits = [remove(parameter)]
            for call in calls:
                if name in _called_names(call, aliases) or (name == "forward" and _calls_module(call)):
                    argument = _given(call, own, None if index is None else index - int(method))
                    edits += [remove(argument)] if argument is not None else []
                elif name == "forward" and index is not None and _callee(call) in EXPORTERS:
                    edits += map(remove, _exported_with(call, own, index - int(method), tuples))
            out.append(together(edits))
    return out


def _functions(module: cst.Module) -> Iterator[tuple[str, cst.FunctionDef, bool]]:
    """(name by which it is called, function, whether it is a method)."""
    for statement in statements(module):
        if isinstance(statement, cst.ClassDef) and isinstance(statement.body, cst.IndentedBlock):
            for inner in statement.body.body:
                if isinstance(inner, cst.FunctionDef):
                    yield _called_by(statement, inner.name.value), inner, True
        elif isinstance(statement, cst.FunctionDef):
            owned = statement.params.params and statement.params.params[0].name.value == "self"
            if not owned:
                yield statement.name.value, statement, False


def _called_by(owner: cst.ClassDef, method: str) -> str:
    """The name by which a method is called: an autograd function runs its `forward` through `apply`."""
    if method == "forward" and any(show(base.value).endswith("Function") for base in owner.bases):
        return "apply"
    return owner.name.value if method == "__init__" else method


def _targets(statement: cst.CSTNode) -> list[cst.Name]:
    line = small(statement)
    if not isinstance(line, cst.Assign):
        return []
    return [n for target in line.targets for n in walk(target.target) if isinstance(n, cst.Name)]


def _aliases(module: cst.Module) -> dict[str, str]:
    """Variables that stand for a function: `g = f`, `g = torch.compile(f)`."""
    out: dict[str, str] = {}
    for node in walk(module):
        if isinstance(node, cst.Assign) and isinstance(node.targets[0].target, cst.Name):
            function = _compiled(node.value)
            if function is not None:
                out[node.targets[0].target.value] = function
    return out


def _compiled(node: cst.BaseExpression) -> str | None:
    if isinstance(node, cst.Call) and _callee(node) in ENTRIES and node.args:
        node = node.args[0].value
    return node.value if isinstance(node, cst.Name) else None


def _called_names(call: cst.Call, aliases: dict[str, str]) -> set[str]:
    """The names of functions that a call may refer to: its own, and what that stands for."""
    if _callee(call) in ENTRIES:
        return set()
    function = _compiled(call.func) if isinstance(call.func, cst.Call) else None
    own = _callee(call)
    return {n for n in (own, aliases.get(own), function, aliases.get(function or "")) if n}


def _calls_module(call: cst.Call) -> bool:
    """Whether a call may be that of a module object: `self.block(x)`, `compiled(x)`, `torch.compile(m)(x)`."""
    if _callee(call) in ENTRIES:
        return False
    if isinstance(call.func, cst.Call):
        return _callee(call.func) in MAKES_CALLABLE
    if isinstance(call.func, cst.Attribute):
        return isinstance(call.func.value, cst.Name) and call.func.value.value == "self"
    return isinstance(call.func, cst.Name) and call.func.value[:1].islower() and call.func.value not in ("print", "super", "range", "len")


def _tuples(module: cst.Module) -> dict[str, cst.Tuple]:
    """Tuples that are assigned to a name."""
    lines = [line for line in map(small, statements(module)) if isinstance(line, cst.Assign) and isinstance(line.value, cst.Tuple)]
    return {t.target.value: line.value for line in lines for t in line.targets if isinstance(t.target, cst.Name)}  # type: ignore[misc]


def _exported_with(call: cst.Call, name: str, index: int, tuples: Mapping[str, cst.Tuple]) -> list[cst.CSTNode]:
    """What an export call passes for a parameter of `forward`: an element of its arguments, and entries of its keywords and dynamic
    shapes."""
    found: list[cst.CSTNode] = []
    for place, argument in enumerate(call.args):
        keyword = argument.keyword.value if argument.keyword is not None else ("", "args", "kwargs")[min(place, 2)]
        value = tuples.get(argument.value.value, argument.value) if isinstance(argument.value, cst.Name) else argument.value
        if keyword in ("args", "dynamic_shapes") and isinstance(value, (cst.Tuple, cst.List)):
            found += value.elements[index : index + 1]
        elif keyword in ("kwargs", "dynamic_shapes") and isinstance(value, cst.Dict):
            found += [e for e in value.elements if isinstance(e, cst.DictElement) and show(e.key).strip("\"'") == name]
    return found


def _given(call: cst.Call, name: str, index: int | None) -> cst.Arg | None:
    plain = [a for a in call.args if a.keyword is None]
    named = next((a for a in call.args if a.keyword is not None and a.keyword.value == name), None)
    if named is None and index is not None and 0 <= index < len(plain) and not any(a.star for a in plain[: index + 1]):
        return plain[index]
    return named
