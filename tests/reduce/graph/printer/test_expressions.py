"""Python text for arguments and operations: what is printed is, parsed again, what it was."""

from __future__ import annotations

import ast
import math
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from bot.reduce.graph.form import Arg, Code, Mapping, Node, Ref, Slice
from bot.reduce.graph.printer.expressions import (
    arguments,
    combined,
    function_class,
    in_place,
    index,
    number,
    operation,
    quoted,
    scanned,
    spelled,
    text,
)
from tests.reduce.graph.world import op, tensor

META = tensor(4, 4)
LITERALS: st.SearchStrategy[Arg] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.lists(inner, max_size=3).map(tuple),
    max_leaves=6,
)


class Torch:
    inf = math.inf
    nan = math.nan


@given(LITERALS)
def test_a_literal_is_what_it_was(value: Arg) -> None:
    assert ast.literal_eval(text(value, {})) == value


@given(st.dictionaries(st.text(), LITERALS, max_size=3))
def test_so_is_a_dict(value: dict[str, Arg]) -> None:
    assert ast.literal_eval(text(Mapping(tuple(value.items())), {})) == value


@given(st.floats() | st.complex_numbers())
@example(complex(1, -0.0))
@example(complex(-0.0, 1))
def test_a_number_is_what_it_was_to_the_sign_of_its_zeros(value: complex) -> None:
    found: Any = eval(number(value), {"torch": Torch, "complex": complex})
    assert repr(found) == repr(value)


@given(st.text())
def test_a_string_is_what_it_was_and_one_line(value: str) -> None:
    assert ast.literal_eval(quoted(value)) == value
    assert "\n" not in quoted(value)


def test_values_are_reached_by_their_names() -> None:
    shown = text([Ref("w"), (Ref("x"),), Code("torch.float32"), Slice(None, 2)], {"w": "self.w"})
    assert shown == "[self.w, (x,), torch.float32, slice(None, 2, None)]"


@pytest.mark.parametrize(
    ("arg", "shown"),
    [
        (0, "0"),
        (Slice(), ":"),
        (Slice(1, None, 2), "1::2"),
        ((Slice(), 0), ":, 0"),
        ((0,), "0,"),
        ((), "()"),
        ([0, 1], "[0, 1]"),
        (None, "None"),
    ],
)
def test_indices(arg: Arg, shown: str) -> None:
    assert index(arg, {}) == shown


@pytest.mark.parametrize(
    ("node", "shown"),
    [
        (op("n", "relu.default", Ref("x"), meta=META), "torch.ops.aten.relu.default(x)"),
        (op("n", "operator.add", Ref("x"), 2, meta=META), "x + 2"),
        (op("n", "operator.pow", Ref("x"), -1, meta=META), "x ** (-1)"),
        (op("n", "operator.neg", Ref("x"), meta=META), "-x"),
        (op("n", "operator.getitem", Ref("x"), (Slice(), 0), meta=META), "x[:, 0]"),
        (op("n", "operator.abs", Ref("x"), meta=META), "abs(x)"),
        (Node("n", "method", "view", (Ref("x"), 2, 8)), "x.view(2, 8)"),
        (Node("n", "method", "item", (1.5,)), "1.5.item()"),
        (op("n", "operator.add", Ref("x"), 2, meta=META, alpha=1), "operator.add(x, 2, alpha=1)"),
        (Node("n", "function", "__main__.mine", (Ref("x"),)), "mine(x)"),
        (Node("n", "function", "builtins.getattr", (Ref("x"), "shape")), "x.shape"),
        (Node("n", "function", "builtins.getattr", (Ref("x"), "not a name")), 'getattr(x, "not a name")'),
        (op("n", "sym_size.int", Ref("x"), 0, meta=META), "x.size(0)"),
        (op("n", "torch.ops.higher_order.wrap", Ref("f"), Ref("x"), meta=META), "f(x)"),
        (op("n", "torch.ops.higher_order.cond", Ref("p"), Ref("f"), Ref("g"), [Ref("x")], meta=META), "torch.cond(p, f, g, [x])"),
        (
            op("n", "torch.ops.higher_order.tag_activation_checkpoint", Ref("f"), Ref("x"), meta=META),
            "torch.utils.checkpoint.checkpoint(f, x, use_reentrant=False)",
        ),
        (op("n", "torch.ops.higher_order.map_impl", Ref("f"), [Ref("x")], [], meta=META), "torch._higher_order_ops.map(f, x)"),
    ],
)
def test_operations_read_as_people_write_them(node: Node, shown: str) -> None:
    assert operation(node, {}) == shown


def test_keywords_that_are_no_names_are_passed_in_a_dict() -> None:
    shown = arguments((Ref("x"),), (("device", Code('torch.device("cpu")')), ("from", 0), ("to", 1)), {})
    assert shown == 'x, device="cpu", to=1, **{"from": 0}'


@pytest.mark.parametrize(
    ("target", "args", "tensor_first", "shown"),
    [
        ("operator.setitem", (Ref("x"), 0, 1.0), True, "x[0] = 1.0"),
        ("operator.delitem", (Ref("x"), 0), True, "del x[0]"),
        ("builtins.setattr", (Ref("x"), "grad", None), True, "x.grad = None"),
        ("operator.iadd", (Ref("x"), Ref("y")), True, "x += y"),
        ("operator.iadd", (Ref("x"), Ref("y")), False, None),
        ("operator.iadd", (Ref("w"), Ref("y")), True, None),
        ("operator.add", (Ref("x"), Ref("y")), True, None),
    ],
)
def test_statements_in_place(target: str, args: tuple[Arg, ...], tensor_first: bool, shown: str | None) -> None:
    assert in_place(Node("n", "function", target, args), tensor_first, {"w": "self.w"}) == shown


def test_what_is_recorded_flat_is_known() -> None:
    scan = op("n", "torch.ops.higher_order.scan", Ref("f"), [Ref("a")], [Ref("b"), Ref("c")], [], meta=META)
    assert (scanned(scan), combined(scan)) == ((1, 2), None)
    both = op("n", "torch.ops.higher_order.associative_scan", Ref("f"), [Ref("a"), Ref("b")], [], meta=META)
    assert (scanned(both), combined(both)) == (None, 2)
    assert scanned(op("n", "torch.ops.higher_order.scan", Ref("f"), Ref("a"), Ref("b"), meta=META)) is None


def test_targets_and_classes_by_their_bare_names() -> None:
    assert [spelled(target) for target in ("builtins.sum", "__main__.mine", "torch.relu")] == ["sum", "mine", "torch.relu"]
    assert function_class("forward_fn_1") == "ForwardFn1"
