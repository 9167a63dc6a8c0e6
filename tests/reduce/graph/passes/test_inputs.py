"""Fewer and plainer inputs: merging, layout, dtypes."""

from __future__ import annotations

from dataclasses import replace

from bot.reduce.graph.edits import applied, apply
from bot.reduce.graph.form import Code, Graph, Input, Program, Recipe, Ref, Value
from bot.reduce.graph.incumbent import Incumbent
from bot.reduce.graph.passes import contiguous, dtypes, inputs
from tests.reduce.graph.world import World, op, tensor

META = tensor(4, 4)


def sums() -> Program:
    nodes = (op("a", "add.Tensor", Ref("x"), Ref("y"), meta=META), op("b", "add.Tensor", Ref("a"), Ref("w"), meta=META))
    weight = Input("w", META, parameter=True, requires_grad=True)
    return Program(Graph((Input("x", META), Input("y", META)), nodes, Ref("b"), constants=(weight,)))


def test_constants_become_inputs_and_equals_are_merged() -> None:
    oracle = World(lambda p: True)
    incumbent = Incumbent(sums(), oracle, oracle.render)
    assert inputs.run(incumbent)
    assert incumbent.program.graph.inputs == (Input("x", META),)
    assert incumbent.program.graph.constants == ()
    assert oracle.queries == 2


def test_inputs_that_must_differ_stay() -> None:
    oracle = World(lambda p: len(p.graph.inputs) + len(p.graph.constants) >= 2)
    incumbent = Incumbent(sums(), oracle, oracle.render)
    inputs.run(incumbent)
    assert len(incumbent.program.graph.inputs) == 2


def test_a_plain_tensor_is_contiguous_and_has_no_gradient() -> None:
    turned = Input("x", replace(META, stride=(1, 4)), requires_grad=True, leaf=False, keyword="x")
    program = Program(Graph((turned,), (op("r", "relu.default", Ref("x"), meta=META),), Ref("r")))
    assert applied(program, contiguous.edits(program)).graph.inputs == (Input("x", META),)
    differentiated = replace(program, recipe=Recipe(backward=True))
    assert applied(differentiated, contiguous.edits(differentiated)).graph.inputs == (Input("x", META, requires_grad=True),)
    assert contiguous.edits(applied(program, contiguous.edits(program))) == []


def test_a_dtype_changes_everywhere() -> None:
    half = tensor(4, 4, dtype="bfloat16")
    nodes = (
        op("f", "full.default", [4, 4], 1, meta=half, dtype=Code("torch.bfloat16")),
        op("a", "add.Tensor", Ref("x"), Ref("f"), meta=half),
    )
    program = Program(Graph((Input("x", half), Input("i", tensor(2, dtype="int32"))), nodes, (Ref("a"), Ref("i"))))
    found = applied(program, dtypes.edits(program))
    assert [i.meta.dtype for i in found.graph.inputs] == ["float32", "int64"]
    assert found.graph.nodes[0].kwargs == (("dtype", Code("torch.float32")),)


def test_a_dump_says_in_which_dtype_it_was_recorded() -> None:
    program = Program(Graph((Input("x", tensor(4, dtype="float64"), Value("blob", ("x.bin",))),), (), Ref("x")))
    (found,) = applied(program, dtypes.edits(program)).graph.inputs
    assert (found.meta.dtype, found.value) == ("float32", Value("blob", ("x.bin", "float64")))
    assert dtypes.edits(applied(program, dtypes.edits(program))) == []


def test_a_dtype_that_matters_stays() -> None:
    pair = (Input("x", tensor(4, 4, dtype="float16")), Input("i", tensor(2, dtype="int32")))
    nodes = (op("r", "relu.default", Ref("x"), meta=pair[0].meta), op("s", "relu.default", Ref("i"), meta=pair[1].meta))
    program = Program(Graph(pair, nodes, (Ref("r"), Ref("s"))))
    oracle = World(lambda p: p.graph.inputs[0].meta.dtype == "float16")
    incumbent = Incumbent(program, oracle, oracle.render)
    apply(incumbent, dtypes.edits(program), "dtypes")
    assert [i.meta.dtype for i in incumbent.program.graph.inputs] == ["float16", "int64"]
    assert incumbent.program.graph.nodes[1].meta.dtype == "int64"
