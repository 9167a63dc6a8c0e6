"""Python text for values, and back."""

from __future__ import annotations

import enum
import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

torch = pytest.importorskip("torch")

from bot.inside.capture import literals  # noqa: E402
from bot.reduce.graph.printer.expressions import number  # noqa: E402

PLAIN = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text()
    | st.sampled_from([torch.float32, torch.channels_last, torch.strided]),
    lambda inner: st.lists(inner) | st.tuples(inner) | st.tuples(inner, inner) | st.dictionaries(st.text() | st.integers(), inner),
    max_leaves=8,
)


def equal(a: Any, b: Any) -> bool:
    """Equal and of one type all the way down, not a number included."""
    if type(a) is not type(b):
        return False
    if isinstance(a, float) and math.isnan(a):
        return math.isnan(b)
    if isinstance(a, (list, tuple)):
        return len(a) == len(b) and all(equal(x, y) for x, y in zip(a, b, strict=True))
    if isinstance(a, dict):
        return list(a) == list(b) and all(equal(a[key], b[key]) for key in a)
    return bool(a == b) and repr(a) == repr(b)


@given(PLAIN)
def test_the_text_of_a_plain_value_makes_it_again(value: Any) -> None:
    text = literals.text_of(value)
    assert text is not None
    assert equal(eval(text, {"torch": torch}), value)


class Number(int, enum.Enum):
    """Prints as no Python text."""

    ONE = 1


class Text(str):
    """A string that is more."""


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (set(), "set()"),
        ({3}, "{3}"),
        (torch.device("cpu"), 'torch.device("cpu")'),
        (torch.device("cuda:0"), 'torch.device("cuda")'),
        (torch.device("cuda:1"), 'torch.device("cuda:1")'),
        ((torch.Size([2]), ..., b"a"), "(torch.Size([2]), ..., b'a')"),
        ([-math.inf, math.nan], "[-torch.inf, torch.nan]"),
        (complex(math.inf, -0.0), "complex(torch.inf, -0.0)"),
        (torch.nn.functional.relu, "torch.nn.functional.relu"),
        (torch.nn.ReLU, "torch.nn.modules.activation.ReLU"),
        ("it's", '"it\'s"'),
        (Number.ONE, None),
        ([Number.ONE], None),
        (Text("a"), None),
        (lambda x: x, None),
        (object(), None),
        ([1, object()], None),
        (json.dumps, None),
        (torch.ones(2), None),
    ],
)
def test_text(value: Any, text: str | None) -> None:
    assert literals.text_of(value) == text


@given(st.floats() | st.complex_numbers())
def test_a_number_is_written_as_the_printer_of_graphs_writes_it(value: float | complex) -> None:
    """Neither may import the other."""
    assert literals.number(value) == number(value)
    made = eval(literals.number(value), {"torch": torch})
    assert repr(made) == repr(value), "a NaN is not equal to itself"


def test_the_items_of_a_container_are_the_callers() -> None:
    def write(item: Any) -> str:
        if item is None:
            raise literals.NoText
        return f"<{item}>"

    assert literals.container({1: (2,)}, lambda item: literals.container(item, write) or write(item)) == "{<1>: (<2>,)}"
    assert literals.container(Text("a"), write) is None
    with pytest.raises(literals.NoText):
        literals.container([1, None], write)
