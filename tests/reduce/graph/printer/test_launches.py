"""Programs that launch kernels of the user's: how they are printed, and what may be dropped."""

from __future__ import annotations

import pytest

from bot.reduce.graph.form import Code, Graph, Input, Node, Program, Recipe, Ref
from bot.reduce.graph.incumbent import Incumbent
from bot.reduce.graph.keep import keep_only
from bot.reduce.graph.naming import canonical
from bot.reduce.graph.passes import arguments
from bot.reduce.graph.passes.resize import sizes_of
from bot.reduce.graph.printer.script import render
from tests.reduce.graph.free_oracle import FreeOracle
from tests.reduce.graph.world import op, tensor

META = tensor(4, 4)


def launch(kernel: str, source: str, target: str, name: str = "launch") -> Node:
    given = (("src", Ref(source)), ("dst", Ref(target)), ("n", 16))
    return Node(name, "function", "torch.ops.higher_order.triton_kernel_wrapper_mutation", (Code(kernel), (1, 1, 1)), given)


def program(kernel: str = "fill") -> Program:
    nodes = (
        op("sin", "sin.default", Ref("x"), meta=META),
        op("empty", "empty_like.default", Ref("sin"), meta=META),
        launch(kernel, "sin", "empty"),
        op("relu", "relu.default", Ref("empty"), meta=META),
    )
    return Program(Graph((Input("x", META),), nodes, Ref("relu")))


def kept(*names: str) -> tuple[list[str], list[str], object]:
    found = keep_only(program(), names)
    assert found is not None
    return [n.name for n in found.graph.nodes], [i.name for i in found.graph.inputs], found.graph.output


def test_what_a_launch_fills_comes_with_the_launch() -> None:
    nodes, inputs, output = kept("empty", "relu")
    assert nodes == ["empty", "launch", "relu"]
    assert (inputs, output) == (["sin"], Ref("relu"))


def test_without_both_it_is_an_input() -> None:
    assert kept("relu") == (["relu"], ["empty"], Ref("relu"))


def test_a_launch_alone_returns_what_it_was_given() -> None:
    assert kept("launch") == (["launch"], ["sin", "empty"], Ref("empty"))


def test_sizes_stay_where_the_kernel_is_told_them() -> None:
    assert sizes_of(program()) == []
    assert sizes_of(keep_only(program(), ["relu"]) or program()) == [4]


def test_a_kernel_is_given_all_it_asks_for() -> None:
    oracle = FreeOracle(lambda p: True)
    incumbent = Incumbent(program(), oracle, oracle.render)
    arguments.run(incumbent)
    (node,) = (n for n in incumbent.program.graph.nodes if n.name == "launch")
    assert len(node.args) == 2
    assert [key for key, _ in node.kwargs] == ["src", "dst", "n"]


@pytest.mark.parametrize("kernel", ["relu", "empty_like", "Repro", "x"])
def test_nothing_else_goes_by_the_kernels_name(kernel: str) -> None:
    module = render(Program(canonical(program(kernel).graph))).split("class Repro")[1]
    assert f"        {kernel}[(1, 1, 1)](src=" in module
    assert f"        {kernel} = " not in module


def test_launches_that_fail_in_eager_too_are_left_to_the_compiler() -> None:
    nodes = (op("empty", "empty_like.default", Ref("x"), meta=META), launch("fill", "x", "empty"), launch("fill", "empty", "x", "again"))
    graph = canonical(Graph((Input("x", META),), (*nodes, op("relu", "relu.default", Ref("empty"), meta=META)), Ref("relu")))
    script = render(Program(graph, Recipe(launch_when_compiled=True)))
    guarded = """\
        if torch.compiler.is_compiling():
            fill[(1, 1, 1)](src=x, dst=empty_like, n=16)
            fill[(1, 1, 1)](src=empty_like, dst=x, n=16)
        return torch.ops.aten.relu.default(empty_like)
"""
    assert guarded in script, script
    assert "is_compiling" not in render(Program(graph))


def test_an_imported_kernel_is_imported() -> None:
    script = render(Program(canonical(program("kernels.ops.fill").graph)))
    assert "import kernels.ops\n" in script
    assert "kernels.ops.fill[(1, 1, 1)](src=" in script


def test_the_carry_of_a_scan_hides_nothing() -> None:
    body = Graph(
        (Input("c", META), Input("i", META), Input("held", META)), (op("s", "sin.default", Ref("c"), meta=META),), [Ref("s"), Ref("s")]
    )
    call = Node("scan", "function", "torch.ops.higher_order.scan", (Ref("body"), [Ref("a")], [Ref("b")], (Ref("xs"),)))
    inputs = (Input("a", META), Input("b", META), Input("xs", META, keyword="xs"))
    script = render(Program(canonical(Graph(inputs, (call,), Ref("scan"), bodies=(("body", body),)))))
    assert "scan(lambda carry, xs_: body_fn(carry, xs_, xs), [x], [y])" in script
