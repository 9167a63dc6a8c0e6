"""Each sort of deletion: what a text becomes with one edit of it."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import partial

import libcst as cst
import pytest

from bot.reduce.source.passes import deletions
from bot.reduce.source.text.cst_edits import Edit, apply
from bot.reduce.source.text.normal_form import MARK


def single_edits(propose: Callable[[cst.Module], Sequence[Edit]], text: str) -> set[str]:
    """What a text becomes with each of the edits alone, the last line of it."""
    module = cst.parse_module(text)
    return {(apply(module, [edit]) or "").strip().split("\n")[-1].strip() for edit in propose(module)}


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("f(a, b).shape\n", {"f(a, b)", "a.shape", "a", "b.shape"}),
        ("y = (a + b).mean\n", {"y = (a + b)", "y = a.mean", "y = a", "y = b.mean"}),
        ("f(a).b.c(x)\n", {"f(a).b", "f(a).c(x)", "a.c(x)", "a.b.c(x)", "x"}),
        ("torch.nn.x\n", set()),
        ("self.x = y.z\n", set()),
        ("f(a).n = 1\n", {"a.n = 1"}),
        ("f(a).n(1)\n", {"f(a)", "a.n(1)"}),
        ("f(a) + g(b)\n", {"f(a)", "g(b)", "a + g(b)", "f(a) + b"}),
    ],
)
def test_operands(before: str, after: set[str]) -> None:
    assert single_edits(deletions.operands, before) | single_edits(partial(deletions.operands, which=1), before) == after


def test_operands_beside_each_other() -> None:
    """What one edit makes of an object need not be the call that another one takes an argument of."""
    module = cst.parse_module("f(g(a, b).t, c).m\n")
    edits = [*deletions.operands(module), *deletions.operands(module, which=1)]
    texts = {apply(module, [one, other]) for one in edits for other in edits if one is not other}
    assert {"a.t\n", "c.m\n"} <= texts


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("def f():\n    x = g(1)\n    return x\n", {"return g(1)"}),
        (f"def f():\n    x = g(1)  {MARK}\n    return x\n", {f"return g(1)  {MARK}"}),
        (f"def f():\n    x = g(1)\n    return x  {MARK}\n", {f"return g(1)  {MARK}"}),
        ("def f():\n    x = g(1)\n    return y\n", set()),
        ("a.n += g(1)\n", {"g(1)"}),
        ("n += 1\n", {"1"}),
        ("a.n = b[0] = g(1)\n", {"g(1)"}),
        ("n = 1\n", set()),
    ],
)
def test_a_value_does_without_what_it_sets(before: str, after: set[str]) -> None:
    assert single_edits(deletions.plain_values, before) == after


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("if a:\n    b()\nelse:\n    c()\n", {"b()\n", "if a:\n    b()\n", "c()\n"}),
        ("if a:\n    b()\nelif d:\n    c()\n", {"b()\n", "if a:\n    b()\n", "if d:\n    c()\n"}),
        ("if a:\n    b()\n", {"b()\n"}),
        ("for a in b:\n    c()\nelse:\n    d()\n", {"c()\n", "for a in b:\n    c()\n"}),
        ("with a, b(c):\n    d()\n", {"d()\n", "with a:\n    d()\n", "with b(c):\n    d()\n"}),
        (
            "with a(b) as c, d:\n    c()\n",
            {"c()\n", *(f"c = {value}\nwith d:\n    c()\n" for value in ("a(b)", "b")), "with a(b) as c:\n    c()\n"},
        ),
        ("with a(3) as b:\n    c(b)\n", {"c(b)\n", "b = a(3)\nc(b)\n"}),
        ("with a:\n    b()\n", {"b()\n"}),
    ],
)
def test_a_block_becomes_one_of_its_parts(before: str, after: set[str]) -> None:
    module = cst.parse_module(before)
    edits = deletions.unwraps(module)
    assert {apply(module, [edit]) for edit in edits} == after
    assert apply(module, edits) is not None  # all at once: one of them counts


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("def f(x, *, a):\n    pass\n\nf(1, a=2)\n", "def f(x):\n    pass\n\nf(1)\n"),
        ("def f(*, a):\n    pass\n\nf(a=2)\n", "def f():\n    pass\n\nf()\n"),
        ("def f(x, *, a, b=1):\n    pass\n\nf(1, a=2)\n", "def f(x, *, a):\n    pass\n\nf(1, a=2)\n"),
    ],
)
def test_a_parameter_by_keyword_goes_with_its_comma_and_the_last_one_with_the_star(before: str, after: str) -> None:
    module = cst.parse_module(before)
    assert after in [apply(module, [edit]) for edit in deletions.parameters(module)]


def test_an_autograd_function_loses_a_parameter_with_what_apply_is_given() -> None:
    text = "class F(torch.autograd.Function):\n    def forward(ctx, x, n):\n        return x\n\nself.forward(1, 2)\nF.apply(1, 2)\n"
    module = cst.parse_module(text)
    without_n = text.replace("x, n)", "x)").replace("apply(1, 2)", "apply(1)")
    assert without_n in [apply(module, [edit]) for edit in deletions.parameters(module)]


EXPORTED = """\
class Model:
    def forward(self, x{y}):
        return x

inputs = (1{two},)
torch.export.export(Model(), {args}, kwargs={{{named}}}, dynamic_shapes={{"x": A{why}}}).module()(1{two})
"""


@pytest.mark.parametrize(
    ("args", "left", "named"), [("inputs", "inputs", ""), ("(1, 2)", "(1,)", ""), ("[1, 2]", "[1]", ""), ("()", "()", '"y": 2')]
)
def test_a_parameter_goes_with_what_an_export_is_given_for_it(args: str, left: str, named: str) -> None:
    two = ", 2" if args == "inputs" else ""
    module = cst.parse_module(EXPORTED.format(y=", y", two=two, args=args, named=named, why=', "y": B'))
    without_y = EXPORTED.format(y="", two="", args=left, named="", why="")
    assert without_y in [apply(module, [edit]) for edit in deletions.parameters(module)]


@pytest.mark.parametrize("text", ["for a, b in c:\n    pass\n", "a, b = d = (1, 2)\n", "x = [1 for a, b in c]\n"])
def test_targets_keep_their_elements(text: str) -> None:
    assert deletions.arguments(cst.parse_module(text)) == []


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("try:\n    f()\nexcept E as e:\n    pass\n", {"try:\n    f()\nexcept E:\n    pass\n"}),
        ("try:\n    f()\nexcept E as e:\n    raise F from e\n", set()),
        ("with a as b, c as d:\n    f(d)\n", {"with a, c as d:\n    f(d)\n"}),
        ("with a as b:\n    f()\n", {"with a:\n    f()\n"}),
    ],
)
def test_a_name_that_nothing_reads_goes(before: str, after: set[str]) -> None:
    module = cst.parse_module(before)
    assert {apply(module, [edit]) for edit in deletions.unread_names(module)} == after


def test_arguments_are_found_in_one_walk() -> None:
    started = time.process_time()
    assert len(deletions.arguments(cst.parse_module("x = [1, (2, 3)]\n" * 3000))) == 12000
    assert time.process_time() - started < 10
