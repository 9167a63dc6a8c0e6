"""Where a tree reads and binds variables."""

from __future__ import annotations

import ast

import pytest

from bot.reduce.source.text.variables import binds, imported_names, loads, module_names, parameters, reads, stores, writes


def statement(code: str) -> ast.stmt:
    return ast.parse(code).body[0]


@pytest.mark.parametrize(
    ("code", "read", "written"),
    [
        ("a.b = c", {"a", "c"}, {".b"}),
        ("a[i] = c", {"a", "i", "c"}, {"a"}),
        ("a += b.c", {"a", "b", ".c"}, {"a"}),
        ("import a.b as c, d.e", set(), {"c", "d"}),
        ("def f(x):\n    y = x", {"x"}, {"f", "y"}),
    ],
)
def test_reads_and_writes(code: str, read: set[str], written: set[str]) -> None:
    assert reads(statement(code)) == read
    assert writes(statement(code)) == written


@pytest.mark.parametrize(
    ("code", "bound"),
    [
        ("a, b = c", {"a", "b"}),
        ("def f(x):\n    y = x", {"f"}),
        ("for a in b:\n    c = 1", {"a"}),
        ("a = [b for b in c]", {"a"}),
        ("try:\n    a = 1\nexcept E as e:\n    b = 1", {"e"}),
        ("if (a := b):\n    c = 1", {"a"}),
        ("import a.b, c as d", {"a", "d"}),
    ],
)
def test_what_a_statement_itself_binds(code: str, bound: set[str]) -> None:
    assert binds(statement(code)) == bound


def test_parameters_and_declared_names() -> None:
    assert parameters(statement("def f(a, /, b, *c, d=1, **e):\n    global g\n    h = 1")) == {"a", "b", "c", "d", "e", "g"}
    assert parameters(statement("a = 1")) == set()


def test_places_of_one_variable() -> None:
    tree = ast.parse("import a\na = a + 1\ndef f(a):\n    return b\nclass a: pass\n")
    assert [n.lineno for n in loads(tree, "a")] == [2]
    assert stores(tree, "a") == 4
    assert stores(tree, "b") == 0


def test_names_of_a_module() -> None:
    tree = ast.parse("import a.b, c as d\nfrom e import f\ng = 1\n")
    assert imported_names(tree) == {"a", "d", "f"}
    assert module_names(tree) == {"a", "d", "f", "g"}
