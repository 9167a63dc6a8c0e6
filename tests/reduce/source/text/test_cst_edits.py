"""Edits of a tree, alone and together."""

from __future__ import annotations

import libcst as cst

from bot.reduce.source.text.cst_edits import Edit, apply, is_pass, level, remove, show, small, statements, together, walk

MODULE = cst.parse_module("if a:\n    b = f(x, y)\nelse:\n    c\n")


def at(text: str) -> cst.CSTNode:
    return next(node for node in walk(MODULE) if show(node).strip() == text)


def test_statements_by_their_depth() -> None:
    assert [show(s).strip() for s in level(MODULE, 1)] == ["b = f(x, y)", "c"]
    assert level(MODULE, 2) == []
    assert len(list(statements(MODULE))) == 3


def test_a_body_that_loses_everything_is_left_with_pass() -> None:
    text = apply(MODULE, [remove(level(MODULE, 1)[0])])
    assert text == "if a:\n    pass\nelse:\n    c\n"
    assert is_pass(level(cst.parse_module(text), 1)[0])
    assert small(level(MODULE, 0)[0]) is None


def test_an_argument_goes_with_its_comma() -> None:
    call = at("f(x, y)")
    assert isinstance(call, cst.Call)
    assert apply(MODULE, [remove(call.args[1])]) == MODULE.code.replace("x, y", "x")


def test_edits_are_made_together_and_weighed() -> None:
    a, c = Edit(((at("a"), lambda _: cst.Name("z")),), 3), remove(level(MODULE, 1)[1])
    both = together([a, c])
    assert apply(MODULE, [both]) == apply(MODULE, [a, c]) == "if z:\n    b = f(x, y)\nelse:\n    pass\n"
    assert both.weight == a.weight + c.weight
    assert len(both.nodes) == 2


def test_what_makes_no_program_is_none() -> None:
    one = cst.parse_module("import a\n")
    assert apply(one, [remove(next(n for n in walk(one) if isinstance(n, cst.ImportAlias)))]) is None
