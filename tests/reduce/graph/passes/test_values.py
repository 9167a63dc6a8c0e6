"""How inputs are made."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from bot.reduce.graph.edits import apply
from bot.reduce.graph.form import Graph, Input, Program, Ref, Value
from bot.reduce.graph.incumbent import Incumbent
from bot.reduce.graph.passes import values
from tests.reduce.graph.world import World, op, tensor


def program_of(item: Input) -> Program:
    return Program(Graph((item,), (op("r", "relu.default", Ref(item.name), meta=item.meta),), Ref("r")))


def value_after(item: Input, wanted: list[str]) -> Value:
    """The value that is left when only these kinds fail."""
    oracle = World(lambda p: p.graph.inputs[0].value.kind in wanted)
    incumbent = Incumbent(program_of(item), oracle, oracle.render)
    apply(incumbent, values.edits(incumbent.program), "values")
    values.run(incumbent)
    return incumbent.program.graph.inputs[0].value


@pytest.fixture
def blob(tmp_path: Path) -> Input:
    path = tmp_path / "x.bin"
    path.write_bytes(struct.pack("<6f", 0.1, -2.0, float("inf"), 3.5, float("nan"), 1e-8))
    return Input("x", tensor(2, 3), Value("blob", (str(path),)))


def test_random_numbers_come_first(blob: Input) -> None:
    assert value_after(blob, ["randn", "ones", "literal", "blob"]) == Value("randn")


def test_then_constants_then_the_recorded_numbers(blob: Input) -> None:
    assert value_after(blob, ["ones", "literal", "blob"]) == Value("ones")
    assert value_after(blob, ["arange", "blob"]) == Value("arange")
    assert value_after(blob, ["full", "literal", "blob"]) == Value("full", ("torch.inf",))
    found = value_after(blob, ["literal", "blob"])
    assert found == Value("literal", ("[[0.1, -2.0, torch.inf], [3.5, torch.nan, 1e-08]]",))
    assert value_after(blob, ["blob"]) == blob.value


def test_the_corner_of_recorded_data(blob: Input) -> None:
    assert values.written(blob, (1, 2)) == Value("literal", ("[[0.1, -2.0]]",))
    assert values.written(blob, (2,)) is None


def test_data_that_is_too_much_or_not_there_is_not_written(blob: Input, tmp_path: Path) -> None:
    large = Input("x", tensor(100), Value("blob", (str(tmp_path / "none.bin"),)))
    assert values.written(large, (100,)) is None
    assert values.written(large, (3,)) is None


def test_integers_are_written_as_such(tmp_path: Path) -> None:
    path = tmp_path / "i.bin"
    path.write_bytes(struct.pack("<3q", 5, -1, 7))
    item = Input("i", tensor(3, dtype="int64"), Value("blob", (str(path),)))
    assert values.written(item, (3,)) == Value("literal", ("[5, -1, 7]",))


def test_an_index_is_zero() -> None:
    item = Input("i", tensor(3, dtype="int64"), Value("expr", ("make()",)))
    nodes = (op("e", "embedding.default", Ref("w"), Ref("i"), meta=tensor(3, 4)),)
    program = Program(Graph((Input("w", tensor(9, 4)), item), nodes, Ref("e")))
    assert values.plain_value(program, item) == Value("zeros")
