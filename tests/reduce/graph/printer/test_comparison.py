"""The lines that compare: what they say, and that they judge as PyTorch does. Without torch: `Tensor` is a list of floats."""

from __future__ import annotations

import math
from typing import Any

import pytest

from bot.reduce.graph.form import Code, Graph, Input, Meta, Node, Recipe, Ref
from bot.reduce.graph.printer.comparison import against_float64, in_float64, names_types, scientific, tolerance, within

X = Input("x", Meta("tensor", (4,), (1,), "float32"))


def graph(*nodes: Node, bodies: tuple[tuple[str, Graph], ...] = ()) -> Graph:
    return Graph((X,), nodes, Ref("x"), bodies=bodies)


def node(target: str, *args: Any, op: str = "function") -> Node:
    return Node("a", op, target, args)


@pytest.mark.parametrize(
    ("made", "named"),
    [
        (node("torch.relu", Ref("x")), False),
        (node("torch.ops.aten.relu.default", Ref("x")), False),
        (node("to", Ref("x"), Code("torch.bfloat16"), op="method"), True),
        (node("to", Ref("x"), Code("torch.int64"), op="method"), False),
        (node("half", Ref("x"), op="method"), True),
        (node("torch.sum", Ref("x"), [1, Code("torch.float")]), True),
        # it makes float32, whatever the inputs are
        (node("torch.zeros", 4), True),
        (node("torch.ops.aten.full.default", [4], 1.0), True),
        # the type is the input's
        (node("torch.full", [4], Ref("x")), False),
    ],
)
def test_operations_that_name_a_type_of_fewer_bits(made: Node, named: bool) -> None:
    assert names_types(graph(made)) is named
    assert names_types(graph(bodies=(("body", graph(made)),))) is named


@pytest.mark.parametrize(
    ("dtype", "fresh", "text"),
    [
        ("float32", False, "x.double()"),
        ("bfloat16", True, "x.double()"),
        ("complex64", False, "x.to(torch.complex128)"),
        ("float64", False, "x"),
        ("float64", True, "x.clone()"),
        ("int64", True, "x.clone()"),
    ],
)
def test_an_input_in_float64(dtype: str, fresh: bool, text: str) -> None:
    assert in_float64(Input("x", Meta("tensor", (4,), (1,), dtype)), fresh) == text


def test_a_number_is_what_it_is() -> None:
    assert in_float64(Input("n", Meta("int", dtype="float32")), fresh=True) == "n"


@pytest.mark.parametrize(
    ("recipe", "dtypes", "expected"),
    [
        (Recipe(), ["float32"], (1e-3, 1e-3)),
        (Recipe(repro_tolerance=1e-4), [], (1e-4, 1e-4)),
        (Recipe(), ["float32", "bfloat16"], (1.6e-2, 1e-2)),
        (Recipe(), ["float16"], (1e-2, 1e-2)),
        (Recipe(repro_tolerance=0.5), ["float16", "bfloat16"], (0.5, 0.5)),
        (Recipe(tolerance=()), ["bfloat16"], ()),
        (Recipe(tolerance=(1e-9, 0.0)), ["bfloat16"], (1e-9, 0.0)),
    ],
)
def test_the_tolerance(recipe: Recipe, dtypes: list[str], expected: tuple[float, ...]) -> None:
    assert tolerance(recipe, dtypes) == expected


def test_a_tolerance_is_said_as_people_write_it() -> None:
    assert within((1e-5, 0.016)) == ["torch.testing.assert_close(actual, expected, rtol=1e-5, atol=0.016, equal_nan=True)"]
    assert within(()) == ["torch.testing.assert_close(actual, expected, equal_nan=True)"]


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.016, "0.016"), (1e-3, "1e-3"), (1.5e-5, "1.5e-5"), (1e-2, "0.01"), (0.0, "0.0"), (2.0, "2.0"), (1e5, "1e5"), (1 / 3, repr(1 / 3))],
)
def test_numbers(value: float, text: str) -> None:
    assert scientific(value) == text
    assert math.isclose(float(text), value)


# -- PyTorch's rule ---------------------------------------------------------------------------------------------------


class Tensor:
    """As much of a tensor as the lines ask for."""

    def __init__(self, *values: complex, floats: bool = True) -> None:
        self.values, self.floats = values, floats

    def __sub__(self, other: Tensor) -> Tensor:
        return Tensor(*(a - b for a, b in zip(self.values, other.values, strict=True)))

    def abs(self) -> Tensor:
        return Tensor(*map(abs, self.values))

    def square(self) -> Tensor:
        return Tensor(*(value * value for value in self.values))

    def mean(self) -> Tensor:
        return Tensor(sum(self.values) / len(self.values))

    def sqrt(self) -> float:
        (value,) = self.values
        return math.sqrt(value)  # type: ignore[arg-type] - raises of what is not real

    def is_floating_point(self) -> bool:
        return self.floats

    def is_complex(self) -> bool:
        return any(isinstance(value, complex) for value in self.values)


