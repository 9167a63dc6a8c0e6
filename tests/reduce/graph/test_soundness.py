"""What a process of the program may write in place of a graph. How it is read from JSON: tests/engine/capture/test_region.py."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given

from bot.reduce.graph.form import Code, Graph, Input, Mapping, Meta, Node, Program, Ref, Slice, Value
from bot.reduce.graph.soundness import fault, fault_of_meta
from tests.reduce.graph.world import op, programs, tensor

TENSOR = tensor(2, 3)
X = Input("x", TENSOR)
SIN = op("sin", "sin", Ref("x"), meta=TENSOR)
SOUND = Graph((X,), (SIN,), Ref("sin"))


@given(programs())
def test_graphs_that_passes_make_are_sound(program: Program) -> None:
    assert fault(program.graph) is None


def test_each_kind_of_argument_is_looked_into() -> None:
    for around in (lambda ref: [ref], lambda ref: (1, ref), lambda ref: Slice(None, ref), lambda ref: Mapping((("key", ref),))):
        assert fault(replace(SOUND, output=around(Ref("sin")))) is None
        assert fault(replace(SOUND, output=around(Ref("cos")))) == "a value that is not there"
        assert fault(replace(SOUND, nodes=(op("sin", "sin", out=around(Ref("sin")), meta=TENSOR),))) == "a value that is not there"


def test_a_body_is_used_by_operations_alone() -> None:
    held = replace(SOUND, nodes=(op("sin", "cond", Ref("body"), meta=TENSOR),), bodies=(("body", SOUND),))
    assert fault(held) is None
    assert fault(replace(held, output=Ref("body"))) == "a value that is not there"
    assert fault(replace(held, bodies=(("body", replace(SOUND, output=Ref("y"))),))) == "a value that is not there"


def nested(depth: int) -> Any:
    found: Any = Ref("sin")
    for _ in range(depth):
        found = [found]
    return found


def results(depth: int) -> Meta:
    found = TENSOR
    for _ in range(depth):
        found = Meta(items=(found,))
    return found


def bodies(depth: int) -> Graph:
    found = SOUND
    for _ in range(depth):
        found = replace(SOUND, bodies=(("body", found),))
    return found


@pytest.mark.parametrize(("depth", "deep"), [(50, False), (51, True)])
def test_what_is_too_deep(depth: int, deep: bool) -> None:
    assert fault(replace(SOUND, output=nested(depth))) == ("an argument too deep in others" if deep else None)
    assert fault_of_meta(results(depth)) == ("results too deep in each other" if deep else None)
    assert fault(bodies(depth)) == ("bodies too deep in each other" if deep else None)


@pytest.mark.parametrize(
    ("made", "why"),
    [
        (replace(X, name="sin"), "no name, or the same twice"),
        (replace(X, name=7), "no name, or the same twice"),
        (replace(X, value=Value("unheard of")), "no known kind of value"),
        (replace(X, value=Value("randint", (2,))), "no known kind of value"),
        (replace(X, value=Value("blob", (7,))), "a value of kind blob that is no text"),
        (replace(X, value=Value("full", ([7],))), "a value of kind full that is no number"),
        (replace(X, leaf=1), "a flag that is none"),
        (replace(X, keyword=7), "a keyword that is no text"),
        (replace(X, meta=replace(TENSOR, shape=(2, -3))), "a size that is no number"),
        (replace(X, meta=replace(TENSOR, shape=(2, True))), "a size that is no number"),
        (replace(X, meta=replace(TENSOR, symbols=("s0",))), "a dimension that a tensor has not"),
        (replace(X, meta=replace(TENSOR, device="cpu; import os")), "a value of no known kind, dtype or device"),
    ],
)
def test_an_input_that_is_none(made: Input, why: str) -> None:
    assert fault(replace(SOUND, inputs=(made,) if made.name == "x" else (X, made))) == why


@pytest.mark.parametrize(
    ("made", "why"),
    [
        (replace(SIN, op="call"), "an operation that nobody knows"),
        (replace(SIN, target="torch.sin(x); print"), "an operation that nobody knows"),
        (Node("sin", "method", "sin", meta=TENSOR), "a method of nothing"),
        (replace(SIN, args=(Ref("sin"),)), "a value that is not there"),
        (replace(SIN, args=(Code(7),)), "code that is no text"),  # type: ignore[arg-type]
    ],
)
def test_an_operation_that_is_none(made: Node, why: str) -> None:
    assert fault(replace(SOUND, nodes=(made,))) == why
