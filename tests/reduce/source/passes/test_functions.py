"""Rewrites of functions: what each proposes."""

from __future__ import annotations

import pytest

from bot.reduce.source.passes.functions import called_once, constant_parameters, forwarders, properties
from bot.reduce.source.text.normal_form import MARK


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


@pytest.mark.parametrize(
    ("text", "becomes"),
    [
        (
            f"def fit(m):\n    def loss():\n        return m(1){MARK}\n    torch.compile(loss)()\nfit(model)\n",
            f"def loss():\n    return model(1){MARK}\ntorch.compile(loss)()\n",
        ),
        ("def f(x):\n    def g(x):\n        return x\n    return g(x)\ny = f(z)\n", "x = z\ndef g(x):\n    return x\ny = g(x)\n"),
        ("def f():\n    t = a()\n    return t, t.sum()\nexport(M(), f())\n", "t = a()\nexport(M(), (t, t.sum()))\n"),
        (f"def f(n):\n    return {{n: 1}}\ng(M(), shapes=f('x'))  {MARK}\n", f"g(M(), shapes={{'x': 1}})  {MARK}\n"),
    ],
)
def test_a_function_that_one_place_calls_is_written_out(text: str, becomes: str) -> None:
    assert becomes in called_once(text)


@pytest.mark.parametrize(
    "text",
    [
        "def f():\n    n = 0\n    def g():\n        nonlocal n\n        n += 1\n    g()\nf()\n",
        "def f():\n    def g():\n        return 1\n    h(g)\ndef g():\n    return 2\nf()\nh(g)\n",
        "def f(x):\n    t = a(x)\n    return t\ny = h(lambda x: f(x), [f(i) for i in z])\n",
    ],
)
def test_what_a_function_shares_or_hides_or_calls_later_stays(text: str) -> None:
    assert list(called_once(text)) == []


def test_a_function_that_only_hands_on_is_replaced_by_what_it_calls() -> None:
    text = "class C:\n    pass\ndef f(x):\n    return C.apply(x, 1)\ntorch.compile(f, fullgraph=True)(y)\n"
    assert "class C:\n    pass\ntorch.compile(C.apply, fullgraph=True)(y, 1)\n" in forwarders(text)


def test_a_parameter_that_only_hands_on_is_no_function_of_the_text() -> None:
    text = "def f(x):\n    return x.view(1)\nx = 1\ntorch.compile(f)(x)\n"
    assert list(forwarders(text)) == []


def test_a_gradient_goes_with_its_parameter() -> None:
    text = (
        "class C(Function):\n    @staticmethod\n    def forward(ctx, x, n):\n        return x * n\n"
        "    @staticmethod\n    def backward(ctx, grad):\n        return grad, None\nC.apply(y, 2)\n"
    )
    without = text.replace("ctx, x, n", "ctx, x").replace("x * n", "x * 2").replace("grad, None", "grad").replace("y, 2", "y")
    assert list(constant_parameters(text)) == [without]
