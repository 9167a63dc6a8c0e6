"""Small changes to a graph."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from bot.reduce.graph.form import Arg, Code, Graph, Input, Mapping, Program, Ref, Slice, refs
from bot.reduce.graph.rewrite import (
    drop_unused,
    find_input,
    find_node,
    map_inputs,
    map_leaves,
    map_nodes,
    rename,
    rename_in,
    substitute,
    with_input,
    with_node,
)
from tests.reduce.graph.world import ill_formed, op, programs, tensor

META = tensor(4, 4)
LEAVES = st.none() | st.integers() | st.text() | st.sampled_from([Ref("a"), Ref("b"), Code("torch.int8")])
ARGUMENTS: st.SearchStrategy[Arg] = st.recursive(
    LEAVES,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.lists(inner, max_size=3).map(tuple)
        | st.builds(Slice, inner, inner, inner)
        | st.lists(st.tuples(st.text(max_size=2), inner), max_size=3).map(lambda items: Mapping(tuple(items)))
    ),
    max_leaves=8,
)


def program() -> Program:
    nodes = (op("a", "relu.default", Ref("x"), meta=META), op("b", "add.Tensor", Ref("a"), Ref("y"), meta=META))
    return Program(Graph((Input("x", META), Input("y", META)), nodes, Ref("b"), constants=(Input("w", META),)))


@given(ARGUMENTS)
def test_leaves_that_stay_leave_an_argument_as_it_is(arg: Arg) -> None:
    assert map_leaves(arg, lambda leaf: leaf) == arg
    assert rename(arg, {}) == arg


@given(ARGUMENTS)
def test_what_is_renamed_is_used_no_more(arg: Arg) -> None:
    found = list(refs(rename(arg, {"a": Ref("c")})))
    assert found == ["c" if name == "a" else name for name in refs(arg)]


def test_keywords_are_renamed_too() -> None:
    node = op("n", "add.Tensor", Ref("a"), meta=META, other=[Ref("a"), Ref("b")])
    changed = rename_in(node, {"a": 3})
    assert (changed.args, changed.kwargs) == ((3,), (("other", [3, Ref("b")]),))


def test_substituting_a_value_drops_the_inputs_that_had_no_other_user() -> None:
    found = substitute(program().graph, {"y": Ref("x")})
    assert [item.name for item in found.sources] == ["x"]
    assert list(found.nodes[1].uses()) == ["a", "x"]


@given(programs(), st.data())
def test_merging_two_inputs_of_one_shape_keeps_a_program_well_formed(start: Program, data: st.DataObject) -> None:
    names = [item.name for item in start.graph.inputs]
    old, new = data.draw(st.sampled_from(names)), data.draw(st.sampled_from(names))
    found = start.with_graph(substitute(start.graph, {old: Ref(new)}))
    assert ill_formed(found) is None
    assert len(found.graph.inputs) == len(names) - (old != new)


def test_what_nothing_uses_is_dropped() -> None:
    graph = replace(program().graph, bodies=(("f", Graph((), (), None)),))
    found = drop_unused(graph)
    assert [item.name for item in found.inputs] == ["x", "y"]
    assert (found.constants, found.bodies) == ((), ())
    assert found.nodes == graph.nodes


def test_things_are_found_and_replaced_by_name() -> None:
    start = program()
    weight, node = find_input(start, "w"), find_node(start, "b")
    assert weight is not None
    assert node is not None
    assert find_input(start, "b") is None
    assert find_node(start, "x") is None
    assert find_input(with_input(start, replace(weight, parameter=True)), "w") == replace(weight, parameter=True)
    changed = with_node(start, replace(node, target="torch.mul"))
    assert [n.target for n in changed.graph.nodes] == [start.graph.nodes[0].target, "torch.mul"]


def test_bodies_are_changed_with_the_graph_but_their_inputs_are_not() -> None:
    body = Graph((Input("a", META),), (op("r", "relu.default", Ref("a"), meta=META),), Ref("r"))
    graph = replace(program().graph, bodies=(("f", body),))
    changed = map_nodes(graph, lambda n: replace(n, target="t"))
    assert {n.target for n in changed.all_nodes()} == {"t"}
    assert len(list(changed.all_nodes())) == 3
    again = map_inputs(graph, lambda item: replace(item, requires_grad=True))
    assert [item.requires_grad for item in again.sources] == [True] * 3
    assert not again.bodies[0][1].inputs[0].requires_grad
