"""The readable form of operations."""

from __future__ import annotations

from bot.reduce.graph.form import Graph, Input, Meta, Program, Ref
from bot.reduce.graph.incumbent import Incumbent
from bot.reduce.graph.passes import lift
from tests.reduce.graph.world import World, op, tensor, words

X, Y = Ref("x"), Ref("y")
META = tensor(4, 4)


def three() -> Program:
    half = Meta("other", items=(META, META))
    nodes = (
        op("a", "relu.default", X, meta=META),
        op("b", "add.Tensor", Ref("a"), X, meta=META),
        op("c", "max_pool2d_with_indices.default", Ref("b"), [2, 2], meta=half),
        op("d", "operator.getitem", Ref("c"), 0, meta=META),
    )
    return Program(Graph((Input("x", META),), nodes, Ref("d")))


def test_all_are_lifted_in_one_query() -> None:
    program = three()
    assert words(lift.lift(program)) == ["relu", "add", "max_pool2d"]
    assert lift.lift(program).graph.output == Ref("c")
    assert lift.lift(program, ["a"]).graph.nodes[1:] == program.graph.nodes[1:]


def test_one_operation_that_has_to_stay_does_not_hold_the_others_back() -> None:
    nodes = tuple(
        op(f"n{i}", f"{t}.default", Ref(f"n{i - 1}" if i else "x"), meta=META) for i, t in enumerate(("sin", "relu", "cos", "exp"))
    )
    program = Program(Graph((Input("x", META),), nodes, Ref("n3")))
    oracle = World(lambda p: any(n.target == "torch.ops.aten.cos.default" for n in p.graph.nodes))
    incumbent = Incumbent(program, oracle, oracle.render)
    lift.run(incumbent)
    assert [n.target for n in incumbent.program.graph.nodes] == ["torch.sin", "torch.relu", "torch.ops.aten.cos.default", "torch.exp"]


def test_bodies_are_lifted_too() -> None:
    body = Graph((Input("a", META),), (op("r", "relu.default", Ref("a"), meta=META),), Ref("r"))
    nodes = (op("w", "torch.ops.higher_order.wrap", Ref("body"), X, meta=META),)
    program = Program(Graph((Input("x", META),), nodes, Ref("w"), bodies=(("body", body),)))
    assert dict(lift.lift(program).graph.bodies)["body"].nodes[0].target == "torch.relu"
    assert lift.lift(program, bodies=False) == program
