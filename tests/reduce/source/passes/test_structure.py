"""Rewrites of structure: what each proposes."""

from __future__ import annotations

import pytest

from bot.reduce.source.passes.structure import conditions, counters, first_turn, generators, single_modules


@pytest.mark.parametrize("becomes", ["def f(x):\n    bool(x > 8)\n", "def f(x):\n    if x > 8:\n        return\n"])
def test_a_condition_that_chooses_what_is_stored_is_asked_alone(becomes: str) -> None:
    assert becomes in conditions("def f(x):\n    if x > 8:\n        x = x\n")


def test_a_condition_that_decides_more_than_a_value_stays() -> None:
    text = "def f(x):\n    if x:\n        x = 1\n    else:\n        x = 2\n    if x:\n        x = g(x)\n    if x:\n        return 1\n"
    assert list(conditions(text)) == []


@pytest.mark.parametrize(
    ("loop", "becomes"),
    [
        ("for i in range(3):\n    f(i)\n", "i = 0\nf(i)\n"),
        ("for i in range(2, 3):\n    f(i)\n", "i = 2\nf(i)\n"),
        ("for i, x in enumerate(xs):\n    f(i, x)\n", "i = 0\nx = xs[0]\nf(i, x)\n"),
        ("for x in [a, b]:\n    f(x)\n", "x = a\nf(x)\n"),
        ("for x in xs.items():\n    f(x)\n", "x = next(iter(xs.items()))\nf(x)\n"),
        ("for x in xs:\n    f()\n", "f()\n"),
    ],
)
def test_a_loop_becomes_its_first_iteration(loop: str, becomes: str) -> None:
    assert list(first_turn(loop)) == [becomes]


@pytest.mark.parametrize(
    ("loop", "becomes"),
    [
        ('for i, x in enumerate(xs):\n    f(f"b{i}", x)\n    g(i)\n', 'for x in xs:\n    f(f"b{0}", x)\n    g(0)\n'),
        ("for i, (x, y) in enumerate(zip(xs, ys)):\n    f(i, y)\n", "for (x, y) in zip(xs, ys):\n    f(0, y)\n"),
        ("for i, x in enumerate(xs):\n    i += x\n", None),
        ("for i, x in enumerate(xs, 1):\n    f(i)\n", None),
        ("for i, x in enumerate(xs):\n    f(i)\ng(i)\n", None),
        ("for p in enumerate(xs):\n    f(p)\n", None),
    ],
)
def test_a_counter_becomes_zero(loop: str, becomes: str | None) -> None:
    """A loop over two names would become two lines in place of its header, which is no smaller."""
    assert list(counters(loop)) == ([] if becomes is None else [becomes])


def test_a_loop_that_may_end_early_stays() -> None:
    assert list(first_turn("for x in xs:\n    break\n")) == []


def test_a_list_of_modules_becomes_its_first() -> None:
    text = "m = nn.ModuleList([L(i) for i in range(3)])\nfor x in m:\n    x(1)\nm[0](2)\n"
    assert "m = L(0)\nm(1)\nm(2)\n" in single_modules(text)


def test_a_list_of_modules_that_is_also_read_from_outside_becomes_its_first() -> None:
    made = "class M:\n    def __init__(self):\n        self.m = ModuleList([L()])\n"
    text = f"{made}    def forward(self, x):\n        return self.m[0](x)\nM().m[0].hook()\n"
    assert text.replace("ModuleList([L()])", "L()").replace("m[0]", "m") in single_modules(text)
    of_another = text.replace("M().m[0]", "other[0]")
    assert of_another.replace("ModuleList([L()])", "L()").replace("m[0]", "m") in single_modules(of_another)


def test_a_generator_of_one_value_becomes_a_function() -> None:
    text = "def g():\n    yield 1\nx = next(iter(g()))\n"
    assert list(generators(text)) == ["def g():\n    return 1\nx = g()\n"]
    assert list(generators("def g():\n    yield 1\n    f()\n")) == []
