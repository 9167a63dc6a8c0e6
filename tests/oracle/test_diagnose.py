"""What follows from the place where wrong numbers begin."""

from __future__ import annotations

from typing import Any

from bot.oracle.diagnose import Localized, localize
from bot.reduce.graph.form import Graph, Input, Meta, Node, Program, Recipe, Ref
from tests.oracle.fakes import FakePool

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
