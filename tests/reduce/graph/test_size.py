"""The order on programs."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given

from bot.reduce.graph.form import Arg, Code, Graph, Input, Program, Recipe, Ref, Value
from bot.reduce.graph.keep import Policy, keep_only, units
from bot.reduce.graph.printer.script import render
from bot.reduce.graph.size import argument_cost, dtype_rank, input_cost, is_contiguous, literal_cost, recipe_cost, size_key
from tests.reduce.graph.world import op, programs, tensor

META = tensor(4, 4)
PLAIN = Input("x", META)


def key(program: Program) -> tuple[tuple[int, ...], str]:
    return size_key(program, render(program))


def small() -> Program:
    return Program(Graph((PLAIN,), (op("r", "relu.default", Ref("x"), meta=META),), Ref("r")), Recipe(seed=None))


def with_input(item: Input) -> Program:
    return small().with_graph(replace(small().graph, inputs=(item,)))


def with_node(*args: Arg, **kwargs: Arg) -> Program:
    return small().with_graph(replace(small().graph, nodes=(op("r", "relu.default", Ref("x"), *args, meta=META, **kwargs),)))


# each program is smaller than the one before, though all that weighs less is larger
DESCENDING = [
    small().with_graph(replace(small().graph, nodes=(*small().graph.nodes, op("s", "sin.default", Ref("r"), meta=META)))),
    with_input(Input("x", tensor(4, 5))),
    small().with_graph(replace(small().graph, inputs=(PLAIN, Input("y", tensor(0))))),
    with_input(Input("x", tensor(4, 4, dtype="bfloat16"))),
    with_node(dtype=Code("torch.float64")),
    replace(small(), recipe=Recipe(seed=0)),
    replace(small(), preamble="def unused(): ..."),
    small(),
]


def test_what_weighs_more_decides() -> None:
    keys = [key(program) for program in DESCENDING]
    assert keys == sorted(keys, reverse=True)
    assert len({numbers for numbers, _ in keys}) == len(keys)


@given(programs())
def test_dropping_an_operation_makes_a_program_smaller(program: Program) -> None:
    names = units(program.graph)
    kept = keep_only(program, names[:-1], Policy.CONNECT) if len(names) > 1 else None
    if kept is not None:
        assert key(kept) < key(program)


@pytest.mark.parametrize(
    ("leaf", "cost"), [(None, 0), (True, 0), (Ref("x"), 0), (0, 0), (1.0, 0), (-1, 1), (2, 1), (7, 2), (0.5, 2), ("a", 2), (Code("..."), 2)]
)
def test_unusual_literals_cost_more(leaf: Arg, cost: int) -> None:
    assert literal_cost(leaf) == cost


def test_arguments_of_bodies_cost_as_well() -> None:
    body = Graph((PLAIN,), (op("r", "add.Tensor", Ref("x"), 7, meta=META, alpha=2),), Ref("r"))
    graph = replace(small().graph, bodies=(("f", body),))
    assert (argument_cost(body), argument_cost(graph), argument_cost(small().graph)) == (5, 5, 0)


@pytest.mark.parametrize(
    ("change", "cost"),
    [
        ({}, 0),
        ({"value": Value("blob", ("p",))}, 20),
        ({"value": Value("unheard of")}, 8),
        ({"requires_grad": True, "leaf": False}, 2),
        ({"keyword": "k", "parameter": True}, 2),
        ({"meta": replace(META, stride=(1, 4))}, 2),
        ({"meta": replace(META, dynamic=(0, 1))}, 2),
    ],
)  # fmt: skip
def test_the_making_of_an_input_costs(change: dict[str, object], cost: int) -> None:
    assert input_cost(replace(PLAIN, **change)) == cost  # type: ignore[arg-type]


def test_each_entry_of_a_recipe_costs_one() -> None:
    assert recipe_cost(Recipe(seed=None)) == 0
    full = Recipe(mode="m", options=(("a", "1"),), dynamic=True, fullgraph=True, config=(("b", "2"), ("c", "3")),
                  contexts=("d",), setup=("e",), backward=True, seed=0, freshness=True)  # fmt: skip
    assert recipe_cost(full) == 11


def test_float32_is_the_plainest_dtype() -> None:
    ranks = [dtype_rank(dtype) for dtype in ("float32", "int64", "bfloat16", "complex64", "float8_e5m2")]
    assert ranks == sorted(set(ranks))
    assert ranks[0] == 0


@pytest.mark.parametrize(
    ("shape", "stride", "plain"),
    [((2, 3), (3, 1), True), ((2, 3), (1, 2), False), ((1, 3), (99, 1), True), ((0, 3), (1, 9), True), ((2, 3), (), True)],
)
def test_dimensions_of_one_element_have_no_order(shape: tuple[int, ...], stride: tuple[int, ...], plain: bool) -> None:
    assert is_contiguous(Input("x", replace(tensor(*shape), stride=stride))) is plain
