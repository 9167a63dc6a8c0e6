"""Protects functions that the compiler calls if the failure is wrong numbers: what they compute is the failure.

The message of such a failure does not identify the error. A lowering that returns something else is wrong too, but it is a different error
from the user's; so is an operator whose kernel and lowering disagree. So their statements may go, and they may go as a whole, but whatever
stays is unchanged.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Collection, Iterator

from bot.reduce.source.text.blocks import FUNCTIONS
from bot.reduce.source.text.names import dotted, names_of
from bot.reduce.source.text.variables import imported_names

Keeps = Callable[[str], bool]
_DEFINITIONS = (*FUNCTIONS, ast.ClassDef)
# Names in `torch.library`, and methods of operators made with it, that register a function: as a decorator, or as an argument. The last
# two register what the compiler calls in an operator's place.
_REGISTER_NAMES = """custom_op triton_op register_fake impl_abstract register_kernel register_autograd register_vmap impl impl_backward
    register_decomposition register_lowering"""
_REGISTER = frozenset(_REGISTER_NAMES.split())
# Operations that call functions which they are given, and need what these return.
_CONTROL_FLOW = frozenset({"cond", "while_loop", "map", "scan", "associative_scan"})


def keeper(text: str, names: Collection[str]) -> Keeps:
    """A check whether a candidate keeps at least one of the functions and classes of `text` called `names`, and has not changed them.

    Whatever is left of them, of the kernels of operators, and of what these use, must be as in `text` except for removed statements; there
    must be no lambda that is not in `text`. Without `names` and kernels every candidate passes. Raises SyntaxError if `text` is not
    Python.
    """
    tree = ast.parse(text)
    defined = _definitions(tree)
    wanted = {name for name in names if name in defined}
    held = wanted | {name for name in registered(tree) if name in defined}
    if not names and not held:
        return lambda _text: True
    more = set(held)
    while more:
        used = {name for one in more for node in defined[one] for name in names_of(node).uses}
        more = {name for name in used if name in defined} - held
        held |= more
    said = {name: {word for node in defined[name] for word in words(node)} for name in held}
    returns, lambdas = returned(tree), _lambdas(tree)

    def keeps(candidate: str) -> bool:
        try:
            found = ast.parse(candidate)
        except SyntaxError:
            return False
        there = {name: nodes for name, nodes in _definitions(found).items() if name in held}
        same = all(set(words(node)) <= said[name] for name, nodes in there.items() for node in nodes)
        returning = {place: values for place, values in returned(found).items() if held.intersection(place.split("."))}
        return same and returning.items() <= returns.items() and _lambdas(found) <= lambdas and (not wanted or bool(wanted & there.keys()))

    return keeps


def returned(tree: ast.Module) -> dict[str, str]:
    """What each function and class of a module (`tree`) returns, as written in the source, by qualified name."""
    found: dict[str, str] = {}

    def visit(node: ast.AST, inside: str) -> None:
        if isinstance(node, _DEFINITIONS):
            inside = f"{inside}.{node.name}"
            found[inside] = ""
        elif isinstance(node, ast.Return) and node.value is not None:
            found[inside] = found.get(inside, "") + f"{ast.unparse(node.value)}\n"
        for child in ast.iter_child_nodes(node):
            visit(child, inside)

    visit(tree, "")
    return found


def registered(tree: ast.Module) -> set[str]:
    """The names of the functions in a module (`tree`) that are kernels or fakes of operators, or stand for operators in the compiler: by a
    decorator, as an argument, or in a table with keys that are no strings (those of settings are)."""
    found: set[str] = set()
    for node in ast.walk(tree):
        given: list[ast.expr | None] = []
        if isinstance(node, FUNCTIONS):
            found |= {node.name for one in node.decorator_list if _registers(one)}
        elif isinstance(node, ast.Call) and _registers(node):
            given = [*node.args, *(word.value for word in node.keywords)]
        elif isinstance(node, ast.Dict):
            given = [value for key, value in zip(node.keys, node.values, strict=True) if key is not None and not _is_string(key)]
        elif isinstance(node, ast.Assign):
            tables = [one for one in node.targets if isinstance(one, ast.Subscript)]
            given = [node.value for one in tables if not _is_string(one.slice)]
        found |= {one.id for one in given if isinstance(one, ast.Name)}
    return found


def words(statement: ast.stmt, *, inside: bool = True) -> Iterator[str]:
    """The content of a `statement`: one string for each simple statement and each compound statement's header in it; without `inside` only
    its own."""
    for node in ast.walk(statement) if inside else [statement]:
        if isinstance(node, ast.stmt) and not isinstance(node, ast.Pass):
            inner = [child for child in ast.iter_child_nodes(node) if isinstance(child, (ast.stmt, ast.excepthandler, ast.match_case))]
            if not inner:
                yield ast.unparse(node)
            else:
                heads = [child for child in ast.iter_child_nodes(node) if child not in inner and not isinstance(child, ast.expr_context)]
                yield " ".join([type(node).__name__, getattr(node, "name", ""), *map(ast.unparse, heads)])


def nothing_dead(text: str) -> Keeps:
    """A check whether the functions of a candidate return something where those of `text` do, and leave no more of their results unread.

    Compilers drop what nothing reads. If a failure is an error that only eager raises, dead code would hide that error too. Raises
    SyntaxError if `text` is not Python.
    """
    before = _unread_of_functions(ast.parse(text))
    most = max(before.values(), default=0)

    def keeps(candidate: str) -> bool:
        try:
            tree = ast.parse(candidate)
        except SyntaxError:
            return False
        after = _unread_of_functions(tree)
        names = {node.name for node in ast.walk(tree) if isinstance(node, FUNCTIONS)}
        return before.keys() & names <= after.keys() and all(unread <= before.get(name, most) for name, unread in after.items())

    return keeps


def branches_return(text: str) -> Keeps:
    """Whether the functions that a text gives to torch's control flow return something where those of `text` do.

    `torch.cond` and its kin refuse a branch without results, in eager as well, even if something else is refused first. Raises SyntaxError
    where `text` is not Python.
    """
    before = _branches(ast.parse(text))
    if not any(before.values()):
        return lambda _text: True

    def keeps(candidate: str) -> bool:
        try:
            after = _branches(ast.parse(candidate))
        except SyntaxError:
            return False
        return all(after[name] for name in after if before.get(name, True))

    return keeps


def _branches(tree: ast.Module) -> dict[str, bool]:
    """The functions that control flow is given, and whether each returns something."""
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    builtin = {"map"} - imported_names(tree)
    given = {
        (dotted(one) or "").rpartition(".")[2]
        for call in calls
        if (name := dotted(call.func) or "").rpartition(".")[2] in _CONTROL_FLOW and name not in builtin
        for one in [*call.args, *(word.value for word in call.keywords)]
    }
    return {
        node.name: any(isinstance(one, ast.Return) and not _is_none(one.value) for one in ast.walk(node))
        for node in ast.walk(tree)
        if isinstance(node, FUNCTIONS) and node.name in given
    }


def _is_none(value: ast.expr | None) -> bool:
    return value is None or (isinstance(value, ast.Constant) and value.value is None)


def _unread_of_functions(tree: ast.Module) -> dict[str, int]:
    """For each function that returns something, the number of statements whose results nothing reads."""
    found: dict[str, int] = {}
    for function in ast.walk(tree):
        if isinstance(function, FUNCTIONS):
            inside = list(ast.walk(function))
            returns = [node.value for node in inside if isinstance(node, ast.Return)]
            if any(value is not None and not isinstance(value, ast.Constant) for value in returns):
                read = {node.id for node in inside if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)}
                unread = sum(_is_unread(node, read) for node in inside)
                found[function.name] = max(unread, found.get(function.name, 0))
    return found


def _is_unread(statement: ast.AST, read: Collection[str]) -> bool:
    if isinstance(statement, ast.Expr):
        return not isinstance(statement.value, ast.Constant)
    if not isinstance(statement, ast.Assign):
        return False
    stored = [node for target in statement.targets for node in ast.walk(target) if isinstance(getattr(node, "ctx", None), ast.Store)]
    return all(isinstance(node, (ast.Tuple, ast.List)) or (isinstance(node, ast.Name) and node.id not in read) for node in stored)


def _definitions(tree: ast.Module) -> dict[str, list[ast.stmt]]:
    """The statements that define functions, classes and values of each name, at any level."""
    found: dict[str, list[ast.stmt]] = {}
    for node in ast.walk(tree):
        if isinstance(node, _DEFINITIONS):
            found.setdefault(node.name, []).append(node)
        elif isinstance(node, ast.Assign):
            for target in node.targets:
                if isinstance(target, ast.Name):
                    found.setdefault(target.id, []).append(node)
    return found


def _is_string(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def _registers(node: ast.expr) -> bool:
    called = node.func if isinstance(node, ast.Call) else node
    return (dotted(called) or "").rpartition(".")[2] in _REGISTER


def _lambdas(tree: ast.Module) -> set[str]:
    return {ast.unparse(node) for node in ast.walk(tree) if isinstance(node, ast.Lambda)}
