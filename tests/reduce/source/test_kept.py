"""Functions that the compiler calls stay as they are where numbers are wrong."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.reduce.source.kept import branches_return, keeper, nothing_dead

TEXT = """
import torch

FACTOR = 1.05
other = 3


def scale(x):
    return x * FACTOR


def lowering(x, *rest):
    note = len(rest)
    if note:
        x = x + 0
    return scale(x)


register(lowering)
register(pointwise(lambda v: v + 1))


def model(x):
    return torch.relu(x) * other
"""


def without(text: str, *lines: str) -> str:
    for line in lines:
        assert line in text
        text = text.replace(line, "")
    return text


@pytest.mark.parametrize(
    "candidate",
    [
        TEXT,
        without(TEXT, "    note = len(rest)\n    if note:\n        x = x + 0\n"),
        without(TEXT, "    if note:\n        x = x + 0\n", "other = 3\n", "register(pointwise(lambda v: v + 1))\n"),
        TEXT.replace("* other", "* 1").replace("other = 3", "other = 4"),
        TEXT.replace("        x = x + 0", "        pass"),
    ],
)
def test_what_the_compiler_does_not_call_may_change(candidate: str) -> None:
    assert keeper(TEXT, ["lowering"])(candidate)


@pytest.mark.parametrize(
    "candidate",
    [
        TEXT.replace("    return scale(x)\n", ""),
        TEXT.replace("return scale(x)", "return x"),
        TEXT.replace("1.05", "2"),
        TEXT.replace("return x * FACTOR", "return FACTOR"),
        TEXT.replace("lambda v: v + 1", "lambda v: v"),
        TEXT.replace("x = x + 0", "x = x + 1"),
        TEXT.replace("if note:", "if rest:"),
        TEXT.replace("def lowering(x, *rest)", "def lowering(x)"),
        TEXT.replace("lowering", "renamed"),
        TEXT.split("def lowering")[0] + "register(scale)\n",
    ],
)
def test_what_it_calls_may_not(candidate: str) -> None:
    assert candidate != TEXT
    assert not keeper(TEXT, ["lowering"])(candidate)


def test_what_is_no_python_is_refused() -> None:
    assert not keeper(TEXT, ["lowering"])("def broken(:")
    assert not keeper(TEXT, ["lowering"])("return 1"), "it can be parsed, though not compiled"


def test_without_such_functions_every_text_will_do() -> None:
    assert keeper(TEXT, [])("x = 1")
    assert keeper(TEXT, ["torch"])("x = 1"), "an import defines nothing that could change"


OPERATOR = """
import torch


@torch.library.custom_op("mine::half", mutates_args=())
def half(x: torch.Tensor) -> torch.Tensor:
    checked = x + 0
    return x >> 4


@half.register_fake
def _(x):
    return torch.empty_like(x)


@register(torch.ops.mine.half.default)
def lowering(x):
    return shift(x, 4)


def back(ctx, grad):
    return grad * 2


half.register_autograd(back)


def model(x):
    return half(x) + 1
"""


@pytest.mark.parametrize(
    ("before", "after", "kept"),
    [
        ("    checked = x + 0\n", "", True),
        ("half(x) + 1", "half(x)", True),
        ("x >> 4", "x >> 1", False),
        ("    return torch.empty_like(x)", "    pass", False),
        ("grad * 2", "grad", False),
        ("def back(ctx, grad):\n    return grad * 2\n\n\nhalf.register_autograd(back)\n", "", True),
    ],
)
def test_kernels_of_an_operator_stay_beside_its_lowering(before: str, after: str, kept: bool) -> None:
    """`x >> 1` in eager beside a lowering of `x >> 4` is wrong as well, whatever the lowering's fault was."""
    assert before in OPERATOR
    assert keeper(OPERATOR, ["lowering"])(OPERATOR.replace(before, after)) == kept


