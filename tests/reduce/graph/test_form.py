"""The program form: what it counts, and what is used where."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given

from bot.reduce.graph.form import Code, Graph, Input, Mapping, Meta, Ref, Slice, contiguous_stride, is_op, kernels, leaves, refs
from tests.reduce.graph.world import op, programs, tensor

META = tensor(4, 4)
NESTED = [Ref("a"), (1, Slice(None, Ref("b"), 2)), Mapping((("k", Ref("a")), ("l", Code("torch.float32"))))]
LAUNCH = "torch.ops.higher_order.triton_kernel_wrapper_mutation"


def body_of(name: str) -> Graph:
    return Graph((Input("a", META),), (op(name, "relu.default", Ref("a"), meta=META),), (Ref(name),))


def test_leaves_come_in_order() -> None:
    assert list(leaves(NESTED)) == [Ref("a"), 1, None, Ref("b"), 2, Ref("a"), Code("torch.float32")]
    assert list(refs(NESTED)) == ["a", "b", "a"]


def test_a_node_uses_what_its_arguments_name_in_order_with_repeats() -> None:
    node = op("n", "add.Tensor", Ref("a"), [Ref("b"), 1], meta=META, out=Ref("a"))
    assert list(node.uses()) == ["a", "b", "a"]
    assert list(node.leaves()) == [Ref("a"), Ref("b"), 1, Ref("a")]


def test_what_a_node_writes_is_what_stands_at_these_places() -> None:
    node = op("n", "mine.fill.default", Ref("a"), [Ref("b"), Ref("c")], meta=META, out=Ref("d"), scale=Ref("e"))
    assert list(replace(node, writes=(1, "out")).written()) == ["b", "c", "d"]
    assert list(replace(node, writes=(4, "gone")).written()) == [], "arguments that were dropped"
    assert list(node.written()) == []


def test_operations_of_bodies_count_and_items_do_not() -> None:
    nodes = (
        op("h", "halves.default", Ref("x"), meta=Meta(items=(META, META))),
        op("i", "operator.getitem", Ref("h"), 0, meta=META),
    )
    graph = Graph((Input("x", META),), nodes, Ref("i"), bodies=(("f", body_of("r")), ("g", body_of("s"))))
    assert [n.name for n in graph.all_nodes()] == ["h", "i", "r", "s"]
    assert [is_op(n) for n in graph.all_nodes()] == [True, False, True, True]
    assert graph.ops == 3


def test_constants_are_sources_and_have_elements() -> None:
    graph = Graph((Input("x", META), Input("n", Meta("int"))), (), Ref("x"), constants=(Input("w", tensor(3)),))
    assert [item.name for item in graph.sources] == ["x", "n", "w"]
    assert graph.input_elements == 19
    assert set(graph.metas()) == {"x", "n", "w"}


def test_kernels_of_bodies_are_launched_too() -> None:
    launch = op("l", LAUNCH, Code("pkg.kernel"), Code("(1,)"), meta=Meta(), x=Ref("a"))
    inner = Graph((Input("a", META),), (launch,), Ref("a"))
    assert kernels(Graph((Input("x", META),), (), Ref("x"), bodies=(("f", inner),))) == {"pkg.kernel"}
    assert kernels(body_of("r")) == set()


def test_strides_of_a_fresh_tensor_are_those_of_torch() -> None:
    assert contiguous_stride((2, 3, 4)) == (12, 4, 1)
    assert contiguous_stride((2, 0, 4)) == (4, 4, 1)
    assert contiguous_stride(()) == ()


@given(programs())
def test_all_that_a_graph_uses_has_metadata(program: object) -> None:
    graph = program.graph  # type: ignore[attr-defined]
    assert {name for node in graph.nodes for name in node.uses()} | set(refs(graph.output)) <= set(graph.metas())
