"""Expressions replaced where they stand."""

from __future__ import annotations

import ast

import pytest

from bot.reduce.source.text.normal_form import MARK
from bot.reduce.source.text.splice import both, bound_arguments, calls, code, code_with, mark_of, own_text, pairs, spliced, without, wrapped


def expression(text: str) -> ast.expr:
    return ast.parse(text, mode="eval").body


def test_columns_are_of_characters_not_of_bytes() -> None:
    text = "x = 'ä', f(a), f(b)\n"
    first, second = calls(ast.parse(text), "f")
    assert spliced(text, [(second, "2"), (first, "1")]) == "x = 'ä', 1, 2\n"
    assert spliced(text, [(first, "1"), (first.args[0], "z")]) == "x = 'ä', 1, f(b)\n", "the outer one counts"


def test_statements_and_expressions_at_once() -> None:
    text = "a = f(1)\nb = f(2)\n"
    tree = ast.parse(text)
    first, second = calls(tree, "f")
    assert both(text, {tree.body[0]: None}, [(first, "x"), (second, "y")]) == "b = y\n"
    assert both(text, {}, [(second, ")")]) == text, "no Python"


def test_code_with_other_names_and_parts() -> None:
    call = expression("f(a, b.a)")
    assert isinstance(call, ast.Call)
    assert code(call, {"a": "c + 1"}) == "f(c + 1, b.a)"
    assert code_with(call, call.args[0], expression("z")) == "f(z, b.a)"
    assert [wrapped(expression(e)) for e in ("a.b", "1", "a + b")] == ["a.b", "1", "(a + b)"]


@pytest.mark.parametrize(
    ("call", "given"),
    [
        ("f(1)", {"a": "1", "b": "2", "c": "3"}),
        ("f(1, c=4)", {"a": "1", "b": "2", "c": "4"}),
        ("f(b=5, a=6)", {"a": "6", "b": "5", "c": "3"}),
        ("f()", None),
        ("f(*x)", None),
        ("f(1, 2, 3)", None),
    ],
)
def test_arguments_by_parameter(call: str, given: dict[str, str] | None) -> None:
    function, node = ast.parse("def f(a, b=2, *, c=3): pass").body[0], expression(call)
    assert isinstance(function, ast.FunctionDef)
    assert isinstance(node, ast.Call)
    found = bound_arguments(function, node)
    assert (None if found is None else {name: ast.unparse(value) for name, value in found.items()}) == given


def test_assignments_taken_apart() -> None:
    statement = ast.parse("a, b = 1, 2").body[0]
    (a, _), _ = pairs(statement)
    assert without(statement, [a]) == "b = 2"
    assert without(statement, [t for t, _ in pairs(statement)]) is None
    assert pairs(ast.parse("a, *b = 1, 2").body[0]) == pairs(ast.parse("a = b = 1").body[0]) == []


def test_the_text_of_a_statement_and_its_mark() -> None:
    text = f"if a:\n    b(1,\n      2)  {MARK}\n    c\n"
    b, c = ast.parse(text).body[0].body  # type: ignore[attr-defined]
    assert own_text(text, b) == f"b(1,\n  2)  {MARK}"
    assert (mark_of(text, b), mark_of(text, c)) == (f"  {MARK}", "")
