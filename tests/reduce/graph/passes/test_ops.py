"""The search for the operations that matter."""

from __future__ import annotations

import math

from hypothesis import given, settings
from hypothesis import strategies as st

from bot.reduce.candidate import Candidate
from bot.reduce.graph.form import Graph, Input, Node, Program, Recipe, Ref, Value
from bot.reduce.graph.incumbent import Incumbent
from bot.reduce.graph.keep import units
from bot.reduce.graph.passes import ops, simplify_ops, sizes
from tests.reduce.graph.free_oracle import FreeOracle, chain, present, target
from tests.reduce.graph.world import World, ill_formed, op, programs, tensor, words

META = tensor(4, 4)


def test_a_replacement_that_passes_says_that_its_operation_is_needed() -> None:
    nodes = (
        op("m", "mm.default", Ref("x"), Ref("y"), meta=META),
        op("a", "add.Tensor", Ref("m"), Ref("x"), meta=META),
    )
    program = Program(Graph((Input("x", META), Input("y", META)), nodes, Ref("a")))
    oracle = World(lambda p: words(p) == ["mm", "add"])
    incumbent = Incumbent(program, oracle, oracle.render)
    simplify_ops.run(incumbent)
    asked = oracle.queries
    assert not ops.neighbors(incumbent)
    assert oracle.queries == asked > 0
    assert not ops.neighbors(Incumbent(program, oracle, oracle.render))
    assert oracle.queries == asked + 1


@given(st.integers(1, 40), st.data())
def test_whichever_operations_matter_are_all_that_is_left(count: int, data: st.DataObject) -> None:
    wanted = data.draw(st.sets(st.integers(0, count - 1), min_size=1, max_size=3))
    oracle = FreeOracle(present(sorted(wanted)))
    incumbent = Incumbent(chain(count), oracle, oracle.render)
    assert ops.run(incumbent) is (len(wanted) < count)
    assert {n.target for n in incumbent.program.graph.nodes} == {target(i) for i in wanted}


@settings(max_examples=40, deadline=None)
@given(programs(), st.data())
def test_each_step_is_smaller_and_well_formed(program: Program, data: st.DataObject) -> None:
    wanted = data.draw(st.sampled_from(words(program)))
    oracle = World(lambda p: wanted in words(p))
    taken: list[Program] = []
    keys: list[object] = []

    def accept(program: Program, candidate: Candidate) -> None:
        taken.append(program)
        keys.append((candidate.size, candidate.text))

    incumbent = Incumbent(program, oracle, oracle.render, on_accept=accept)
    start = incumbent.key
    ops.run(incumbent)
    assert [start, *keys] == sorted({start, *keys}, reverse=True)
    assert all(ill_formed(program) is None for program in taken)
    assert wanted in words(incumbent.program)


def test_the_nearest_in_the_data_flow_come_first() -> None:
    graph = chain(6).graph
    assert ops.by_distance(graph, ["n2"]) == ["n1", "n3", "n0", "n4", "n5"]
    apart = Graph((Input("x", META),), tuple(op(f"s{i}", "sin.default", Ref("x"), meta=META) for i in range(3)), Ref("s2"))
    assert ops.by_distance(apart, ["s0"]) == ["s2", "s1"]
    assert set(units(apart)) == {"s0", "s1", "s2"}


def test_a_single_operation_that_matters_costs_nothing_more() -> None:
    oracle = FreeOracle(present([0]))
    incumbent = Incumbent(chain(1), oracle, oracle.render)
    assert not ops.run(incumbent)
    assert not ops.neighbors(incumbent)
    assert oracle.queries == 0


def test_operations_are_doubted_where_the_sizes_have_shrunk_since() -> None:
    """A compiler takes another way by size: what passes with the large ones may fail with the small ones."""
    names = ["x", "relu", "sin", "cos", "exp"]
    nodes = tuple(Node(name, "function", f"torch.{name}", (Ref(names[at]),), (), tensor(4, 4)) for at, name in enumerate(names[1:]))
    program = Program(Graph((Input("x", tensor(4, 4)),), nodes, Ref("exp")), Recipe(seed=None))

    def same(smaller: Program) -> bool:
        found = set(words(smaller))
        elements = sum(math.prod(item.meta.shape) for item in smaller.graph.inputs)
        return {"relu", "sin"} <= found and (elements <= 2 or {"cos", "exp"} <= found)

    oracle = World(same)
    incumbent = Incumbent(program, oracle, oracle.render)
    ops.run(incumbent)
    assert len(words(incumbent.program)) == 4
    assert incumbent.offer(sizes.everything_one(incumbent, incumbent.program), "sizes")
    assert not incumbent.offer(incumbent.keep(["relu"]), "another pass")
    assert ops.neighbors(incumbent), "that one with fewer operations passes says nothing of the others"
    assert words(incumbent.program) == ["relu", "sin", "cos"]


def test_an_operation_on_special_numbers_goes_and_leaves_them_to_the_next() -> None:
    infinite = Value("full", ("torch.inf",))
    nodes = (
        op("a", "cos.default", Ref("x"), meta=META),
        op("b", "relu.default", Ref("a"), meta=META),
        op("c", "sin.default", Ref("b"), meta=META),
    )
    program = Program(Graph((Input("x", META, infinite),), nodes, Ref("c")), Recipe(seed=None))
    oracle = World(lambda p: "sin" in words(p) and any(one.value == infinite for one in p.graph.inputs))
    incumbent = Incumbent(program, oracle, oracle.render)
    assert ops.run(incumbent)
    assert words(incumbent.program) == ["sin"]
    assert [one.value for one in incumbent.program.graph.inputs] == [infinite]


def test_random_numbers_are_as_good_as_others() -> None:
    nodes = (op("a", "cos.default", Ref("x"), meta=META), op("c", "sin.default", Ref("a"), meta=META))
    oracle = World(lambda p: words(p) == ["cos", "sin"])
    incumbent = Incumbent(Program(Graph((Input("x", META),), nodes, Ref("c")), Recipe(seed=None)), oracle, oracle.render)
    assert not ops.run(incumbent)
    assert oracle.queries == 2
