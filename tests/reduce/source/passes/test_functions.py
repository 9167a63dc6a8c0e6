"""Rewrites of functions: what each proposes."""

from __future__ import annotations

import pytest

from bot.reduce.source.passes.functions import constant_parameters, handing_on, properties


@pytest.mark.parametrize(
    ("text", "becomes"),
    [
        (
            "class C:\n    @property\n    def p(self):\n        import gc\n        return gc.x(self)\n    def q(o):\n        k(o.p)\n",
            "class C:\n    def q(o):\n        import gc\n        k(gc.x(o))\n",
        ),
        (
            "class D:\n    def __get__(self, a, b):\n        return 1\nclass C:\n    @D\n    def p(self):\n        return 1\n",
            "class C:\n    @property\n    def p(self):\n        return 1\n",
        ),
    ],
)
def test_a_property_is_written_out(text: str, becomes: str) -> None:
    assert becomes in properties(text)


def test_a_function_that_only_hands_on_is_replaced_by_what_it_calls() -> None:
    text = "class C:\n    pass\ndef f(x):\n    return C.apply(x, 1)\ntorch.compile(f, fullgraph=True)(y)\n"
    assert "class C:\n    pass\ntorch.compile(C.apply, fullgraph=True)(y, 1)\n" in handing_on(text)


def test_a_parameter_that_only_hands_on_is_no_function_of_the_text() -> None:
    text = "def f(x):\n    return x.view(1)\nx = 1\ntorch.compile(f)(x)\n"
    assert list(handing_on(text)) == []


def test_a_gradient_goes_with_its_parameter() -> None:
    text = (
        "class C(Function):\n    @staticmethod\n    def forward(ctx, x, n):\n        return x * n\n"
        "    @staticmethod\n    def backward(ctx, grad):\n        return grad, None\nC.apply(y, 2)\n"
    )
    without = text.replace("ctx, x, n", "ctx, x").replace("x * n", "x * 2").replace("grad, None", "grad").replace("y, 2", "y")
    assert list(constant_parameters(text)) == [without]