@given(st.sets(st.integers(0, len(TEXT.splitlines()) - 1)))
def test_lines_of_the_rest_may_go(gone: set[int]) -> None:
    """Whatever goes: either a function that it holds is as it was, but for statements, or the text is refused."""
    lines = TEXT.splitlines()
    text = "\n".join(line for index, line in enumerate(lines) if index not in gone)
    try:
        compile(text, "text", "exec")
    except SyntaxError:
        return
    if keeper(TEXT, ["lowering"])(text):
        assert "    return scale(x)" in text
        assert "def scale" not in text or "    return x * FACTOR" in text


MISSED = """def fn(x, index):
    y = x + 1
    out = torch.index_add(y, 0, index, y)
    seen = out.clamp_max(1.0)
    return out, seen


def main():
    with suppress(IndexError):
        torch.compile(fn)(x, index)
        raise SystemExit("it was accepted")
"""


@pytest.mark.parametrize(
    ("body", "kept"),
    [
        ("    return torch.index_add(x, 0, index, x)", True),
        ("    out = torch.index_add(x, 0, index, x)\n    return out", True),
        ("    out, seen = torch.index_add(x, 0, index, x), 1\n    return out", True),
        ("    torch.index_add(x, 0, index, x)", False),
        ("    torch.index_add(x, 0, index, x)\n    return x", False),
        ("    out = torch.index_add(x, 0, index, x)\n    return x", False),
        ("    out = torch.index_add(x, 0, index, x)\n    return None", False),
        ("    out = torch.index_add(x, 0, index, x", False),
    ],
)
def test_where_an_error_is_missed_what_misses_it_is_read(body: str, kept: bool) -> None:
    """Compilers leave out what nothing reads: of that eager's error is missed anyway."""
    assert nothing_dead(MISSED)(f"def fn(x, index):\n{body}\n") is kept


def test_what_nothing_read_before_may_stay_so() -> None:
    """As operations in place do, and what has a function without results."""
    text = '"""Says it."""\n\n\ndef fn(x):\n    """Celu."""\n    x.celu_(0.0)\n    return x\n\n\ndef main():\n    fn(x)\n'
    assert nothing_dead(text)("def fn(x):\n    x.celu_(0.0)\n    return x\ndef main():\n    fn(x)\n    fn(x)\n")
    assert not nothing_dead(text)("def fn(x):\n    x.celu_(0.0)\n    x + 1\n    return x\n")


BRANCHES = """
import torch
from torch import while_loop


def more(x):
    y = x + 1
    return y


class Model(torch.nn.Module):
    def less(self, x):
        return x - 1

    def forward(self, x):
        def step(i, x):
            return i + 1, x

        x = torch.cond(x.sum() > 0, more, self.less, (x,))
        i, x = while_loop(lambda i, x: i < 2, step, (0, x))
        return x
"""


@pytest.mark.parametrize(
    ("before", "after", "kept"),
    [
        ("    y = x + 1\n    return y", "    return x", True),
        ("    y = x + 1\n    return y", "    pass", False),
        ("        return x - 1", "        return None", False),
        ("            return i + 1, x", "            return", False),
        ("        return x\n", "", True),
        ("        x = torch.cond(x.sum() > 0, more, self.less, (x,))", "        more(x)", True),
    ],
)
def test_what_an_operation_is_given_to_call_returns_what_it_needs(before: str, after: str, kept: bool) -> None:
    """`torch.cond` and its kin refuse a branch without results, in eager as well: such a program is no smaller form of a legal one."""
    assert BRANCHES.count(before) == 1
    assert branches_return(BRANCHES)(BRANCHES.replace(before, after)) is kept


def test_a_branch_that_never_returned_anything_may_stay_so() -> None:
    text = BRANCHES.replace("        return x - 1", "        pass")
    assert branches_return(text)(text)
    assert not branches_return(text)("def (")


@pytest.mark.parametrize(("imported", "kept"), [("", True), ("from torch._higher_order_ops import map\n", False)])
def test_a_function_that_python_s_own_map_is_given_may_return_nothing(imported: str, kept: bool) -> None:
    text = f"{imported}def show(x):\n    return x\nlist(map(show, []))\n"
    assert branches_return(text)(text.replace("return x", "pass")) is kept
