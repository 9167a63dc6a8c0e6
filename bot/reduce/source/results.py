"""Protects what a function's result depends on, if the failure is wrong numbers and somebody takes that function's word.

A kernel of the program's own operator is the truth that compiled code is compared with; a decomposition or a lowering stands for the
operator. A statement that only changes a value (`out.copy_(x)`, `pad += [1, 0]`, `if dim < 0: dim += x.dim()`) can be removed without an
error, and then a right function is wrong: the script still fails, but it shows a fault that the program does not have. The same goes for
code that asks whether it is compiled: its two answers are compared with each other.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from bot.reduce.source.kept import Keeps, registered, words
from bot.reduce.source.text.blocks import FUNCTIONS, Function, all_blocks, own_nodes
from bot.reduce.source.text.names import dotted, last_name, names_of, root

# Calls that say or refuse something, whatever they are given.
_SAY = frozenset({"print", "debug", "info", "warning", "warn", "error", "exception", "log"})
_REFUSE = ("_check", "check", "assert")
# Methods that store what they are given and do not change it.
_STORE = frozenset({"append", "add", "extend", "insert", "update", "setdefault", "save_for_backward"})
_ASK = frozenset({"is_compiling", "is_dynamo_compiling", "is_exporting"})


def keeps_results(text: str) -> Keeps:
    """A check whether a candidate has left alone what the results of certain functions of `text` depend on.

    These are the kernels, decompositions and lowerings that the program registers, and functions that they use: they may go as a whole,
    and may lose statements on which nothing that they return (or change, if they return nothing) depends. Whatever stays of a choice
    between compiled and not must be as it was, on both sides. Raises SyntaxError if `text` is not Python.
    """
    tree = ast.parse(text)
    needed, choices = _needed(tree), set(map(_code, _choices(tree)))
    if not needed and not choices:
        return lambda _text: True

    def keeps(candidate: str) -> bool:
        try:
            found = ast.parse(candidate)
        except SyntaxError:
            return False
        there = [(name, set(words(node))) for name, nodes in _functions(found).items() if name in needed for node in nodes]
        return all(any(one <= said for one in needed[name]) for name, said in there) and choices.issuperset(map(_code, _choices(found)))

    return keeps


def _functions(tree: ast.AST) -> dict[str, list[Function]]:
    found: dict[str, list[Function]] = {}
    for node in ast.walk(tree):
        if isinstance(node, FUNCTIONS):
            found.setdefault(node.name, []).append(node)
    return found


def _needed(tree: ast.Module) -> dict[str, list[frozenset[str]]]:
    """What has to stay of each registered function, of those between which the program chooses, and of those that they use, by name: one
    set for each function of that name."""
    functions = _functions(tree)
    chosen = {node.id for nodes in _choices(tree) for one in nodes for node in ast.walk(one) if isinstance(node, ast.Name)}
    more = (registered(tree) | chosen) & functions.keys()
    held: set[str] = set()
    while more:
        held |= more
        used = {name for one in more for node in functions[one] for name in names_of(node).uses}
        more = used & functions.keys() - held
    return {name: [frozenset(_slice(node)) for node in functions[name]] for name in held}


def _slice(function: Function) -> Iterator[str]:
    """The words of the statements on which the results of a function depend: what sets or changes what they read, and when."""
    inside = [node for node in ast.walk(function) if node is not function]
    nested = {node.name: node for node in inside if isinstance(node, FUNCTIONS)}
    needed: dict[ast.stmt, None] = {}
    read: set[str] = set()
    if not any(isinstance(node, (ast.Return, ast.Yield)) and node.value is not None for node in inside):
        read |= {node.arg for node in ast.walk(function.args) if isinstance(node, ast.arg)}
    scopes = [function]
    while True:
        before = (len(needed), len(read))
        for scope in scopes:
            _mark(scope.body, read, needed)
        scopes = [function, *(node for name, node in nested.items() if name in read)]
        if before == (len(needed), len(read)):
            break
    for statement in needed:
        yield from words(statement, inside=False)


def _mark(body: Sequence[ast.stmt], read: set[str], needed: dict[ast.stmt, None]) -> bool:
    """Adds what is needed of a block to `needed`, and what that reads to `read`; returns whether anything of it is."""
    found = False
    for statement in reversed(body):  # what a statement reads was set before it
        if isinstance(statement, (*FUNCTIONS, ast.ClassDef)):
            continue
        below = [_mark(block, read, needed) for block in all_blocks(statement)]
        leaves = isinstance(statement, (ast.Return, ast.Break, ast.Continue))
        if leaves or any(below) or not read.isdisjoint(_changes(statement)):
            found, needed[statement] = True, None
            read |= {node.id for node in own_nodes(statement) if isinstance(node, ast.Name)}
    return found


def _changes(statement: ast.stmt) -> set[str]:
    """The names whose values a statement may set or change, without the statements inside it."""
    found: set[str | None] = set()
    for node in own_nodes(statement):
        if isinstance(node, (ast.Name, ast.Attribute, ast.Subscript)) and isinstance(node.ctx, (ast.Store, ast.Del)):
            found.add(root(node))
    value = statement.value if isinstance(statement, ast.Expr) else None
    if isinstance(value, ast.Call) and not _only_says(value):
        given = [] if last_name(value.func) in _STORE else [*value.args, *(word.value for word in value.keywords)]
        found |= {root(one) for one in (value.func, *given)}
    elif isinstance(value, ast.Yield):
        found |= {node.id for node in ast.walk(value) if isinstance(node, ast.Name)}
    return {name for name in found if name is not None}


def _only_says(call: ast.Call) -> bool:
    name = (dotted(call.func) or "").rpartition(".")[2]
    return name in _SAY or name.startswith(_REFUSE)


def _choices(tree: ast.Module) -> Iterator[Sequence[ast.AST]]:
    """Each choice between compiled and not: an expression, or an `if` with what follows it if one of its sides returns."""
    for node in ast.walk(tree):
        if isinstance(node, ast.IfExp) and _asks(node.test):
            yield [node]
        for block in all_blocks(node):
            for place, statement in enumerate(block):
                if isinstance(statement, ast.If) and _asks(statement.test):
                    leaves = any(isinstance(one, ast.Return) for one in (*statement.body, *statement.orelse))
                    yield block[place:] if leaves else [statement]


def _asks(test: ast.expr) -> bool:
    return any(isinstance(node, ast.Call) and last_name(node.func) in _ASK for node in ast.walk(test))


def _code(nodes: Sequence[ast.AST]) -> str:
    return "\n".join(map(ast.unparse, nodes))
