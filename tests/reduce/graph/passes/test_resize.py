"""Sizes of inputs, and in the arguments of operations that name sizes."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.reduce.graph.form import Code, Graph, Input, Meta, Node, Program, Ref, Value
from bot.reduce.graph.passes.resize import (
    closed,
    composed,
    free_sizes,
    ints,
    is_view,
    resized,
    scaled_stride,
    sizes_of,
    takes_sizes,
    with_dim,
    with_parts,
    with_shape,
)
from tests.reduce.graph.world import op, tensor

JOINED = op("v", "view.default", Ref("x"), [24], meta=tensor(24))


def program(*nodes: Node, shape: tuple[int, ...] = (4, 6), value: Value = Value(), bodies: tuple[tuple[str, Graph], ...] = ()) -> Program:  # noqa: B008
    return Program(Graph((Input("x", tensor(*shape), value),), nodes, Ref("x"), bodies=bodies))


def test_sizes_with_most_elements_behind_them_come_first() -> None:
    graph = Graph((Input("x", tensor(2, 9)), Input("y", tensor(2, 1)), Input("n", Meta("int"))), (), Ref("x"), (Input("w", tensor(7)),))
    assert sizes_of(Program(graph)) == [2, 9, 7]


def test_sizes_stay_where_a_kernel_is_launched() -> None:
    launch = op("l", "torch.ops.higher_order.triton_kernel_wrapper_mutation", Code("k"), Code("(1,)"), meta=Meta(), x=Ref("x"))
    assert sizes_of(program(launch)) == []


def test_a_joined_size_follows_its_parts() -> None:
    assert composed(program(JOINED).graph) == {24: (4, 6)}
    assert free_sizes(program(JOINED, shape=(4, 6))) == [6, 4]
    assert with_parts({6: 2}, {24: (4, 6)}) == {6: 2, 24: 8}
    assert with_parts({24: 3}, {24: (4, 6)}) == {24: 24}


@given(st.dictionaries(st.integers(2, 9), st.integers(1, 9)), st.lists(st.integers(2, 9), min_size=2, max_size=3))
def test_a_composed_size_is_the_product_of_its_parts_whatever_these_become(mapping: dict[int, int], parts: list[int]) -> None:
    whole = 1000
    assert with_parts(mapping, {whole: tuple(parts)})[whole] == math.prod(mapping.get(part, part) for part in parts)


def test_sizes_change_in_inputs_arguments_and_bodies() -> None:
    body = Graph((Input("a", tensor(4, 6)),), (op("e", "expand.default", Ref("a"), [4, 6], meta=tensor(4, 6)),), Ref("e"))
    found = resized(program(op("s", "add.Tensor", Ref("x"), 4, meta=tensor(4, 6)), shape=(4, 6), bodies=(("f", body),)), {4: 2})
    assert found.graph.inputs[0].meta == tensor(2, 6)
    assert found.graph.nodes[0].args[1] == 4  # no size
    inner = dict(found.graph.bodies)["f"]
    assert (inner.inputs[0].meta.shape, inner.nodes[0].args[1]) == ((2, 6), [2, 6])


def test_everywhere_means_every_integer() -> None:
    node = op("s", "add.Tensor", Ref("x"), 4, meta=tensor(4, 6), alpha=4)
    found = resized(program(node), {4: 2}, everywhere=True).graph.nodes[0]
    assert (found.args[1], found.kwargs) == (2, (("alpha", 2),))


def test_a_size_that_is_the_first_argument_changes_too() -> None:
    assert resized(program(op("f", "full.default", [4, 6], 4.0, meta=tensor(4, 6))), {4: 2}).graph.nodes[0].args == ([2, 6], 4.0)


def test_a_size_that_a_view_computes_is_left_open_and_closed_again() -> None:
    node = op("v", "view.default", Ref("x"), [4, 12], meta=tensor(4, 12))
    found = resized(program(node, shape=(4, 6, 2)), {6: 3}).graph.nodes[0]
    assert found.args[1] == [4, -1]
    assert closed(replace(found, meta=tensor(4, 6))).args[1] == [4, 6]
    assert closed(node) == node


def test_a_number_that_is_a_size_follows() -> None:
    graph = Graph((Input("n", Meta("int"), Value("literal", ("4",))), Input("x", tensor(4))), (), Ref("x"))
    assert resized(Program(graph), {4: 2}).graph.inputs[0].value.args == ("2",)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (Value("ones"), Value("ones")),
        (Value("literal", ("[1, 2, 3, 4]",)), Value("randn")),
        (Value("randint", (0, 9)), Value("randint", (0, 9))),
    ],
)
def test_values_that_do_not_fit_are_made_anew(value: Value, expected: Value) -> None:
    item = Input("x", tensor(4), value)
    assert with_shape(program(), item, (2,)) == Input("x", tensor(2), expected)
    assert with_shape(program(), item, (4,)) == item


def test_an_index_stays_within_bounds() -> None:
    item = Input("x", tensor(4, dtype="int64"), Value("randint", (0, 9)))
    assert with_shape(program(), item, (2,)).value == Value("randint", (0, 2))
    assert with_shape(program(), item, (2,), keep_data=True).value == item.value


def test_one_dimension_alone_shrinks_but_does_not_grow() -> None:
    assert with_dim(program(shape=(6, 6)), "x", 1, 2).graph.inputs[0].meta == tensor(6, 2)
    assert with_dim(program(shape=(6, 6)), "x", 1, 8) == program(shape=(6, 6))
    assert with_dim(program(shape=(6, 6)), "y", 1, 2) == program(shape=(6, 6))


@given(st.permutations(range(3)), st.lists(st.integers(1, 5), min_size=3, max_size=3))
def test_dimensions_keep_their_order_in_memory(order: list[int], shape: list[int]) -> None:
    def laid_out(sizes: list[int]) -> tuple[int, ...]:
        stride, step = [0] * 3, 1
        for dim in order:
            stride[dim] = step
            step *= sizes[dim]
        return tuple(stride)

    meta = replace(tensor(2, 3, 4), stride=laid_out([2, 3, 4]))
    assert scaled_stride(meta, tuple(shape)) == laid_out(shape)


def test_expanded_dimensions_stay_expanded() -> None:
    assert scaled_stride(replace(tensor(4, 6), stride=(0, 1)), (2, 3)) == (0, 1)
    assert scaled_stride(Meta("tensor"), (2, 3)) == (3, 1)


def test_which_operations_name_sizes() -> None:
    node = op("v", "reshape.default", Ref("x"), [4, 6], True, 3, meta=tensor(4, 6))
    assert (takes_sizes(node), is_view(node), ints(node)) == (True, True, [4, 6, 3])
    arange = op("a", "arange.default", 4, meta=tensor(4))
    assert (takes_sizes(arange), is_view(arange), ints(arange)) == (True, False, [])
    assert not takes_sizes(op("r", "relu.default", Ref("x"), meta=tensor(4)))
