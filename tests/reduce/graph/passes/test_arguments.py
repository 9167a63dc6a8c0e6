"""What operations are called with."""

from __future__ import annotations

from bot.reduce.graph.form import Code, Graph, Input, Program, Ref
from bot.reduce.graph.incumbent import Incumbent
from bot.reduce.graph.passes import arguments
from tests.reduce.graph.world import World, op, tensor

META = tensor(4, 4)


def after(oracle: World, *args: object, **kwargs: object) -> tuple[tuple[object, ...], tuple[tuple[str, object], ...]]:
    nodes = (op("a", "add.Tensor", Ref("x"), *args, meta=META, **kwargs),)
    incumbent = Incumbent(Program(Graph((Input("x", META),), nodes, Ref("a"))), oracle, oracle.render)
    arguments.run(incumbent)
    node = incumbent.program.graph.nodes[0]
    return node.args, node.kwargs


def test_keywords_and_last_literals_are_dropped_at_once() -> None:
    oracle = World(lambda p: True)
    assert after(oracle, Ref("x"), False, alpha=0.3, dtype=Code("torch.float32")) == ((Ref("x"), Ref("x")), ())
    assert oracle.queries == 1


def test_a_needed_keyword_stays_with_a_plain_number() -> None:
    oracle = World(lambda p: any(key == "alpha" for key, _ in p.graph.nodes[0].kwargs))
    assert after(oracle, Ref("x"), alpha=0.3, dtype=Code("torch.float32")) == ((Ref("x"), Ref("x")), (("alpha", 1.0),))


def test_integers_become_small() -> None:
    oracle = World(lambda p: isinstance(p.graph.nodes[0].args[-1], list) and p.graph.nodes[0].args[-1] != [1, 1])
    assert after(oracle, Ref("x"), [7, 7]) == ((Ref("x"), Ref("x"), [2, 2]), ())


def test_a_large_program_is_left_alone() -> None:
    nodes = tuple(op(f"n{i}", "add.Tensor", Ref("x"), Ref("x"), meta=META, alpha=0.5) for i in range(60))
    oracle = World(lambda p: True)
    incumbent = Incumbent(Program(Graph((Input("x", META),), nodes, Ref("n59"))), oracle, oracle.render)
    assert not arguments.run(incumbent)
    assert oracle.queries == 0
