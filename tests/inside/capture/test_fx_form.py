"""The JSON form of a graph: what is written here, `bot.reduce.graph.codec` reads."""

from __future__ import annotations

import math
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from bot.inside.capture.fx_arguments import Arguments  # noqa: E402
from bot.inside.capture.fx_form import Form, is_ref  # noqa: E402
from bot.inside.capture.fx_targets import Unreadable  # noqa: E402
from bot.reduce.graph.codec import graph_from_json  # noqa: E402
from bot.reduce.graph.form import Arg, Code, Mapping, Ref, Slice  # noqa: E402


@pytest.fixture
def form() -> Form:
    return Form(None, below_autograd=False)


def encode(form: Form, value: Any) -> Any:
    return Arguments(form, lambda _, name: {"$ref": name}).encode(value)


@pytest.mark.parametrize(
    ("value", "read"),
    [
        (None, None),
        (1.5, 1.5),
        ("a", "a"),
        (-math.inf, Code("-torch.inf")),
        (1j, Code("1j")),
        (..., Code("...")),
        (torch.float16, Code("torch.float16")),
        (slice(None, 2), Slice(None, 2, None)),
        ((1, [2]), (1, [2])),
        ({"a": (1,)}, Mapping((("a", (1,)),))),
        (torch.relu, Code("torch.relu")),
        (torch.ones(2), Ref("tensor_constant")),
    ],
)
def test_what_is_written_is_read(form: Form, value: Any, read: Arg) -> None:
    form.add_node("function", "f", [encode(form, value)], {}, {"kind": "other"}, "x")
    graph = graph_from_json(form.result({"$ref": "x"}))
    assert graph.nodes[0].args == (read,)
    assert graph.output == Ref("x")


def test_what_no_text_stands_for_is_said(form: Form) -> None:
    for value in ({1: 2}, object()):
        with pytest.raises(Unreadable):
            encode(form, value)


def test_names_are_pythons_and_taken_once(form: Form) -> None:
    assert [form.fresh(name) for name in ("a", "a", "a.b", "1", "if", "")] == ["a", "a_1", "a_b", "_1", "_if", "_"]


def test_a_tensor_that_the_module_holds_is_one_constant(form: Form) -> None:
    weight = torch.nn.Parameter(torch.ones(2))
    first = form.add_constant("weight", weight, parameter=True)
    assert is_ref(first)
    assert form.add_constant("again", weight, parameter=True) == first
    (constant,) = graph_from_json(form.result(first)).constants
    assert (constant.name, constant.parameter, constant.requires_grad) == ("weight", True, True)
    with pytest.raises(Unreadable):
        form.add_constant("sparse", torch.ones(2).to_sparse(), parameter=False)
