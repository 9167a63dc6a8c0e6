"""As many edits as can be, at few queries."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from bot.reduce.graph.edits import GraphEdit, applied, apply, by_halves, on_input, on_node
from bot.reduce.graph.form import Graph, Input, Program, Recipe, Ref
from bot.reduce.graph.incumbent import Incumbent
from tests.reduce.graph.world import World, op, tensor, words

META = tensor(4, 4)


def named(*targets: str) -> Program:
    nodes = tuple(op(f"n{i}", f"{t}.default", Ref(f"n{i - 1}" if i else "x"), meta=META) for i, t in enumerate(targets))
    return Program(Graph((Input("x", META),), nodes, Ref(nodes[-1].name)))


@settings(max_examples=80, deadline=None)
@given(st.sets(st.integers(0, 11)), st.integers(1, 12))
def test_edits_are_applied_but_for_those_that_cannot_be(blocked: set[int], count: int) -> None:
    entries = tuple((f"torch._inductor.config.c{i}", "True") for i in range(count))
    needed = {f"torch._inductor.config.c{i}" for i in blocked}
    program = Program(named("relu").graph, Recipe(config=entries))
    oracle = World(lambda p: needed & {k for k, _ in entries} <= {k for k, _ in p.recipe.config})
    incumbent = Incumbent(program, oracle, oracle.render)

    def drop(name: str) -> GraphEdit:
        return lambda p: Program(p.graph, Recipe(config=tuple(c for c in p.recipe.config if c[0] != name)))

    apply(incumbent, [drop(name) for name, _ in entries], "test")
    assert {k for k, _ in incumbent.program.recipe.config} == needed & {k for k, _ in entries}
    if not blocked:
        assert oracle.queries == 1


@given(st.lists(st.integers(0, 40), unique=True, max_size=20), st.sets(st.integers(0, 40)))
def test_halving_takes_all_that_is_independent(items: list[int], refused: set[int]) -> None:
    taken: list[int] = []
    asked = 0

    def first(parts):  # type: ignore[no-untyped-def]
        nonlocal asked
        for number, part in enumerate(parts):
            asked += 1
            if not refused & set(part):
                taken.extend(part)
                return number
        return None

    assert by_halves(items, first) is bool(set(items) - refused)
    assert sorted(taken) == sorted(set(items) - refused)
    assert asked <= max(1, 2 * len(items))


def test_an_edit_of_what_is_gone_changes_nothing() -> None:
    program = named("relu")
    assert on_input("gone", lambda _, item: item)(program) is None
    assert on_node("gone", lambda node: node)(program) is None
    assert applied(program, [on_node("gone", lambda node: node)]) == program


def test_an_edit_of_an_input_knows_the_program() -> None:
    program = replace(named("relu"), recipe=Recipe(backward=True))
    changed = on_input("x", lambda p, item: replace(item, requires_grad=p.recipe.backward))(program)
    assert changed is not None
    assert changed.graph.inputs[0].requires_grad


def test_what_an_edited_operation_used_alone_goes() -> None:
    nodes = (op("a", "add.Tensor", Ref("x"), Ref("y"), meta=META),)
    program = Program(Graph((Input("x", META), Input("y", META)), nodes, Ref("a")))
    changed = on_node("a", lambda node: replace(node, args=node.args[:1]))(program)
    assert changed is not None
    assert [item.name for item in changed.graph.inputs] == ["x"]


def test_an_edit_that_makes_the_program_illegal_costs_no_query() -> None:
    oracle = World(lambda p: True)
    nodes = (op("m", "mm.default", Ref("x"), Ref("x"), meta=META),)
    incumbent = Incumbent(Program(Graph((Input("x", META),), nodes, Ref("m"))), oracle, oracle.render)
    narrow: GraphEdit = on_input("x", lambda _, item: replace(item, meta=tensor(4, 2)))
    assert not apply(incumbent, [narrow], "test")
    assert (oracle.queries, oracle.shown) == (0, 1)
    assert words(incumbent.program) == ["mm"]
