"""What the results of functions depend on stays where numbers are wrong and these functions are taken at their word."""

from __future__ import annotations

import pytest

from bot.reduce.source.results import keeps_results

OPERATOR = """
import torch

lib = torch.library.Library("mine", "DEF")
lib.define("shift(Tensor x, int dim) -> Tensor")


@torch.library.impl(lib, "shift", "CPU")
def shift(x, dim):
    print(x)
    torch._check(x.dim() > 0)
    out = torch.zeros_like(x)
    out.narrow(dim, 1, 1).copy_(x.narrow(dim, 0, 1))
    return out


def before(d, dim):
    seen.append(d)
    return 1 if d == dim else 0


def padding(x, dim):
    pad = []
    for d in range(x.dim()):
        if d > 9:
            log.warning("large", d)
        pad += [before(d, dim), 0]
    return pad


@register_decomposition([torch.ops.mine.shift.default])
def shift_decomp(x, dim):
    if dim < -1:
        dim += x.dim()
    note = len(x)
    y = x
    with torch.no_grad():
        y = torch.constant_pad_nd(x, padding(x, dim))
    return y.narrow(dim, 0, x.size(dim))


def model(x):
    y = x + 1
    y.mul_(2)
    return torch.ops.mine.shift(y, -2)
"""


def refused(text: str, before: str, after: str) -> bool:
    assert before in text
    candidate = text.replace(before, after)
    compile(candidate, "candidate", "exec")
    return not keeps_results(text)(candidate)


@pytest.mark.parametrize(
    "gone",
    [
        "    out.narrow(dim, 1, 1).copy_(x.narrow(dim, 0, 1))\n",
        "        pad += [before(d, dim), 0]\n",
        '    for d in range(x.dim()):\n        if d > 9:\n            log.warning("large", d)\n        pad += [before(d, dim), 0]\n',
        "    if dim < -1:\n        dim += x.dim()\n",
        "    with torch.no_grad():\n        y = torch.constant_pad_nd(x, padding(x, dim))\n",
    ],
)
def test_what_a_result_depends_on_stays(gone: str) -> None:
    assert refused(OPERATOR, gone, "")


def test_conditions_and_loops_around_it_stay() -> None:
    assert refused(OPERATOR, "    if dim < -1:\n        dim += x.dim()\n", "    dim += x.dim()\n")


@pytest.mark.parametrize(
    "gone",
    [
        "    print(x)\n",
        "    torch._check(x.dim() > 0)\n",
        "    seen.append(d)\n",
        '        if d > 9:\n            log.warning("large", d)\n',
        "    note = len(x)\n",
        "    y.mul_(2)\n",
        OPERATOR[OPERATOR.index("@register_decomposition") : OPERATOR.index("def model")],
    ],
)
def test_the_rest_may_go(gone: str) -> None:
    assert not refused(OPERATOR, gone, "")


TABLES = """
def gelu(x):
    x = x * 1.0
    x.mul_(2)
    return x


def mutates(x, y):
    n = x.size(0)
    note = n + 1
    y.copy_(x[:n])


def change(graph):
    graph.lint()
    return graph


def inner(x):
    def fn(i):
        v = load(i)
        v = v * 2
        return v

    def unused(i):
        i = i + 1
        return i

    return make(fn)


{registered}
config.post_grad_pass = change
options = {{"post_grad_pass": change}}
options["post_grad_pass"] = change
"""


@pytest.mark.parametrize("registered", ["table[op] = gelu", "lib.impl('gelu', gelu, 'CPU')", "table = {op: gelu}", "lowering(op)(f)"])
def test_how_a_function_is_registered(registered: str) -> None:
    text = TABLES.format(registered=registered)
    assert refused(text, "    x.mul_(2)\n", "") == ("gelu" in registered)
    assert not refused(text, "    graph.lint()\n", ""), "a setting names it"


def test_without_a_result_it_is_what_the_function_changes() -> None:
    text = TABLES.format(registered="lib.impl('mutates', mutates)")
    assert refused(text, "    y.copy_(x[:n])\n", "    pass\n")
    assert not refused(text, "    note = n + 1\n", "")


def test_functions_inside_that_lead_to_the_result() -> None:
    text = TABLES.format(registered="lowerings[op] = inner")
    assert refused(text, "        v = v * 2\n", "")
    assert not refused(text, "        i = i + 1\n", "")


CHOICES = """
def fast(x):
    y = x * 2
    y[0] = 0
    return y


class Clamp(torch.autograd.Function):
    def forward(ctx, x):
        x = x + 0
        if torch.compiler.is_compiling():
            x = fast(x)
        return x

    def backward(ctx, g):
        x, = ctx.saved
        x = x + 0
        if torch.compiler.is_compiling():
            inside = torch.sigmoid(x)
            return g * inside
        half = g * x
        return half

    def other(x):
        y = x.neg() if torch.compiler.is_compiling() else x
        return y
"""


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("g * inside", "g"),
        ("half = g * x\n", "half = g\n"),
        ("            x = fast(x)\n", "            x = x\n"),
        ("x.neg() if torch.compiler.is_compiling() else x", "x if torch.compiler.is_compiling() else x + 1"),
        ("    y[0] = 0\n", ""),
    ],
)
def test_neither_side_of_a_choice_between_compiled_and_not_changes(before: str, after: str) -> None:
    assert refused(CHOICES, before, after)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("        x = x + 0\n", ""),
        ("        if torch.compiler.is_compiling():\n            inside = torch.sigmoid(x)\n            return g * inside\n", ""),
        ("        if torch.compiler.is_compiling():\n            x = fast(x)\n", ""),
        ("y = x.neg() if torch.compiler.is_compiling() else x", "y = x.neg()"),
    ],
)
def test_what_stands_around_a_choice_may_change_and_it_may_go(before: str, after: str) -> None:
    assert not refused(CHOICES, before, after)


def test_other_programs_may_change_and_what_is_no_python_is_refused() -> None:
    assert keeps_results("def f(x):\n    x += 1\n    return x\n")("x = 1")
    assert not keeps_results(OPERATOR)("def broken(:")
