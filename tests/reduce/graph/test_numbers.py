"""Numbers that a graph computes while it runs."""

from __future__ import annotations

import operator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.reduce.graph.form import Arg, Graph, Input, Meta, Node, Ref, Value
from bot.reduce.graph.numbers import known_numbers
from tests.reduce.graph.world import op, tensor

INT = Meta("int")


def known(*nodes: Node) -> dict[str, int]:
    inputs = (Input("x", tensor(6, 4)), Input("n", INT, Value("literal", ("5",))), Input("u", INT))
    return known_numbers(Graph(inputs, nodes, Ref("x")))


def test_a_number_that_is_given_is_known() -> None:
    assert known() == {"n": 5}


@pytest.mark.parametrize(("dim", "size"), [(0, 6), (1, 4), (-1, 4), (2, None), (-3, None)])
@pytest.mark.parametrize("kind", ["function", "method"])
def test_sizes_are_those_of_the_failing_run(dim: int, size: int | None, kind: str) -> None:
    target = "torch.ops.aten.sym_size.int" if kind == "function" else "size"
    assert known(Node("s", kind, target, (Ref("x"), dim), (), INT)).get("s") == size


@given(st.sampled_from(["add", "sub", "mul", "floordiv", "mod"]), st.integers(-9, 9), st.integers(-9, 9))
def test_arithmetic_is_that_of_python(name: str, left: int, right: int) -> None:
    found = known(op("a", f"operator.{name}", left, right, meta=INT)).get("a")
    if name in ("floordiv", "mod") and right == 0:
        assert found is None
    else:
        assert found == getattr(operator, name)(left, right)


def test_what_is_computed_from_known_numbers_is_known() -> None:
    nodes = (
        op("s", "sym_size.int", Ref("x"), 0, meta=INT),
        op("a", "operator.mul", Ref("s"), Ref("n"), meta=INT),
        op("b", "operator.floordiv", Ref("a"), 4, meta=INT),
    )
    assert known(*nodes) == {"n": 5, "s": 6, "a": 30, "b": 7}


@pytest.mark.parametrize("args", [(Ref("u"), 2), (2, Ref("u")), (Ref("x"), 0.5)])
def test_what_rests_on_an_unknown_number_is_unknown(args: tuple[Arg, ...]) -> None:
    assert "a" not in known(op("a", "operator.add", *args, meta=INT))
    assert "a" not in known(op("a", "item.default", Ref("x"), meta=INT))
