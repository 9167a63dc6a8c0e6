"""What the failure itself names is asked first."""

from __future__ import annotations

from bot.reduce.graph.form import Graph, Input, Meta, Program, Ref
from bot.reduce.graph.incumbent import Incumbent
from bot.reduce.graph.passes import guesses
from bot.reduce.graph.passes.resize import resized
from tests.reduce.graph.free_oracle import FreeOracle, chain, fed, present, target
from tests.reduce.graph.world import World, op, tensor, words

META = tensor(4, 4)


def left(incumbent: Incumbent) -> list[str]:
    return [n.target for n in incumbent.program.graph.nodes]


def test_a_right_guess_is_one_query() -> None:
    oracle = FreeOracle(present([7]))
    incumbent = Incumbent(chain(20), oracle, oracle.render)
    assert guesses.run(incumbent, [frozenset({"n7"})])
    assert left(incumbent) == [target(7)]
    assert oracle.queries == 1


def test_operands_come_with_what_the_guess_names() -> None:
    oracle = FreeOracle(fed(6, 7))
    incumbent = Incumbent(chain(20), oracle, oracle.render)
    assert guesses.run(incumbent, [frozenset({"n7"})])
    assert left(incumbent) == [target(6), target(7)]
    assert oracle.queries == 2


def test_wrong_guesses_cost_two_queries_each_and_no_more_than_eight_are_asked() -> None:
    oracle = FreeOracle(present([19]))
    incumbent = Incumbent(chain(20), oracle, oracle.render)
    assert not guesses.run(incumbent, [frozenset({f"n{i}"}) for i in range(2, 18)])
    assert oracle.queries == 16
    assert len(left(incumbent)) == 20


def test_names_that_the_graph_does_not_have_cost_nothing() -> None:
    oracle = FreeOracle(present([3]))
    incumbent = Incumbent(chain(5), oracle, oracle.render)
    assert not guesses.run(incumbent, [frozenset({"nowhere"}), frozenset()], lambda program: (program,))
    assert oracle.queries == 0


def test_the_first_guess_is_asked_smaller_before_all_else() -> None:
    oracle = FreeOracle(lambda p: True)
    incumbent = Incumbent(chain(20), oracle, oracle.render)
    seen: list[Program] = []

    def smaller(program: Program) -> tuple[Program | None, ...]:
        seen.append(program)
        return None, resized(program, {4: 1})

    assert guesses.run(incumbent, [frozenset({"n7"}), frozenset({"n3"})], smaller)
    assert [[n.name for n in program.graph.nodes] for program in seen] == [["n7"]]
    assert left(incumbent) == [target(7)]
    assert incumbent.program.graph.input_elements == 1
    assert oracle.queries == 1


def test_an_item_of_a_tuple_stands_for_what_makes_it() -> None:
    halves = op("h", "halves.default", Ref("x"), meta=Meta(items=(tensor(2, 4), tensor(2, 4))))
    items = tuple(op(f"i{n}", "operator.getitem", Ref("h"), n, meta=tensor(2, 4)) for n in range(2))
    last = op("s", "sin.default", Ref("i1"), meta=tensor(2, 4))
    oracle = World(lambda p: "halves" in words(p))
    incumbent = Incumbent(Program(Graph((Input("x", META),), (halves, *items, last), Ref("s"))), oracle, oracle.render)
    assert guesses.run(incumbent, [frozenset({"i1"})])
    assert words(incumbent.program) == ["halves", "getitem", "getitem"]
