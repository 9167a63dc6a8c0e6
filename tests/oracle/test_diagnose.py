"""What follows from the place where wrong numbers begin."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from bot.inside.protocol import Question
from bot.oracle.budget import Budget
from bot.oracle.diagnose import Localized, inner_calls, localize
from bot.oracle.judge import Judge
from bot.reduce.graph.form import Graph, Input, Meta, Node, Program, Recipe, Ref
from bot.reduce.source.passes.inner_call import InnerCall
from tests.oracle.fakes import FakePool, sleep_until

GRAPH = Graph(
    inputs=(Input("x", Meta("tensor", (2,), (1,), "float32")),),
    nodes=tuple(Node(name, "function", f"torch.ops.aten.{name}.default", (Ref("x"),)) for name in ("log1p", "sign", "relu")),
    output=(Ref("relu"), Ref("sign")),
)
PROGRAM = Program(GRAPH, Recipe(accuracy=True, strict=True, tolerance=(0.1, 0.2)))


def asked(facts: dict[str, Any]) -> tuple[Localized, FakePool]:
    pool = FakePool(lambda _: facts)
    return localize(pool.ask, "text", PROGRAM, 7.0), pool  # type: ignore[arg-type]


def test_names_and_what_may_be_exposed() -> None:
    found, pool = asked({"status": "ok", "first": ["log1p", "return"], "harmless": ["log1p"]})
    assert found.first == ("log1p", "relu"), "the last operation stands in the return statement"
    assert found.exposable == {"sign", "relu"}
    assert found.guesses(strict=False) == [{"relu"}]
    assert found.guesses(strict=True) == [{"log1p"}, {"relu"}]
    (question,) = pool.asked
    assert (question.task, question.limit, question.strict, question.tolerance) == ("localize", 7.0, True, (0.1, 0.2))


def test_nothing_harmless_means_anything_may_be_exposed() -> None:
    found, _ = asked({"status": "ok", "first": ["relu"], "harmless": []})
    assert found.exposable is None


def test_where_it_cannot_be_done_nothing_is_said() -> None:
    for status in ("raised", "exit", "timeout", "infra"):
        found, _ = asked({"status": status, "first": ["relu"], "harmless": ["relu"]})
        assert (found.first, found.exposable, found.guesses(strict=True)) == ((), None, [])


def test_the_way_of_the_error_is_what_is_wrong() -> None:
    found, _ = asked({"status": "ok", "first": ["log1p"], "wrong": ["log1p", "return"], "harmless": []})
    assert found.chain == {"log1p", "relu"}
    nothing, _ = asked({"status": "ok", "first": [], "wrong": [], "harmless": []})
    assert nothing.chain is None


def test_how_the_functions_that_hold_a_line_are_called() -> None:
    frame = {"name": "f", "callee": "f", "arguments": ["x", "2"], "contexts": ["torch.no_grad()"], "reads": ["scale"]}
    pool = FakePool(lambda _: {"status": "ok", "frames": [frame, {**frame, "name": "g", "callee": "model.g"}]})
    inner, outer = inner_calls(pool.ask, "text", (4, 9), 7.0)  # type: ignore[arg-type]
    assert inner == InnerCall("f", "f", ("x", "2"), ("torch.no_grad()",), ("scale",))
    assert (outer.name, outer.callee) == ("g", "model.g")
    (question,) = pool.asked
    assert (question.text, question.task, question.limit, question.lines) == ("text", "frames", 7.0, (4, 9))


def test_where_nobody_can_say_it_there_is_no_call() -> None:
    assert inner_calls(FakePool(lambda _: {"status": "raised"}).ask, "text", (4,), 7.0) == []  # type: ignore[arg-type]


LONG = Program(replace(GRAPH, nodes=tuple(Node(f"n{i}", "function", "torch.sin", (Ref("x"),)) for i in range(150))), Recipe(accuracy=True))


def beginning(found: Callable[[Question], dict[str, Any]], wait: Callable[[Question], float], width: int) -> tuple[Localized, FakePool]:
    pool = FakePool(found, wait)
    judge = Judge(pool, Budget(60.0))  # type: ignore[arg-type]
    return localize(judge.answer, "text", LONG, 7.0, beginning=True, width=width), pool


def wrong_in(*windows: tuple[int, int]) -> Callable[[Question], dict[str, Any]]:
    return lambda question: {"status": "ok", "first": [f"n{question.window[0]}"] if question.window in windows else []}  # type: ignore[index]


@pytest.mark.parametrize("width", [2, 4])
def test_the_first_window_with_a_wrong_value_counts(width: int) -> None:
    """Whoever answers first, and nobody waits for those behind it."""
    found, pool = beginning(wrong_in((16, 48), (48, 112)), lambda question: {16: 0.3, 112: 30.0}.get(question.window[0], 0.01), width)  # type: ignore[index]
    assert found.first == ("n16",)
    assert [question.window for question in pool.asked][:2] == [(0, 16), (16, 48)]
    sleep_until(lambda: pool.cancelled == sum(question.window == (112, 176) for question in pool.asked))


def test_where_no_window_has_one_nothing_is_said() -> None:
    found, pool = beginning(wrong_in(), lambda _: 0.01, 3)
    assert found.first == ()
    assert sorted(question.window or (0, 0) for question in pool.asked) == [(0, 16), (16, 48), (48, 112), (112, 176)]


def test_where_a_window_cannot_be_compared_one_worker_looks_through_all() -> None:
    def found(question: Question) -> dict[str, Any]:
        if question.window is None:
            return {"status": "ok", "first": ["n3"]}
        return {"status": "raised", "text": "out of memory"} if question.window[0] == 16 else wrong_in((48, 112))(question)

    localized, pool = beginning(found, lambda _: 0.01, 3)
    assert localized.first == ("n3",)
    assert pool.asked[-1].window is None


def test_a_single_worker_is_asked_for_all() -> None:
    found, pool = beginning(lambda _: {"status": "ok", "first": ["n3"]}, lambda _: 0.0, 1)
    assert found.first == ("n3",)
    assert [question.window for question in pool.asked] == [None]
