"""Shrinking dimensions."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bot.reduce.graph.form import Graph, Input, Meta, Program, Ref
from bot.reduce.graph.incumbent import Incumbent
from bot.reduce.graph.passes import sizes
from bot.reduce.graph.passes.resize import composed, resized, scaled_stride, sizes_of, with_parts
from tests.reduce.graph.world import World, op, tensor, with_metas, words


def attention_like() -> Program:
    """[B * S, D] seen as [B * S, heads, D / heads], flattened again, and multiplied."""
    nodes = (
        op("a", "mm.default", Ref("x"), Ref("w"), meta=Meta()),
        op("v", "view.default", Ref("a"), [30, 4, 16], meta=Meta()),
        op("r", "relu.default", Ref("v"), meta=Meta()),
        op("f", "view.default", Ref("r"), [30, 64], meta=Meta()),
        op("o", "mm.default", Ref("f"), Ref("w"), meta=Meta()),
    )
    return with_metas(Program(Graph((Input("x", tensor(30, 64)), Input("w", tensor(64, 64))), nodes, Ref("o"))))


ALL = ["mm", "view", "relu", "view", "mm"]


def shrunk(program: Program, oracle: World) -> Program:
    incumbent = Incumbent(program, oracle, oracle.render)
    sizes.run(incumbent)
    return incumbent.program


def test_a_view_says_what_a_size_is_composed_of() -> None:
    assert composed(attention_like().graph) == {64: (4, 16)}
    assert with_parts({4: 2, 16: 2, 30: 1}, {64: (4, 16)}) == {4: 2, 16: 2, 30: 1, 64: 4}
    assert with_parts({2: 1}, {6: (2, 3), 12: (6, 2)}) == {2: 1, 6: 3, 12: 3}


def test_sizes_in_arguments_follow_the_inputs() -> None:
    oracle = World(lambda p: words(p) == ALL)
    found = shrunk(attention_like(), oracle)
    assert [i.meta.shape for i in found.graph.inputs] == [(1, 1), (1, 1)]
    assert [n.args[1] for n in found.graph.nodes if "view" in n.target] == [[1, 1, 1], [1, 1]]
    assert oracle.queries == 1


def test_everything_small_needs_no_query() -> None:
    oracle = World(lambda p: False)
    program = attention_like()
    small = sizes.everything_small(Incumbent(program, oracle, oracle.render), program)
    assert small is not None
    assert [i.meta.shape for i in small.graph.inputs] == [(2, 4), (4, 4)]
    assert oracle.queries == 0


def test_a_size_that_matters_stays_and_the_others_shrink() -> None:
    def predicate(program: Program) -> bool:
        return words(program) == ALL and program.graph.inputs[0].meta.shape[0] == 30

    found = shrunk(attention_like(), World(predicate))
    assert [i.meta.shape for i in found.graph.inputs] == [(30, 1), (1, 1)]


@pytest.mark.parametrize("bound", [3, 17, 64, 100, 1000])
def test_the_smallest_size_that_is_needed_is_found(bound: int) -> None:
    nodes = (op("r", "relu.default", Ref("x"), meta=tensor(1024, 8)),)
    program = Program(Graph((Input("x", tensor(1024, 8)),), nodes, Ref("r")))
    oracle = World(lambda p: p.graph.inputs[0].meta.shape[0] >= bound)
    found = shrunk(program, oracle)
    assert found.graph.inputs[0].meta.shape == (bound, 1)
    assert oracle.queries <= 2 * math.log2(1024) + 4


def test_single_dimensions_shrink_where_an_equal_one_has_to_stay() -> None:
    nodes = (op("m", "mm.default", Ref("x"), Ref("y"), meta=tensor(8, 8)),)
    program = Program(Graph((Input("x", tensor(8, 8)), Input("y", tensor(8, 8))), nodes, Ref("m")))
    found = shrunk(program, World(lambda p: p.graph.inputs[0].meta.shape[1] == 8))
    assert [i.meta.shape for i in found.graph.inputs] == [(1, 8), (8, 1)]


def test_single_dimensions_shrink_beside_an_argument_that_is_a_list() -> None:
    nodes = (op("m", "mm.default", Ref("x"), Ref("y"), meta=Meta()), op("f", "op_roll.default", Ref("m"), [1, 0], meta=Meta()))
    program = with_metas(Program(Graph((Input("x", tensor(8, 8)), Input("y", tensor(8, 8))), nodes, Ref("f"))))
    found = shrunk(program, World(lambda p: p.graph.inputs[0].meta.shape[1] == 8))
    assert [i.meta.shape for i in found.graph.inputs] == [(1, 8), (8, 1)]


def test_an_illegal_size_costs_no_query() -> None:
    nodes = (op("h", "halves.default", Ref("x"), meta=Meta()), op("h0", "operator.getitem", Ref("h"), 0, meta=Meta()))
    program = with_metas(Program(Graph((Input("x", tensor(64)),), nodes, Ref("h0"))))
    oracle = World(lambda p: "halves" in words(p))
    found = shrunk(program, oracle)
    assert found.graph.inputs[0].meta.shape == (2,)
    assert oracle.queries == 1


def test_nothing_becomes_empty_and_what_was_empty_stays() -> None:
    nodes = (op("r", "relu.default", Ref("x"), meta=tensor(0, 9)),)
    program = Program(Graph((Input("x", tensor(0, 9)),), nodes, Ref("r")))
    assert shrunk(program, World(lambda p: True)).graph.inputs[0].meta.shape == (0, 1)
    assert sizes_of(program) == [9]


def test_strides_keep_their_order() -> None:
    turned = Meta("tensor", (64, 32), (1, 64), "float32")
    assert scaled_stride(turned, (4, 2)) == (1, 4)
    expanded = Meta("tensor", (64, 32), (0, 1), "float32")
    assert scaled_stride(expanded, (4, 2)) == (0, 1)
    assert scaled_stride(tensor(5, 6), (2, 3)) == (3, 1)


def test_a_size_that_is_computed_from_others_is_left_open() -> None:
    nodes = (
        op("t", "t.default", Ref("x"), meta=tensor(10, 6)),
        op("v", "view.default", Ref("t"), [60], meta=tensor(60)),
    )
    program = Program(Graph((Input("x", tensor(6, 10)),), nodes, Ref("v")))
    changed = resized(program, {6: 2})
    assert changed.graph.nodes[1].args == (Ref("t"), [-1])
    oracle = World(lambda p: True)
    checked = sizes.legal(Incumbent(program, oracle, oracle.render), changed)
    assert checked is not None
    assert checked.graph.nodes[1].args == (Ref("t"), [20])
    assert checked.graph.nodes[1].meta.shape == (20,)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(2, 40), min_size=1, max_size=3), st.data())
def test_sizes_end_where_the_predicate_says(shape: list[int], data: st.DataObject) -> None:
    least = [data.draw(st.integers(1, n)) for n in shape]
    nodes = (op("r", "relu.default", Ref("x"), meta=tensor(*shape)),)
    program = Program(Graph((Input("x", tensor(*shape)),), nodes, Ref("r")))

    def predicate(candidate: Program) -> bool:
        return all(n >= m for n, m in zip(candidate.graph.inputs[0].meta.shape, least, strict=True))

    found = shrunk(program, World(predicate))
    assert predicate(found)
    if len(set(shape)) == len(shape) and all(m != 2 for m in least):
        assert found.graph.inputs[0].meta.elements <= math.prod(max(m, 2) for m in least)
