"""Plain dtypes in the place of unusual ones."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bot.reduce.graph.edits import applied, apply
from bot.reduce.graph.form import Code, Graph, Input, Meta, Program, Ref, Value
from bot.reduce.graph.incumbent import Incumbent
from bot.reduce.graph.passes import dtypes
from tests.reduce.graph.world import World, op, tensor


def program(*given: str) -> Program:
    """An operation for each dtype, all of which are returned."""
    inputs = tuple(Input(f"p{i}", tensor(2, dtype=dtype)) for i, dtype in enumerate(given))
    nodes = tuple(op(f"n{i}", "relu.default", Ref(f"p{i}"), meta=item.meta) for i, item in enumerate(inputs))
    return Program(Graph(inputs, nodes, tuple(Ref(n.name) for n in nodes)))


def left(program: Program) -> list[str]:
    return [item.meta.dtype for item in program.graph.sources]


@pytest.mark.parametrize(
    ("dtype", "plain"),
    [("bfloat16", "float32"), ("float64", "float32"), ("float8_e5m2", "float32"), ("uint8", "int64"), ("complex128", "complex64")],
)
def test_each_sort_has_a_plain_dtype(dtype: str, plain: str) -> None:
    assert left(applied(program(dtype), dtypes.edits(program(dtype)))) == [plain]


@pytest.mark.parametrize("dtype", ["float32", "int64", "bool", "complex64"])
def test_a_plain_dtype_stays(dtype: str) -> None:
    assert dtypes.edits(program(dtype)) == []


def test_one_dtype_changes_everywhere_at_once() -> None:
    start = program("float16", "float16", "float64")
    start = start.with_graph(replace(start.graph, constants=(Input("w", tensor(2, dtype="float16")),)))
    half, double = dtypes.edits(start)[:2]
    assert sorted((left(applied(start, [half])), left(applied(start, [double])))) == [
        ["float16", "float16", "float32", "float16"],
        ["float32", "float32", "float64", "float32"],
    ]


def test_arguments_that_name_the_dtype_follow() -> None:
    nodes = (op("c", "to", Ref("x"), Code("torch.float16"), meta=tensor(2, dtype="float16"), memory_format=Code("torch.float64")),)
    start = Program(Graph((Input("x", tensor(2, dtype="float16")),), nodes, Ref("c")))
    (node,) = applied(start, dtypes.edits(start)).graph.nodes
    assert node.args[1] == Code("torch.float32")
    assert node.kwargs == (("memory_format", Code("torch.float64")),)


def test_a_dump_says_in_which_dtype_it_was_recorded() -> None:
    start = program("float64").with_graph(
        replace(program().graph, inputs=(Input("x", tensor(2, dtype="float64"), Value("blob", ("path",))),))
    )
    found = applied(start, dtypes.edits(start)).graph.inputs[0]
    assert (found.meta.dtype, found.value.args) == ("float32", ("path", "float64"))


def test_the_most_unusual_goes_first_and_a_needed_one_stays() -> None:
    start = program("int32", "float8_e5m2", "float16")
    first = dtypes.edits(start)[0]
    assert left(applied(start, [first])) == ["int32", "float32", "float16"]
    oracle = World(lambda p: "float16" in left(p))
    incumbent = Incumbent(start, oracle, oracle.render)
    assert apply(incumbent, dtypes.edits(start), "dtypes")
    assert left(incumbent.program) == ["int64", "float32", "float16"]
    # the metadata of what is computed follows
    assert [n.meta.dtype for n in incumbent.program.graph.nodes] == ["int64", "float32", "float16"]


class TestInFloat32:
    def test_half_precision_goes_and_all_else_stays(self) -> None:
        finer = dtypes.in_float32(program("float16", "int32", "bfloat16", "float64"))
        assert finer is not None
        assert left(finer) == ["float32", "int32", "float32", "float64"]
        assert [node.meta.dtype for node in finer.graph.nodes] == ["float32", "int32", "float32", "float64"]

    def test_results_of_a_tuple_follow(self) -> None:
        node = op("h", "halves.default", Ref("x"), meta=Meta(items=(tensor(2, dtype="float16"), tensor(2, dtype="int64"))))
        finer = dtypes.in_float32(Program(Graph((Input("x", tensor(2, dtype="float16")),), (node,), Ref("h"))))
        assert finer is not None
        assert [item.dtype for item in finer.graph.nodes[0].meta.items] == ["float32", "int64"]

    @pytest.mark.parametrize("dtype", ["float32", "float64", "float8_e5m2", "int64"])
    def test_nothing_is_finer_without_half_precision(self, dtype: str) -> None:
        assert dtypes.in_float32(program(dtype)) is None

    def test_a_tolerance_of_the_program_is_as_wide_in_float32(self) -> None:
        start = program("float16")
        assert dtypes.in_float32(replace(start, recipe=replace(start.recipe, tolerance=(0.1, 0.1)))) is None
