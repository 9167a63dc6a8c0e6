"""Blocks of a statement, and what of it is its own."""

from __future__ import annotations

import ast

from bot.reduce.source.text.blocks import all_blocks, blocks, in_order, own_nodes, own_now

TRY = ast.parse("try:\n    a\nexcept E:\n    b\nelse:\n    c\nfinally:\n    d\n").body[0]
MATCH = ast.parse("match x:\n    case 1:\n        a\n    case _:\n        b\n").body[0]


def code(found: list[list[ast.stmt]]) -> list[str]:
    return [ast.unparse(statement) for block in found for statement in block]


def names(found: list[ast.AST]) -> list[str]:
    return [n.id for n in found if isinstance(n, ast.Name)]


def test_own_blocks_and_those_of_clauses() -> None:
    assert code(list(blocks(TRY))) == ["a", "c", "d"]
    assert code(list(all_blocks(TRY))) == ["a", "c", "d", "b"]
    assert code(list(blocks(MATCH))) == []
    assert code(list(all_blocks(MATCH))) == ["a", "b"]
    assert list(blocks(ast.parse("lambda: x").body[0])) == []


def test_statements_in_order_without_those_of_functions() -> None:
    body = ast.parse("if a:\n    b\nelse:\n    c\ndef f():\n    d\ntry:\n    e\nexcept E:\n    g\n").body
    assert [ast.unparse(s).split("\n")[0] for s in in_order(body)] == ["if a:", "b", "c", "def f():", "try:", "e", "g"]


def test_own_nodes_of_a_compound_statement_are_those_of_its_head() -> None:
    loop = ast.parse("for a in b(c):\n    d\n").body[0]
    assert sorted(names(list(own_nodes(loop)))) == ["a", "b", "c"]


def test_what_runs_with_a_statement() -> None:
    function = ast.parse("@a\ndef f(x=b):\n    c\n").body[0]
    assert names(list(own_now(function))) == ["a"]
    assert names(list(own_now(ast.parse("f(lambda: a, [b for c in d])").body[0]))) == ["f", "d"]
