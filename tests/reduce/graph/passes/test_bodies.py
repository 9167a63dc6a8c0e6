"""Operations inside the bodies of higher-order operations."""

from __future__ import annotations

import pytest

from bot.reduce.graph.form import Graph, Input, Program, Ref
from bot.reduce.graph.incumbent import Incumbent
from bot.reduce.graph.passes import bodies
from tests.reduce.graph.free_oracle import FreeOracle
from tests.reduce.graph.world import op, tensor, word

META = tensor(4, 4)
NAMES = ("sin", "relu", "cos", "exp", "tanh", "sigmoid")


def program() -> Program:
    """A call of a body that calls another."""
    inner = Graph(
        (Input("a", META),),
        tuple(op(f"i{n}", f"{t}.default", Ref(f"i{n - 1}" if n else "a"), meta=META) for n, t in enumerate(NAMES)),
        (Ref("i5"),),
    )
    outer_nodes = (
        op("o0", "sin.default", Ref("b"), meta=META),
        op("call", "torch.ops.higher_order.wrap", Ref("inner"), Ref("o0"), meta=META),
        op("o1", "cos.default", Ref("call"), meta=META),
    )
    outer = Graph((Input("b", META), Input("unused", META)), outer_nodes, (Ref("o1"),), bodies=(("inner", inner),))
    nodes = (op("top", "torch.ops.higher_order.wrap", Ref("outer"), Ref("x"), Ref("x"), meta=META),)
    return Program(Graph((Input("x", META),), nodes, Ref("top"), bodies=(("outer", outer),)))


def everything(graph: Graph) -> list[str]:
    return [word(n) for n in graph.nodes] + [name for _, body in graph.bodies for name in everything(body)]


@pytest.mark.parametrize("wanted", NAMES)
def test_only_what_is_needed_stays_inside(wanted: str) -> None:
    oracle = FreeOracle(lambda p: everything(p.graph).count("wrap") == 2 and wanted in everything(p.graph))
    incumbent = Incumbent(program(), oracle, oracle.render)
    bodies.run(incumbent)
    assert sorted(everything(incumbent.program.graph)) == sorted(["wrap", "wrap", wanted])
    outer = dict(incumbent.program.graph.bodies)["outer"]
    assert [i.name for i in outer.inputs] == ["b", "unused"]  # the call passes both


def test_all_that_can_go_goes_in_one_query() -> None:
    oracle = FreeOracle(lambda p: True)
    incumbent = Incumbent(program(), oracle, oracle.render)
    bodies.run(incumbent)
    assert oracle.queries == 1
    assert everything(incumbent.program.graph) == ["wrap"]


def test_a_program_without_bodies_costs_nothing() -> None:
    oracle = FreeOracle(lambda p: True)
    plain = Program(Graph((Input("x", META),), (op("r", "relu.default", Ref("x"), meta=META),), Ref("r")))
    assert not bodies.run(Incumbent(plain, oracle, oracle.render))
    assert oracle.queries == 0
