"""Inputs and constants, one expression each."""

from __future__ import annotations

import ast
import struct
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.reduce.graph.form import Graph, Input, Meta, Program, Ref, Value
from bot.reduce.graph.printer.tensors import embed_blobs, make, nested, recorded, recorded_dtype, unpack
from tests.reduce.graph.world import tensor


@pytest.mark.parametrize(
    ("item", "shown"),
    [
        (Input("x", tensor(2, 3)), "torch.randn(2, 3)"),
        (Input("x", tensor()), "torch.randn(())"),
        (Input("x", tensor(2, dtype="float64"), Value("ones")), "torch.ones(2, dtype=torch.float64)"),
        (Input("x", tensor(2, dtype="int64"), Value("randint", (0, 9))), "torch.randint(0, 9, (2,))"),
        (Input("x", tensor(2, dtype="int64")), "torch.zeros(2, dtype=torch.int64)"),
        (Input("x", tensor(2, dtype="float8_e5m2")), "torch.randn(2).to(torch.float8_e5m2)"),
        (Input("x", tensor(2), Value("full", ("0.5",))), "torch.full((2,), 0.5)"),
        (Input("x", tensor(2, 3, dtype="int64"), Value("arange")), "torch.arange(6).reshape(2, 3)"),
        (Input("x", tensor(2), Value("literal", ("[1.5, 2.0]",))), "torch.tensor([1.5, 2.0])"),
        (Input("x", replace(tensor(2), device="cuda")), 'torch.randn(2, device="cuda")'),
        (Input("x", tensor(2), requires_grad=True), "torch.randn(2, requires_grad=True)"),
        (Input("x", tensor(2), requires_grad=True, leaf=False), "torch.randn(2, requires_grad=True) * 1"),
        (Input("x", replace(tensor(2, 3), stride=(1, 2))), "torch.randn(3, 2).t()"),
        (Input("x", replace(tensor(2, 3), stride=(0, 1))), "torch.randn(1, 3).expand(2, 3)"),
        (Input("x", replace(tensor(2, 3), stride=(7, 2))), "torch.randn(12).as_strided((2, 3), (7, 2))"),
        (Input("x", replace(tensor(2, 3, 4, 5), stride=(60, 1, 15, 3))), "torch.randn(2, 3, 4, 5).to(memory_format=torch.channels_last)"),
        (Input("n", Meta("int"), Value("literal", ("3",))), "3"),
        (Input("n", Meta("float")), "0.0"),
        (Input("x", tensor(2), Value("expr", ("make()",))), "make()"),
        (Input("x", tensor(0)), "torch.zeros(0)"),
    ],
)
def test_values_and_layouts(item: Input, shown: str) -> None:
    assert make(item) == shown


def test_an_unknown_default_dtype_is_written_out() -> None:
    assert make(Input("x", tensor(2)), dtype_default=None) == "torch.randn(2, dtype=torch.float32)"
    assert make(Input("x", tensor(2)), dtype_default="float64") == "torch.randn(2, dtype=torch.float32)"
    with pytest.raises(ValueError, match="no such kind of value: odd"):
        make(Input("x", tensor(2), Value("odd")))


@given(st.lists(st.floats(width=32, allow_nan=False, allow_infinity=False), min_size=6, max_size=6))
def test_a_literal_is_the_same_numbers_and_its_corner_the_first_of_them(elements: list[float]) -> None:
    found = ast.literal_eval(nested(elements, (2, 3), (2, 3), "float32"))
    assert [struct.pack("<f", each) for row in found for each in row] == [struct.pack("<f", each) for each in elements]
    assert ast.literal_eval(nested(elements, (2, 3), (1, 2), "float32")) == [found[0][:2]]


@given(st.floats(width=16, allow_nan=False, allow_infinity=False))
def test_a_half_is_written_no_longer_than_it_must(element: float) -> None:
    shown = nested([element], (), (), "float16")
    assert struct.pack("<e", float(shown)) == struct.pack("<e", element)
    assert len(shown) <= len(repr(element))
    assert nested([0.0999755859375], (), (), "float16") == "0.1"


def test_special_numbers_are_written_by_torchs_names() -> None:
    assert nested([float("inf"), float("nan"), -0.0], (3,), (3,), "float32") == "[torch.inf, torch.nan, -0.0]"
    assert nested([1, 2**40], (2,), (2,), "int64") == "[1, 1099511627776]"
    assert nested([0.1], (1,), (1,), "float64") == "[0.1]"


@pytest.mark.parametrize(
    ("dtype", "form", "elements"),
    [("float32", "<2f", [1.5, -2.0]), ("int8", "<2b", [5, -1]), ("bool", "<2?", [True, False]), ("float16", "<2e", [0.5, 2.0])],
)
def test_a_dump_is_its_elements(dtype: str, form: str, elements: list[float]) -> None:
    assert unpack(struct.pack(form, *elements), dtype) == elements


def test_dtypes_that_python_has_no_letter_for() -> None:
    assert unpack(struct.pack("<f", 1.5)[2:], "bfloat16") == [1.5]
    assert unpack(struct.pack("<2f", 1.5, -2.0), "complex64") == [1.5 - 2j]
    assert unpack(b"12", "float8_e5m2") is None


def test_numbers_that_were_recorded_in_more_digits_are_narrowed() -> None:
    item = Input("x", tensor(2), Value("blob", ("path", "float64")))
    assert recorded_dtype(item.value, item.meta) == "float64"
    assert recorded(item, struct.pack("<2d", 0.1, 1e300)) == [struct.unpack("<f", struct.pack("<f", 0.1))[0], float("inf")]


@pytest.mark.parametrize(
    ("elements", "value"),
    [
        ([0.0] * 3, Value("zeros")),
        ([1.0] * 3, Value("ones")),
        ([0.5] * 3, Value("full", ("0.5",))),
        ([0.0, -0.0, 0.0], Value("literal", ("[0.0, -0.0, 0.0]",))),
        ([0.1, 2.0, 3.0], Value("literal", ("[0.1, 2.0, 3.0]",))),
    ],
)
def test_recorded_data_is_written_into_the_script_as_plainly_as_can_be(tmp_path: Path, elements: list[float], value: Value) -> None:
    path = tmp_path / "x.bin"
    path.write_bytes(struct.pack("<3f", *elements))
    body = Graph((), (), None, constants=(Input("w", tensor(3), Value("blob", (str(path),))),))
    found = embed_blobs(Program(Graph((Input("x", tensor(3), Value("blob", (str(path),))),), (), Ref("x"), bodies=(("f", body),))))
    assert [found.graph.inputs[0].value, found.graph.bodies[0][1].constants[0].value] == [value, value]


def test_counting_up_is_a_range_and_much_data_is_packed(tmp_path: Path) -> None:
    path = tmp_path / "x.bin"
    path.write_bytes(struct.pack("<4q", *range(4)))
    item = Input("x", tensor(4, dtype="int64"), Value("blob", (str(path),)))
    assert embed_blobs(Program(Graph((item,), (), Ref("x")))).graph.inputs[0].value == Value("arange")
    path.write_bytes(struct.pack("<70f", *(i / 7 for i in range(70))))
    (packed,) = embed_blobs(Program(Graph((Input("x", tensor(70), item.value),), (), Ref("x")))).graph.inputs
    assert packed.value.kind == "expr"
    assert packed.value.args[0].startswith("torch.frombuffer(bytearray(zlib.decompress(base64.b64decode(")
