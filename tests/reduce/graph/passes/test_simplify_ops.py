"""Simpler operations in the place of others."""

from __future__ import annotations

from collections import Counter

from bot.reduce.graph.form import Graph, Input, Program, Ref
from bot.reduce.graph.incumbent import Incumbent
from bot.reduce.graph.passes import simplify_ops
from tests.reduce.graph.world import World, op, tensor, words

META = tensor(4, 4)


def test_what_only_an_output_uses_is_not_replaced_by_its_operand() -> None:
    nodes = tuple(op(f"n{i}", f"{t}.default", Ref("x"), meta=META) for i, t in enumerate(("sin", "relu")))
    program = Program(Graph((Input("x", META),), nodes, (Ref("n0"), Ref("n1"))))
    oracle = World(lambda p: set(words(p)) == {"sin", "relu"})
    assert not simplify_ops.run(Incumbent(program, oracle, oracle.render))
    assert oracle.queries == 0


def test_an_operation_is_replaced_by_a_plain_one() -> None:
    nodes = (
        op("m", "mm.default", Ref("x"), Ref("y"), meta=META),
        op("t", "tanh.default", Ref("m"), meta=META),
    )
    program = Program(Graph((Input("x", META), Input("y", META)), nodes, Ref("t")))
    oracle = World(lambda p: len(p.graph.nodes) == 2 and words(p)[-1] == "tanh")
    incumbent = Incumbent(program, oracle, oracle.render)
    simplify_ops.run(incumbent)
    assert Counter(words(incumbent.program)) == Counter(["relu", "tanh"])
    assert [i.name for i in incumbent.program.graph.inputs] == ["x"]


def test_a_shared_operand_takes_the_place_of_an_operation() -> None:
    nodes = (
        op("r", "relu.default", Ref("x"), meta=META),
        op("a", "add.Tensor", Ref("r"), Ref("x"), meta=META),
    )
    program = Program(Graph((Input("x", META),), nodes, Ref("a")))

    def same_operand_twice(p: Program) -> bool:
        return any(n.target == "torch.ops.aten.add.Tensor" for n in p.graph.nodes) and len(p.graph.inputs) == 1

    oracle = World(same_operand_twice)
    incumbent = Incumbent(program, oracle, oracle.render)
    simplify_ops.run(incumbent)
    assert [(n.name, list(n.uses())) for n in incumbent.program.graph.nodes] == [("a", ["x", "x"])]


def test_what_has_no_gradients_or_another_shape_is_no_relu() -> None:
    oracle = World(lambda p: True)
    integers = tensor(4, 4, dtype="int64")
    whole = (op("a", "add.Tensor", Ref("i"), Ref("i"), meta=integers),)
    assert not simplify_ops.run(Incumbent(Program(Graph((Input("i", integers),), whole, Ref("a"))), oracle, oracle.render))
    wide, tall = Input("x", tensor(2, 3)), Input("y", tensor(3, 4))
    product = (op("m", "mm.default", Ref("x"), Ref("y"), meta=tensor(2, 4)),)
    assert not simplify_ops.run(Incumbent(Program(Graph((wide, tall), product, Ref("m"))), oracle, oracle.render))
    assert oracle.queries == 0


def test_a_large_program_is_left_alone() -> None:
    nodes = tuple(op(f"n{i}", "add.Tensor", Ref(f"n{i - 1}" if i else "x"), Ref("x"), meta=META) for i in range(41))
    oracle = World(lambda p: True)
    assert not simplify_ops.run(Incumbent(Program(Graph((Input("x", META),), nodes, Ref("n40"))), oracle, oracle.render))
    assert oracle.queries == 0
