"""How statements nest: blocks, and which nodes belong to a statement itself."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

Function = ast.FunctionDef | ast.AsyncFunctionDef
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


def blocks(node: ast.AST) -> Iterator[list[ast.stmt]]:
    """The non-empty statement lists of `node` itself: its body, `else` and `finally`."""
    for name in ("body", "orelse", "finalbody"):
        block = getattr(node, name, None)
        if isinstance(block, list) and block and isinstance(block[0], ast.stmt):
            yield block


def all_blocks(node: ast.AST) -> Iterator[list[ast.stmt]]:
    """Like `blocks`, plus those of the `except` and `case` clauses of `node`."""
    yield from blocks(node)
    for clause in (*getattr(node, "handlers", []), *getattr(node, "cases", [])):
        yield clause.body


def own_nodes(node: ast.stmt) -> Iterator[ast.AST]:
    """The nodes of a statement (`node`) that are not in statements inside it."""
    todo: list[ast.AST] = [node]
    while todo:
        here = todo.pop()
        yield here
        todo += [c for c in ast.iter_child_nodes(here) if not isinstance(c, ast.stmt)]


def own_now(node: ast.AST) -> Iterator[ast.AST]:
    """The nodes that run with a statement (`node`), without the statements and lambdas inside it."""
    yield node
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.stmt) or (isinstance(node, FUNCTIONS) and child not in node.decorator_list):
            continue
        if isinstance(child, (ast.GeneratorExp, ast.ListComp, ast.SetComp, ast.DictComp)):
            yield from own_now(child.generators[0].iter)  # the rest has its own scope
        elif not isinstance(child, ast.Lambda):
            yield from own_now(child)


def in_order(body: Sequence[ast.stmt]) -> Iterator[ast.stmt]:
    """Statements of one scope (`body`) in source order, including nested blocks but not the bodies of functions and classes."""
    for statement in body:
        yield statement
        if not isinstance(statement, (*FUNCTIONS, ast.ClassDef)):
            for child in ast.iter_child_nodes(statement):
                if isinstance(child, ast.stmt):
                    yield from in_order([child])
                elif isinstance(child, (ast.ExceptHandler, ast.match_case)):
                    yield from in_order(child.body)