class Torch:
    """The module of that name."""

    Tensor = Tensor

    class utils:  # noqa: N801
        class _pytree:  # noqa: N801
            @staticmethod
            def tree_leaves(value: Any) -> list[Any]:
                return [leaf for item in value.values() for leaf in item] if isinstance(value, dict) else [value]

    @staticmethod
    def allclose(a: Tensor, b: Tensor, rtol: float, atol: float, equal_nan: bool) -> bool:
        assert equal_nan
        return all(abs(one - other) <= atol + rtol * abs(other) for one, other in zip(a.values, b.values, strict=True))


LARGE, SMALL = (Meta("tensor", (size,), (1,), "float32") for size in (1000, 999))


def passes(lines: list[str], actual: Any, expected: Any, exact: Any) -> bool:
    try:
        exec("\n".join(lines), {"torch": Torch, "actual": actual, "expected": expected, "exact": exact})
    except AssertionError:
        return False
    return True


def one(meta: Meta, **recipe: Any) -> list[str]:
    return against_float64(Recipe(**recipe), Ref("y"), {"y": meta}, gradients=False)


@pytest.mark.parametrize(
    ("meta", "actual", "right"),
    [
        (LARGE, 1.0005, True),  # within the tolerance
        (LARGE, 1.19, True),  # not, but less than two times as far as eager
        (LARGE, 1.21, False),
        (SMALL, 1.29, True),  # three times
        (SMALL, 1.31, False),
    ],
)
def test_compiled_may_be_farther_by_a_factor(meta: Meta, actual: float, right: bool) -> None:
    exact = 1.0 if actual > 1.01 else 2.0  # the tolerance alone passes what is far from float64
    expected = 1.1 if actual > 1.01 else 1.0
    assert passes(one(meta), Tensor(actual), Tensor(expected), Tensor(exact)) is right


def test_the_tolerance_is_the_recipes() -> None:
    assert not passes(one(LARGE), Tensor(1.05), Tensor(1.0), Tensor(1.0))
    assert passes(one(LARGE, repro_tolerance=0.1), Tensor(1.05), Tensor(1.0), Tensor(1.0))


def test_few_digits_and_gradients_count_as_few_elements() -> None:
    low = Meta("tensor", (1000,), (1,), "bfloat16")
    assert passes(one(low), Tensor(1.29), Tensor(1.1), Tensor(1.0))
    lines = against_float64(Recipe(), Ref("y"), {"y": LARGE}, gradients=True)
    assert passes(lines, [Tensor(1.29)], [Tensor(1.1)], [Tensor(1.0)])
    assert not passes(lines, [Tensor(1.1), Tensor(1.31)], [Tensor(1.1)] * 2, [Tensor(1.0)] * 2)


def test_several_outputs_are_compared_one_by_one() -> None:
    lines = against_float64(Recipe(), (Ref("y"), Ref("z")), {"y": LARGE, "z": LARGE}, gradients=False)
    right = [Tensor(1.0), Tensor(2.0)]
    assert lines[0] == "for a, e, x in zip(actual, expected, exact):"
    assert passes(lines, right, right, right)
    assert not passes(lines, [Tensor(1.0), Tensor(3.0)], right, right)


def test_a_nested_output_is_taken_apart() -> None:
    lines = against_float64(Recipe(), {"k": [Ref("y")]}, {"y": LARGE}, gradients=False)  # type: ignore[arg-type]
    assert "tree_leaves(actual)" in lines[0]
    right = {"k": [Tensor(1.0)]}
    assert passes(lines, right, right, right)
    assert not passes(lines, {"k": [Tensor(3.0)]}, right, right)


def test_what_is_no_number_with_digits_is_not_compared() -> None:
    lines = against_float64(Recipe(), (Ref("y"), Ref("i")), {"y": LARGE, "i": Meta("tensor", (4,), (1,), "int64")}, gradients=False)
    right = [Tensor(1.0), Tensor(7, floats=False)]
    assert passes(lines, [Tensor(1.0), Tensor(9, floats=False)], right, right)
    assert passes(lines, [Tensor(1.0), 9], [Tensor(1.0), 7], [Tensor(1.0), 7])
    assert not passes(lines, [Tensor(3.0), right[1]], right, right)


def test_errors_of_complex_numbers_are_their_sizes() -> None:
    lines = one(Meta("tensor", (1000,), (1,), "complex64"))
    assert passes(lines, Tensor(1j), Tensor(1j), Tensor(1j))
    assert not passes(lines, Tensor(3j), Tensor(1j), Tensor(1j))
