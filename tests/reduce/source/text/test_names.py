"""Names that a statement binds and uses."""

from __future__ import annotations

import ast

import pytest

from bot.reduce.source.text.names import dotted, global_names, names_of, root


@pytest.mark.parametrize(
    ("code", "bound", "used"),
    [
        ("a = b + len(c)", {"a"}, {"b", "c"}),
        ("def f(x=a):\n    return x + b", {"f"}, {"a", "b"}),
        ("def f():\n    global a\n    a = b", {"a", "f"}, {"b"}),
        ("import a.b as c", {"c"}, set()),
        ("from a import *", {"*"}, set()),
        ("return a", set(), {"a"}),
        ("await a", set(), {"a"}),
        ("break", set(), set()),
        ("[a for a in b]", set(), {"b"}),
    ],
)
def test_names_of_a_statement(code: str, bound: set[str], used: set[str]) -> None:
    found = names_of(ast.parse(code).body[0])
    assert (found.binds, found.uses) == (bound, used)


def test_global_names_of_a_program() -> None:
    assert global_names("def f():\n    global a\n    import a\n    x = 1\n    return b(x)\n") == ({"a", "f"}, {"b"})


def test_the_beginning_and_the_whole_of_a_dotted_name() -> None:
    def expression(code: str) -> ast.expr:
        return ast.parse(code, mode="eval").body

    assert root(expression("a.b[c](d).e")) == "a"
    assert root(expression("(a + b).c")) is None
    assert dotted(expression("a.b.c")) == "a.b.c"
    assert dotted(expression("a().c")) is None
