"""Fewer outputs."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from bot.reduce.graph.form import Graph, Input, Program, Ref, refs
from bot.reduce.graph.incumbent import Incumbent
from bot.reduce.graph.passes import ops, outputs
from tests.reduce.graph.world import World, ill_formed, op, programs, tensor, words

META = tensor(4, 4)


def test_outputs_that_are_not_needed_go_with_what_they_need() -> None:
    nodes = tuple(op(f"n{i}", f"{t}.default", Ref("x"), meta=META) for i, t in enumerate(("sin", "relu", "cos", "exp", "tanh")))
    program = Program(Graph((Input("x", META),), nodes, tuple(Ref(f"n{i}") for i in range(5))))
    oracle = World(lambda p: "cos" in words(p))
    incumbent = Incumbent(program, oracle, oracle.render)
    outputs.run(incumbent)
    assert list(refs(incumbent.program.graph.output)) == ["n2"]
    assert words(incumbent.program) == ["cos"]


def test_outputs_whose_operations_were_found_to_be_needed_cost_nothing() -> None:
    nodes = tuple(op(f"n{i}", f"{t}.default", Ref("x"), meta=META) for i, t in enumerate(("sin", "relu")))
    program = Program(Graph((Input("x", META),), nodes, (Ref("n0"), Ref("n1"))))
    oracle = World(lambda p: set(words(p)) == {"sin", "relu"})
    incumbent = Incumbent(program, oracle, oracle.render)
    ops.run(incumbent)
    asked = oracle.queries
    assert not outputs.run(incumbent)
    assert (asked, oracle.queries) == (2, 2)


def test_what_something_else_uses_is_returned_no_more() -> None:
    nodes = (op("a", "sin.default", Ref("x"), meta=META), op("b", "relu.default", Ref("a"), meta=META))
    program = Program(Graph((Input("x", META),), nodes, (Ref("a"), Ref("b"), Ref("x"))))
    oracle = World(lambda p: True)
    incumbent = Incumbent(program, oracle, oracle.render)
    assert outputs.sinks(incumbent)
    assert incumbent.program.graph.output == Ref("b")
    assert words(incumbent.program) == ["sin", "relu"]
    assert oracle.queries == 1
    assert not outputs.sinks(incumbent)
    assert oracle.queries == 1


@settings(max_examples=40, deadline=None)
@given(programs(), st.data())
def test_an_output_that_is_needed_stays(program: Program, data: st.DataObject) -> None:
    wanted = data.draw(st.sampled_from(sorted(set(refs(program.graph.output)))))
    target = next(n for n in program.graph.nodes if n.name == wanted).target
    oracle = World(lambda p: any(n.target == target and n.name in set(refs(p.graph.output)) for n in p.graph.nodes))
    incumbent = Incumbent(program, oracle, oracle.render)
    start = incumbent.key
    outputs.run(incumbent)
    assert ill_formed(incumbent.program) is None
    assert incumbent.key <= start
    left = set(refs(incumbent.program.graph.output))
    assert target in [n.target for n in incumbent.program.graph.nodes if n.name in left]
    assert left <= set(refs(program.graph.output))
