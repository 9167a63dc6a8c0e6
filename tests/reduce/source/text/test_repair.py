"""What goes with a statement that is taken away."""

from __future__ import annotations

import ast

from bot.reduce.source.text.normal_form import MARK
from bot.reduce.source.text.repair import collected, has_mark, missing, repaired, replaced, unused


def test_statements_are_replaced_where_they_stand() -> None:
    text = "if a:\n    b\n    c\n"
    b, c = ast.parse(text).body[0].body  # type: ignore[attr-defined]
    assert replaced(text, {b: "x\ny", c: None}) == "if a:\n    x\n    y\n"
    assert replaced(text, {b: None, c: None}) == "if a:\n    pass\n"


def test_what_is_missing() -> None:
    found = missing("class C:\n    def f(self):\n        self.a = b\n        return self.a + self.c\nprint(len)\n")
    assert (found.names, found.attributes) == ({"b"}, {"c"})
    assert missing("from m import *\nb\n").names == set()


def test_readers_of_a_name_that_is_gone_go_but_never_a_marked_one() -> None:
    before = missing("import a\n")
    assert repaired("import a\nx = gone(a)\ny = x\na.go()\n", before) == "import a\na.go()\n"
    assert repaired(f"import a\nx = gone(a)  {MARK}\n", before) is None
    assert repaired("y = x\nx = 1\n", before) == "x = 1\n", "it is read before it is bound"


def test_what_was_missing_before_is_no_reason() -> None:
    text = "x = given\n"
    assert repaired(text, missing(text)) == text


def test_what_nobody_reads_goes_unless_it_was_unread_before() -> None:
    text = "import a, b\nold = 1\nx = 2\na.go()\n"
    assert unused(text) == {("", "b"), ("", "old"), ("", "x")}
    assert collected(text, frozenset({("", "old")})) == "import a\nold = 1\na.go()\n"


def test_a_call_that_may_fail_stays_without_its_name() -> None:
    text = "def f():\n    return 1\nx = f()\n"
    assert collected(text, frozenset()) == "def f():\n    return 1\nf()\n"


def test_what_stands_behind_a_return_goes() -> None:
    assert collected("def f():\n    return 1\n    g()\nf()\n", frozenset()) == "def f():\n    return 1\nf()\n"


def test_marks() -> None:
    text = f"if a:\n    b  {MARK}\nc\n"
    first, second = ast.parse(text).body
    assert has_mark(text, first)
    assert not has_mark(text, second)
