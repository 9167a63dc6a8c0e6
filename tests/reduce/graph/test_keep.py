"""Programs with some operations kept and the rest dropped."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bot.reduce.graph.form import Graph, Input, Meta, Node, Program, Recipe, Ref, Value, refs
from bot.reduce.graph.keep import Policy, fresh_value, keep_only, units
from tests.reduce.graph.world import ill_formed, infer, op, plain, programs, tensor, word

SQUARE = tensor(4, 4)


def line(*targets: str) -> Program:
    """x -> n0 -> n1 -> ...; all of one shape."""
    nodes = tuple(op(f"n{i}", f"{t}.default", Ref(f"n{i - 1}" if i else "x"), meta=SQUARE) for i, t in enumerate(targets))
    return Program(Graph((Input("x", SQUARE),), nodes, Ref(nodes[-1].name)))


def kept(program: Program | None) -> list[tuple[str, list[str]]]:
    assert program is not None
    return [(n.name, list(n.uses())) for n in program.graph.nodes]


def test_a_cut_makes_an_input_of_what_was_recorded() -> None:
    found = keep_only(line("sin", "exp", "cos"), {"n2"}, Policy.CUT)
    assert kept(found) == [("n2", ["n1"])]
    assert found is not None
    assert found.graph.inputs == (Input("n1", SQUARE, Value("rand")),)
    assert found.graph.output == Ref("n2")


def test_connecting_keeps_what_feeds_what() -> None:
    program = line(*["sin"] * 32)
    assert kept(keep_only(program, {"n0", "n31"}, Policy.CONNECT)) == [("n0", ["x"]), ("n31", ["n0"])]
    assert kept(keep_only(program, {"n0", "n31"}, Policy.CUT)) == [("n0", ["x"]), ("n31", ["n30"])]


def test_connecting_needs_the_same_shape_and_any_does_not() -> None:
    wide = tensor(4, 6)
    nodes = (
        op("a", "sin.default", Ref("x"), meta=SQUARE),
        op("b", "mm.default", Ref("a"), Ref("w"), meta=wide),
        op("c", "cos.default", Ref("b"), meta=wide),
    )
    program = Program(Graph((Input("x", SQUARE), Input("w", wide)), nodes, Ref("c")))
    assert kept(keep_only(program, {"a", "c"}, Policy.CONNECT)) == [("a", ["x"]), ("c", ["b"])]
    assert kept(keep_only(program, {"a", "c"}, Policy.ANY)) == [("a", ["x"]), ("c", ["a"])]


def test_an_input_stands_in_where_no_ancestor_is_kept() -> None:
    wide = tensor(4, 6)
    nodes = (
        op("a", "sin.default", Ref("x"), meta=SQUARE),
        op("b", "mm.default", Ref("a"), Ref("w"), meta=wide),
        op("c", "cos.default", Ref("b"), meta=wide),
        op("d", "exp.default", Ref("c"), meta=wide),
    )
    program = Program(Graph((Input("x", SQUARE), Input("w", wide)), nodes, Ref("d")))
    assert kept(keep_only(program, {"d"}, Policy.GIVEN)) == [("d", ["w"])]
    assert kept(keep_only(program, {"b", "d"}, Policy.GIVEN)) == [("b", ["x", "w"]), ("d", ["b"])]
    assert kept(keep_only(program, {"a", "d"}, Policy.GIVEN)) == [("a", ["x"]), ("d", ["w"])]
    narrow = tensor(2)
    only = (op("a", "sum.dim_IntList", Ref("x"), meta=narrow), op("b", "cos.default", Ref("a"), meta=narrow))
    assert kept(keep_only(Program(Graph((Input("x", SQUARE),), only, Ref("b"))), {"b"}, Policy.GIVEN)) == [("b", ["a"])]


def test_the_latest_kept_ancestor_is_taken() -> None:
    nodes = (
        op("a", "sin.default", Ref("x"), meta=SQUARE),
        op("b", "cos.default", Ref("a"), meta=SQUARE),
        op("m", "add.Tensor", Ref("a"), Ref("b"), meta=SQUARE),
        op("c", "exp.default", Ref("m"), meta=SQUARE),
    )
    program = Program(Graph((Input("x", SQUARE),), nodes, Ref("c")))
    assert kept(keep_only(program, {"a", "b", "c"})) == [("a", ["x"]), ("b", ["a"]), ("c", ["b"])]


def test_values_without_users_are_the_outputs() -> None:
    found = keep_only(line("sin", "exp", "cos", "tanh"), {"n0", "n2"}, Policy.CUT)
    assert found is not None
    assert found.graph.output == (Ref("n0"), Ref("n2"))


def test_original_outputs_stay_outputs_unless_only_sinks_are_wanted() -> None:
    program = line("sin", "exp", "cos")
    program = program.with_graph(replace(program.graph, output=(Ref("n1"), Ref("n2"), Ref("x"))))
    everything = units(program.graph)
    same = keep_only(program, everything)
    assert same == program
    sinks = keep_only(program, everything, sinks_only=True)
    assert sinks is not None
    assert sinks.graph.output == Ref("n2")
    first = keep_only(program, {"n0", "n1"})
    assert first is not None
    assert list(refs(first.graph.output)) == ["n1", "x"]


def test_only_exposable_values_are_shown_and_what_feeds_none_goes() -> None:
    program = line("sin", "exp", "cos", "tanh")
    found = keep_only(program, {"n0", "n1", "n2"}, exposable=frozenset({"n1"}))
    assert kept(found) == [("n0", ["x"]), ("n1", ["n0"])]
    assert keep_only(program, {"n0"}, exposable=frozenset({"n1"})) is None


def test_items_of_a_result_come_and_go_with_it() -> None:
    half = tensor(2, 4)
    nodes = (
        op("h", "halves.default", Ref("x"), meta=Meta("other", items=(half, half))),
        op("h0", "operator.getitem", Ref("h"), 0, meta=half),
        op("h1", "operator.getitem", Ref("h"), 1, meta=half),
        op("c", "cos.default", Ref("h1"), meta=half),
    )
    program = Program(Graph((Input("x", SQUARE),), nodes, (Ref("h0"), Ref("c"))))
    assert units(program.graph) == ["h", "c"]
    assert kept(keep_only(program, {"c"})) == [("c", ["h1"])]
    alone = keep_only(program, {"h"})
    assert alone is not None
    assert list(refs(alone.graph.output)) == ["h0", "h1"]
    without_either = keep_only(program.with_graph(replace(program.graph, output=Ref("c"))), {"h"})
    assert without_either is not None
    assert list(refs(without_either.graph.output)) == ["h0", "h1"]


def test_a_known_number_becomes_a_literal_and_a_context_keeps_its_entry() -> None:
    number = Meta("int")
    nodes = (
        op("s", "sym_size.int", Ref("x"), 0, meta=number),
        op("twice", "operator.mul", Ref("s"), 2, meta=number),
        op("enter", "torch.amp.autocast_mode._enter_autocast", "cpu", meta=Meta()),
        op("v", "view.default", Ref("x"), [Ref("twice"), 2], meta=tensor(8, 2)),
        op("leave", "torch.amp.autocast_mode._exit_autocast", Ref("enter"), meta=Meta()),
    )
    program = Program(Graph((Input("x", SQUARE),), nodes, Ref("v")))
    found = keep_only(program, {"v"})
    assert found is not None
    assert found.graph.nodes[0].args == (Ref("x"), [8, 2])
    assert kept(keep_only(program, {"v", "leave"})) == [("enter", []), ("v", ["x"]), ("leave", ["enter"])]


@pytest.mark.parametrize("recipe", [Recipe(backward=True), Recipe(has_backward=True)])
def test_cut_inputs_have_gradients_where_a_backward_fails(recipe: Recipe) -> None:
    """Also where the script only compiles one."""
    found = keep_only(replace(line("sin", "cos"), recipe=recipe), {"n1"})
    assert found is not None
    assert [i.requires_grad for i in found.graph.inputs] == [True]


def test_fresh_values_are_legal_for_their_users() -> None:
    index = tensor(3, dtype="int64")
    assert fresh_value(index, "torch.ops.aten.argmax.default", [op("e", "torch.ops.aten.embedding.default", meta=index)]) == Value("zeros")
    assert fresh_value(index, "torch.ops.aten.argmax.default", [op("a", "torch.ops.aten.add.Tensor", meta=index)]) == Value(
        "randint", (0, 2)
    )
    assert fresh_value(SQUARE, "torch.ops.aten.softmax.int") == Value("rand")
    assert fresh_value(SQUARE, "torch.ops.aten.sin.default") == Value("randn")


@pytest.mark.parametrize(
    ("target", "more", "varied", "kind"),
    [
        ("torch.ops.aten.index_put.default", (), True, "arange"),
        ("torch.ops.aten.index_put_.default", (), True, "arange"),
        ("operator.setitem", (), True, "arange"),
        ("torch.ops.aten.index_put.default", (True,), True, "zeros"),
        ("torch.ops.aten.index_put.default", (), False, "zeros"),
        ("torch.ops.aten.index.Tensor", (), True, "zeros"),
    ],
)
def test_no_place_is_written_twice_where_numbers_are_compared(target: str, more: tuple[bool, ...], varied: bool, kind: str) -> None:
    index = tensor(3, dtype="int64")
    user = op("p", target, Ref("x"), (Ref("i"),), Ref("v"), *more, meta=SQUARE)
    assert fresh_value(index, "argmax.default", [user], varied=varied).kind == kind


def test_bodies_stay_with_their_caller() -> None:
    body = Graph((Input("a", SQUARE),), (op("r", "relu.default", Ref("a"), meta=SQUARE),), Ref("r"))
    call = Node("call", "function", "torch.ops.higher_order.wrap", (Ref("wrap_body"), Ref("x")), (), SQUARE)
    nodes = (call, op("c", "cos.default", Ref("call"), meta=SQUARE))
    program = Program(Graph((Input("x", SQUARE),), nodes, Ref("c"), bodies=(("wrap_body", body),)))
    with_call, without = keep_only(program, {"call"}), keep_only(program, {"c"})
    assert with_call is not None
    assert without is not None
    assert [name for name, _ in with_call.graph.bodies] == ["wrap_body"]
    assert without.graph.bodies == ()


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_every_subset_is_well_formed_and_true_to_its_metadata(data: st.DataObject) -> None:
    program = data.draw(programs())
    names = units(program.graph)
    keep = set(data.draw(st.lists(st.sampled_from(names), min_size=1)))
    for policy in (Policy.CUT, Policy.CONNECT):
        found = keep_only(program, keep, policy)
        assert found is not None
        assert ill_formed(found) is None
        metas = infer(found.graph)
        assert metas is not None
        assert all(plain(metas[n.name]) == plain(n.meta) for n in found.graph.nodes)
        assert {n.name for n in found.graph.nodes if word(n) != "getitem"} == keep


def test_what_an_operator_writes_is_returned_in_place_of_its_result() -> None:
    """An operator of the user's that fills a tensor returns nothing, and its name does not say which it fills."""
    fill = replace(op("f", "mine.fill.default", Ref("e"), Ref("x"), meta=Meta()), writes=(0,))
    nodes = (op("e", "empty_like.default", Ref("x"), meta=SQUARE), fill, op("r", "sin.default", Ref("e"), meta=SQUARE))
    program = Program(Graph((Input("x", SQUARE),), nodes, Ref("r")))
    found = keep_only(program, {"e", "f"}, Policy.CONNECT)
    assert kept(found) == [("e", ["x"]), ("f", ["e", "x"])]
    assert found is not None
    assert found.graph.output == Ref("e")
    assert ("f", ["e", "x"]) in kept(keep_only(program, {"e", "r"}, Policy.CONNECT)), "without it, an empty tensor holds garbage"
