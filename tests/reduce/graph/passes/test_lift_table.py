"""The readable form of single operators."""

from __future__ import annotations

import pytest

from bot.reduce.graph.form import Arg, Code, Meta, Ref, Slice
from bot.reduce.graph.passes.lift_table import lifted, lifted_first
from tests.reduce.graph.world import op, tensor

X, Y = Ref("x"), Ref("y")
META = tensor(4, 4)


@pytest.mark.parametrize(
    ("target", "args", "kind", "expected", "now"),
    [
        ("relu.default", (X,), "function", "torch.relu", (X,)),
        ("add.Tensor", (X, Y), "function", "operator.add", (X, Y)),
        ("mul.Scalar", (X, 2), "function", "operator.mul", (X, 2)),
        ("pow.Tensor_Scalar", (X, 2), "function", "operator.pow", (X, 2)),
        ("view.default", (X, [2, 8]), "method", "view", (X, 2, 8)),
        ("_unsafe_view.default", (X, [2, 8]), "method", "reshape", (X, 2, 8)),
        ("permute.default", (X, [1, 0]), "method", "permute", (X, 1, 0)),
        ("_softmax.default", (X, -1, False), "function", "torch.softmax", (X, -1)),
        ("gelu.default", (X,), "function", "torch.nn.functional.gelu", (X,)),
        ("index.Tensor", (X, [None, Y]), "function", "operator.getitem", (X, (Slice(), Y))),
        ("slice.Tensor", (X, 1, 0, 2**63 - 1), "function", "operator.getitem", (X, (Slice(), Slice()))),
        ("slice.Tensor", (X, 0, 1, 3, 2), "function", "operator.getitem", (X, Slice(1, 3, 2))),
        ("convolution.default", (X, Y, None, [1, 1], [0, 0], [1, 1], False, [0, 0], 1), "function", "torch.nn.functional.conv2d", (X, Y)),
        (
            "convolution.default",
            (X, Y, None, [2], [0], [1], False, [0], 1),
            "function",
            "torch.nn.functional.conv1d",
            (X, Y, None, [2]),
        ),
    ],
)
def test_operators_get_their_plain_form(target: str, args: tuple[Arg, ...], kind: str, expected: str, now: tuple[Arg, ...]) -> None:
    found = lifted(op("n", target, *args, meta=META))
    assert found is not None
    assert (found.op, found.target, found.args) == (kind, expected, now)


@pytest.mark.parametrize(
    ("target", "args", "kwargs"),
    [
        ("_softmax.default", (X, -1, True), {}),
        ("no_such_operator.default", (X,), {}),
        ("convolution.default", (X, Y, None, [1], [0], [1], True, [0], 1), {}),
        ("_to_copy.default", (X,), {"layout": Code("torch.strided")}),
    ],
)
def test_what_has_no_plain_form_stays(target: str, args: tuple[Arg, ...], kwargs: dict[str, Arg]) -> None:
    assert lifted(op("n", target, *args, meta=META, **kwargs)) is None


def test_an_operator_with_alpha_is_no_plain_sum() -> None:
    found = lifted(op("n", "add.Tensor", X, Y, meta=META, alpha=2))
    assert found is not None
    assert found.target == "torch.add"
    assert found.kwargs == (("alpha", 2),)


def test_other_libraries_are_left_alone() -> None:
    assert lifted(op("n", "torch.ops.mylib.relu.default", X, meta=META)) is None
    assert lifted(op("n", "torch.relu", X, meta=META)) is None


def test_a_conversion_becomes_a_method() -> None:
    found = lifted(op("n", "_to_copy.default", X, meta=META, dtype=Code("torch.float16")))
    assert found is not None
    assert (found.op, found.target, found.args, found.kwargs) == ("method", "to", (X, Code("torch.float16")), ())


USUAL = {"layout": Code("torch.strided"), "device": "cpu", "pin_memory": False}
LONG, HALF = Code("torch.int64"), Code("torch.float16")


@pytest.mark.parametrize(
    ("target", "args", "kwargs", "expected", "now", "left"),
    [
        ("aten.full.default", ([2], 1), {"dtype": HALF, **USUAL}, "torch.full", ([2], 1), (("dtype", HALF),)),
        ("aten.zeros.default", ([2],), {**USUAL, "device": "cuda:0"}, "torch.zeros", ([2],), (("device", "cuda:0"),)),
        (
            "prims.iota.default",
            (8,),
            {"start": 0, "step": 1, "dtype": LONG, "device": "cpu", "requires_grad": False},
            "torch.arange",
            (8,),
            (),
        ),
        ("prims.iota.default", (4,), {"start": 3, "step": 1, "dtype": LONG, "device": "cpu"}, "torch.arange", (3, 7), ()),
        ("prims.iota.default", (4,), {"start": 6, "step": -2, "dtype": HALF}, "torch.arange", (6, -2, -2), (("dtype", HALF),)),
    ],
)
def test_what_makes_a_tensor_says_only_what_is_unusual(
    target: str, args: tuple[Arg, ...], kwargs: dict[str, Arg], expected: str, now: tuple[Arg, ...], left: tuple[tuple[str, Arg], ...]
) -> None:
    found = lifted(op("n", f"torch.ops.{target}", *args, meta=META, **kwargs))
    assert found is not None
    assert (found.target, found.args, found.kwargs) == (expected, now, left)


def test_a_range_whose_length_is_not_known_stays() -> None:
    assert lifted(op("n", "torch.ops.prims.iota.default", X, meta=META, start=0, step=1)) is None


def test_an_operator_of_several_results_gives_its_first() -> None:
    results = Meta("other", items=(META, META, META))
    found = lifted_first(op("n", "native_layer_norm.default", X, [4], Y, Y, 1e-5, meta=results))
    assert found is not None
    assert (found.target, found.args, found.meta) == ("torch.nn.functional.layer_norm", (X, [4], Y, Y, 1e-5), META)
