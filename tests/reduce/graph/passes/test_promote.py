"""Bodies of higher-order operations that fail on their own."""

from __future__ import annotations

from dataclasses import replace

from bot.reduce.graph.form import Graph, Input, Meta, Program, Recipe, Ref, Value
from bot.reduce.graph.incumbent import Incumbent
from bot.reduce.graph.passes import promote
from tests.reduce.graph.free_oracle import FreeOracle
from tests.reduce.graph.world import op, tensor, words

META = tensor(4, 4)


def body(*targets: str, held: tuple[tuple[str, Graph], ...] = ()) -> Graph:
    nodes = tuple(op(f"n{i}", f"{t}.default", Ref(f"n{i - 1}" if i else "a"), meta=META) for i, t in enumerate(targets))
    return Graph((Input("a", META), Input("unused", META)), nodes, [Ref(nodes[-1].name)], bodies=held)


def program(*bodies: tuple[str, Graph]) -> Program:
    calls = tuple(
        op(f"call{i}", "torch.ops.higher_order.wrap", Ref(name), Ref("x"), Ref("x"), meta=META) for i, (name, _) in enumerate(bodies)
    )
    return Program(Graph((Input("x", META),), calls, tuple(Ref(call.name) for call in calls), bodies=bodies))


def test_a_body_that_fails_on_its_own_is_all_that_is_left() -> None:
    oracle = FreeOracle(lambda p: ("relu" in words(p) and not p.graph.bodies) or bool(p.graph.bodies))
    incumbent = Incumbent(program(("one", body("sin", "cos")), ("other", body("sin", "relu", "cos"))), oracle, oracle.render)
    assert promote.run(incumbent)
    assert words(incumbent.program) == ["sin", "relu", "cos"]
    assert [i.name for i in incumbent.program.graph.inputs] == ["a"]  # the call passed another one
    assert oracle.queries == 2  # the smaller body first


def test_a_body_of_a_body_needs_no_second_step() -> None:
    inner = body("relu")
    outer = body("sin", held=(("inner", inner),))
    outer = replace(outer, nodes=(*outer.nodes, op("call", "torch.ops.higher_order.wrap", Ref("inner"), Ref("n0"), Ref("n0"), meta=META)))
    oracle = FreeOracle(lambda p: "relu" in words(p) or bool(p.graph.bodies))
    incumbent = Incumbent(program(("outer", replace(outer, output=Ref("call")))), oracle, oracle.render)
    assert promote.run(incumbent)
    assert words(incumbent.program) == ["relu"]
    assert oracle.queries == 1


def test_an_operation_that_the_failure_needs_stays() -> None:
    oracle = FreeOracle(lambda p: bool(p.graph.bodies))
    incumbent = Incumbent(program(("one", body("relu"))), oracle, oracle.render)
    assert not promote.run(incumbent)
    assert oracle.queries == 1


def test_wrong_numbers_inside_a_body_are_not_the_bug_unless_they_come_out() -> None:
    oracle = FreeOracle(lambda p: True)
    compared = replace(program(("one", body("relu"))), recipe=Recipe(accuracy=True))
    assert not promote.run(Incumbent(compared, oracle, oracle.render))
    assert oracle.queries == 0


def test_equal_bodies_are_one_candidate() -> None:
    oracle = FreeOracle(lambda p: "relu" in words(p) or bool(p.graph.bodies))
    layers = [(f"layer{i}", body("sin")) for i in range(12)]
    incumbent = Incumbent(program(*layers, ("head", body("cos", "relu"))), oracle, oracle.render)
    assert promote.run(incumbent)
    assert words(incumbent.program) == ["cos", "relu"]
    assert oracle.queries == 2


def test_a_size_that_a_body_is_given_is_its_tensors() -> None:
    known = replace(META, symbols=("s0", None))
    rows = Input("rows", Meta("int", symbols=("s0",)))
    inner = Graph((Input("a", known), rows), (op("r", "relu.default", Ref("a"), Ref("rows"), meta=META),), Ref("r"))
    oracle = FreeOracle(lambda p: True)
    incumbent = Incumbent(program(("one", inner)), oracle, oracle.render)
    assert promote.run(incumbent)
    assert [i.name for i in incumbent.program.graph.inputs] == ["a"]


def test_indices_stay_within_bounds_and_numbers_are_no_tensors() -> None:
    index = Input("i", tensor(3, dtype="int64"), Value("randn"))
    taken = op("t", "index_select.default", Ref("a"), 0, Ref("i"), meta=tensor(3, 4))
    inner = Graph((Input("a", META), index), (taken,), Ref("t"))
    counted = replace(inner, inputs=(Input("a", META), Input("i", Meta("int"))))
    oracle = FreeOracle(lambda p: True)
    incumbent = Incumbent(program(("counted", counted)), oracle, oracle.render)
    assert not promote.run(incumbent)
    incumbent = Incumbent(program(("inner", inner)), oracle, oracle.render)
    promote.run(incumbent)
    assert {i.name: i.value.kind for i in incumbent.program.graph.inputs} == {"a": "randn", "i": "zeros"}


def test_many_bodies_wait() -> None:
    oracle = FreeOracle(lambda p: True)
    several = program(*((f"body{i}", body("sin", "relu")) for i in range(3)))
    assert not promote.few(Incumbent(several, oracle, oracle.render))
    assert oracle.queries == 0
    assert promote.few(Incumbent(program(("one", body("sin", "relu"))), oracle, oracle.render))
