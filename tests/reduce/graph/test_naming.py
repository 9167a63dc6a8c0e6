"""Names that depend on nothing but the operations."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.reduce.graph.form import Graph, Input, Meta, Node, Program, Ref, Value, refs
from bot.reduce.graph.naming import bind_symbols, canonical, is_legal
from bot.reduce.graph.rewrite import rename_in
from tests.reduce.graph.world import ill_formed, op, programs, tensor

META = tensor(4, 4)


def renamed(graph: Graph, prefix: str) -> Graph:
    """The graph with another name for every value."""
    change = {name: Ref(prefix + name) for name in graph.metas()}
    return replace(
        graph,
        inputs=tuple(replace(item, name=prefix + item.name) for item in graph.inputs),
        nodes=tuple(replace(rename_in(node, change), name=prefix + node.name) for node in graph.nodes),
        output=tuple(change[name] for name in refs(graph.output)),
    )


@given(programs(), st.sampled_from(["a", "class_", "x"]))
def test_programs_that_differ_in_names_alone_are_one(program: Program, prefix: str) -> None:
    found = canonical(program.graph)
    assert canonical(renamed(program.graph, prefix)) == found
    assert canonical(found) == found
    assert is_legal(found)
    assert ill_formed(program.with_graph(found)) is None


def test_values_are_called_after_what_they_do() -> None:
    inputs = tuple(Input(f"p{i}", META) for i in range(4))
    nodes = (
        op("a", "relu.default", Ref("p3"), meta=META),
        op("b", "relu.default", Ref("a"), meta=META),
        op("c", "operator.add", Ref("b"), Ref("p0"), meta=META),
    )
    found = canonical(Graph(inputs, nodes, Ref("c"), constants=(Input("w.0", META), Input("0", META))))
    assert [item.name for item in found.inputs] == ["x", "y", "z", "x3"]
    assert [node.name for node in found.nodes] == ["relu", "relu_1", "add"]
    assert [item.name for item in found.constants] == ["w_0", "c0"]
    assert found.output == Ref("add")


@pytest.mark.parametrize(
    ("target", "name"),
    [
        ("builtins.sum", "sum_1"),
        ("torch.ops.aten.copy.default", "copy_1"),
        ("pkg.x", "x_1"),
        ("torch._C._nn.gelu", "gelu"),
        ("__main__.mine", "mine_1"),
    ],
)
def test_no_value_hides_what_the_script_says(target: str, name: str) -> None:
    graph = Graph((Input("p", META),), (Node("n", "function", target, (Ref("p"),), (), META),), Ref("n"))
    assert [node.name for node in canonical(graph).nodes] == [name]


def test_an_input_that_is_passed_by_keyword_keeps_it() -> None:
    found = canonical(Graph((Input("a", META, keyword="input"), Input("b", META, keyword="from"), Input("c", META)), (), Ref("a")))
    assert [item.name for item in found.inputs] == ["input", "x", "y"]


def test_bodies_are_named_for_what_they_are() -> None:
    body = Graph((Input("q", META),), (), Ref("q"))
    names = ("true_graph_0", "false_graph_0", "true_graph_1", "cond_0", "anything")
    found = canonical(Graph((Input("p", META),), (), Ref("p"), bodies=tuple((name, body) for name in names)))
    assert [name for name, _ in found.bodies] == ["true_fn", "false_fn", "true_fn_1", "cond_fn", "fn"]
    assert [item.name for _, inner in found.bodies for item in inner.inputs] == ["x"] * 5


@pytest.mark.parametrize(
    ("change", "legal"),
    [
        ({}, True),
        ({"inputs": (Input("torch", META),)}, False),
        ({"inputs": (Input("a", META), Input("a", META))}, False),
        ({"inputs": (Input("a", META, keyword="b"),)}, False),
        ({"inputs": (Input("input", META, keyword="input"),)}, True),
        ({"constants": (Input("train", META),)}, False),
        ({"constants": (Input("weight", META),)}, True),
        ({"bodies": (("a", Graph((), (), None)),)}, False),
        ({"bodies": (("f", Graph((Input("1", META),), (), None)),)}, False),
    ],
)
def test_which_names_a_script_can_use(change: dict[str, object], legal: bool) -> None:
    graph = Graph((Input("a", META),), (), Ref("a"))
    assert is_legal(replace(graph, **change)) is legal  # type: ignore[arg-type]


def test_a_size_that_a_tensor_has_is_no_input() -> None:
    x = Input("x", replace(META, symbols=("s0", None)))
    size, other = Input("n", Meta("int", symbols=("s0",))), Input("m", Meta("int", symbols=("s1",)), Value("literal", ("3",)))
    nodes = (op("v", "view.default", Ref("x"), [Ref("n"), Ref("m")], meta=META),)
    found = bind_symbols(Graph((x, size, other), nodes, Ref("v")))
    assert [item.name for item in found.inputs] == ["x", "m"]
    assert [(node.name, node.args) for node in found.nodes] == [("n", (Ref("x"), 0)), ("v", nodes[0].args)]
    unused = bind_symbols(Graph((x, size), (), Ref("x")))
    assert (unused.inputs, unused.nodes) == ((x,), ())
