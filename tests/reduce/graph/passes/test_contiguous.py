"""Plain tensors as inputs."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bot.reduce.graph.edits import applied, apply
from bot.reduce.graph.form import Graph, Input, Program, Recipe, Ref
from bot.reduce.graph.incumbent import Incumbent
from bot.reduce.graph.passes import contiguous
from tests.reduce.graph.world import World, op, tensor

META = tensor(4, 4)
TURNED = replace(META, stride=(1, 4))
PLAIN = Recipe(seed=None)
ODD = Input("x", TURNED, requires_grad=True, leaf=False, keyword="word")


def program(*inputs: Input, recipe: Recipe = PLAIN) -> Program:
    nodes = tuple(op(f"n{i}", "relu.default", Ref(item.name), meta=META) for i, item in enumerate(inputs))
    return Program(Graph(inputs, nodes, tuple(Ref(n.name) for n in nodes)), recipe)


def test_nothing_is_proposed_for_a_plain_input() -> None:
    assert contiguous.edits(program(Input("x", META), Input("y", replace(tensor(1, 4), stride=(99, 1))))) == []


def test_an_input_becomes_plain() -> None:
    start = program(ODD)
    assert applied(start, contiguous.edits(start)).graph.inputs == (Input("x", META),)


def test_constants_become_plain_tensors() -> None:
    start = program(Input("x", META))
    weight = Input("w", TURNED, requires_grad=True, parameter=True)
    nodes = (op("m", "mm.default", Ref("x"), Ref("w"), meta=META),)
    start = start.with_graph(Graph(start.graph.inputs, nodes, Ref("m"), constants=(weight,)))
    assert applied(start, contiguous.edits(start)).graph.constants == (Input("w", META),)


@pytest.mark.parametrize("recipe", [replace(PLAIN, backward=True), replace(PLAIN, has_backward=True)])
def test_gradients_stay_where_a_backward_fails(recipe: Recipe) -> None:
    start = program(ODD, recipe=recipe)
    assert applied(start, contiguous.edits(start)).graph.inputs == (Input("x", META, requires_grad=True),)


def test_strides_that_are_needed_stay() -> None:
    start = program(ODD, replace(ODD, name="y"))
    oracle = World(lambda p: p.graph.inputs[1].meta.stride == (1, 4))
    incumbent = Incumbent(start, oracle, oracle.render)
    assert apply(incumbent, contiguous.edits(start), "contiguous")
    assert incumbent.program.graph.inputs == (Input("x", META), Input("y", TURNED))


def test_an_input_that_is_contiguous_by_now_keeps_its_strides() -> None:
    start = program(Input("x", TURNED))
    single = replace(tensor(1, 4), stride=(99, 1))
    shrunk = start.with_graph(replace(start.graph, inputs=(Input("x", single),)))
    assert applied(shrunk, contiguous.edits(start)) == shrunk
