"""The normal form of a text, marks, and the order of texts."""

from __future__ import annotations

import ast
import warnings

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.reduce.source.text.normal_form import MARK, legal, marked, measure, normal, unmarked

UNTIDY = '''"""Docs."""
import os; import sys
def f(a): return a; # why
class A:

    """Docs."""

    # before
    def g(self): # k
        if self: x = [1, # one

          2]
        # odd
        else: pass

    def h(self): "only this"
s = """
# kept

"""
t = f"{d['k']}" + 'a' + 'say "a"'
'''


def test_a_text_of_which_python_warns_is_legal_and_nobody_is_told() -> None:
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        assert legal("x = 1(2)\n")
    assert not told
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert legal("x = 1(2)\n")


def test_one_statement_a_line_without_comments() -> None:
    assert normal(UNTIDY) == (
        "import os\nimport sys\n\n\ndef f(a):\n    return a\n\n\n"
        "class A:\n    def g(self):\n        if self:\n            x = [1,\n              2]\n        else:\n            pass\n\n"
        '    def h(self):\n        pass\n\n\ns = """\n# kept\n\n"""\n'
        't = f"{d[\'k\']}" + "a" + \'say "a"\'\n'
    )


def test_normal_form_is_stable() -> None:
    assert normal(normal(UNTIDY)) == normal(UNTIDY)


def test_any_indentation_becomes_four_spaces() -> None:
    text = 'class A:\n\tdef f(self):\n\t  if self:\n\t  \treturn """\n\tkept\n"""\n\n  # odd\nfor a in b:\n  pass\n'
    assert normal(text) == (
        'class A:\n    def f(self):\n        if self:\n            return """\n\tkept\n"""\n\n\nfor a in b:\n    pass\n'
    )


def test_parentheses_are_not_doubled() -> None:
    assert normal("f(((1, 2),), (a), ((1, 2)))\nx = ((1, 2))\n") == "f(((1, 2),), a, (1, 2))\nx = (1, 2)\n"


def test_text_that_is_not_python_is_refused() -> None:
    with pytest.raises(SyntaxError):
        normal("def (")
    for unreadable in ("x = 1\0\n", "x = " + "-" * 100_000 + "1\n", "x = " + "+".join("a" * 5000) + "\n"):
        with pytest.raises(SyntaxError):
            normal(unreadable)
    for unreadable in ("x = 1\0\n", "x = " + "-" * 100_000 + "1\n"):
        with pytest.raises(SyntaxError):
            marked(unreadable, [1])
        assert not legal(unreadable)
    assert not legal("def (")
    assert not legal("\0")


@given(st.sets(st.integers(1, UNTIDY.count("\n")), max_size=4))
def test_marks_change_nothing_and_can_be_taken_off(lines: set[int]) -> None:
    with_marks = marked(UNTIDY, lines)
    assert ast.dump(ast.parse(with_marks)) == ast.dump(ast.parse(UNTIDY))
    assert unmarked(normal(with_marks)) == normal(UNTIDY)


def test_a_mark_stands_in_the_place_of_a_comment() -> None:
    text = "x = 1  # one\ny = '#'\nz = f(x,  # two\n      y)  # three\n"
    assert marked(text, [1, 2, 3]) == f"x = 1  {MARK}\ny = '#'  {MARK}\nz = f(x,  # two\n      y)  {MARK}\n"


def test_a_mark_stays_with_its_statement() -> None:
    text = "def f(x):\n    y = g(\n        x)\n    return y\n"
    assert normal(marked(text, [3])).splitlines()[2] == f"        x)  {MARK}"


def test_fewer_lines_come_before_fewer_characters() -> None:
    texts = ["a\nb\n", "abcdef\n", "# only\n\nabc\n", "abc\n", "abd\n"]
    assert sorted(texts, key=measure) == ["abc\n", "abd\n", "abcdef\n", "# only\n\nabc\n", "a\nb\n"]


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        ("f((x + 1), key=(-y))\n", "f(x + 1, key=-y)\n"),
        ("z = ((a * b))\n", "z = a * b\n"),
        ("f((yield))\n", "f((yield))\n"),
        ("f((x, y), (i for i in x), [(a := 1)])\n", "f((x, y), (i for i in x), [(a := 1)])\n"),
        ("z = (a\n     + b)\n", "z = (a\n     + b)\n"),
        ("z = (a + b).c\n", "z = (a + b).c\n"),
    ],
)
def test_parentheses_that_only_group_go(given: str, wanted: str) -> None:
    body = "def g():\n    " if "yield" in given else ""
    assert normal(body + given) == body + wanted
    assert ast.dump(ast.parse(body + given)) == ast.dump(ast.parse(body + wanted))
