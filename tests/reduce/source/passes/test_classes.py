"""Rewrites of classes: what each proposes."""

from __future__ import annotations

import pytest

from bot.reduce.source.passes.classes import attributes_once, buffers, classes_to_functions, empty_bases, fields, holders


@pytest.mark.parametrize(
    ("text", "becomes"),
    [
        (
            "class B(nn.Module):\n    pass\nclass C(B):\n    def forward(self):\n        return 1\n",
            "class C(nn.Module):\n    def forward(self):\n        return 1\n",
        ),
        ("class B(P, Q):\n    pass\nclass C(B):\n    n = 1\n", "class C(P, Q):\n    n = 1\n"),
        ("class B(P):\n    pass\nrun(B())\n", "run(P())\n"),
    ],
)
def test_an_empty_base_is_replaced_by_its_own_bases(text: str, becomes: str) -> None:
    assert becomes in empty_bases(text)


def test_constant_fields_are_written_where_they_are_read() -> None:
    text = "class C:\n    n: int = 7\nc = C()\nf(c.n)\n"
    assert text.replace("c.n", "7") in list(fields(text))
    assert list(fields(text + "c.n = 8\nc.n = 9\n")) == [], "it is no constant"


def test_an_object_that_only_holds_values_becomes_variables() -> None:
    text = "class C:\n    def __init__(self, n):\n        self.n = n\nc = C([1])\nf(c.n)\n"
    assert list(holders(text)) == [text.replace("c = C([1])\nf(c.n)", "c_n = [1]\nf(c_n)")]


def test_an_attribute_that_one_place_reads_is_written_out() -> None:
    text = "class C:\n    def __init__(self):\n        self.a = g(1)\n    def forward(self, x):\n        return f(self.a, x)\n"
    assert any("return f(g(1), x)" in found for found in attributes_once(text)), list(attributes_once(text))


@pytest.mark.parametrize(
    ("made", "shown"),
    [
        ("C(load())(2)", "f(g(load()), x)"),
        ("C(n=[1])(2)", "f(g([1]), x)"),
        ("C(load())(2)\nC(3)", None),
        ("def main(y):\n    C(y)(2)", None),
        ("class D(C):\n    pass\nC(1)(2)", None),
    ],
)
def test_what_the_only_object_is_made_of_is_written_there_as_well(made: str, shown: str | None) -> None:
    text = "def load():\n    return 1\nclass C:\n    def __init__(self, n):\n        self.a = g(n)\n"
    text += "    def __call__(self, x):\n        return f(self.a, x)\n"
    found = list(attributes_once(text + made + "\n"))
    assert len(found) == (1 if shown else 0)
    assert shown is None or shown in found[0]


def test_a_module_that_keeps_nothing_becomes_a_function() -> None:
    text = "class C(torch.nn.Module):\n    def forward(self, x):\n        return x\ntorch.compile(C())(1)\n"
    assert any("def " in found and "class " not in found for found in classes_to_functions(text)), list(classes_to_functions(text))


def test_a_buffer_becomes_a_plain_attribute() -> None:
    made = "class C(nn.Module):\n    def __init__(self, name):\n        "
    text = made + 'self.register_buffer("pos", torch.ones(2), persistent=False)\n        {}\n'
    kept = ("self.register_buffer(name, torch.ones(2))", 'self.register_buffer("gone", None)', 'self.register_buffer("not a name", 1)')
    for other in kept:
        assert list(buffers(text.format(other))) == [
            text.format(other).replace('self.register_buffer("pos", torch.ones(2), persistent=False)', "self.pos = torch.ones(2)")
        ]
