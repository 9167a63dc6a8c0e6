"""Statements of the user's own that a reduced graph does not need."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest

from bot.engine import leftovers
from bot.engine.leftovers import without_leftovers
from bot.engine.state import SearchResult
from bot.models.failure import Kind, Phase, Signature, Stage
from bot.models.result import Rule
from bot.reduce.candidate import BudgetSpent, Candidate
from bot.reduce.graph.form import Graph, Input, Meta, Node, Program, Ref
from bot.reduce.graph.printer.script import render

X = Input("x", Meta("tensor", (4,), (1,), "float32"))
GRAPH = Graph((X,), (Node("a", "function", "torch.ops.aten.relu.default", (Ref("x"),)),), Ref("a"))
PREAMBLE = "def needed(graph):\n    first = 1\n    raise ValueError(graph)\n\n\ndef other():\n    return 2\n"


class Asked:
    """An oracle for which a script is SAME where it fulfills `holds`."""

    def __init__(self, holds: Callable[[str], bool], spent_after: int = 1_000) -> None:
        self.holds, self.spent_after = holds, spent_after
        self.texts: list[str] = []

    def ask(self, text: str) -> bool:
        if len(self.texts) >= self.spent_after:
            raise BudgetSpent
        self.texts.append(text)
        return self.holds(text)

    def first(self, candidates: Sequence[Candidate]) -> int | None:
        return next((index for index, candidate in enumerate(candidates) if self.ask(candidate.text)), None)

    def passes(self, text: str) -> bool:
        return False


def result(preamble: str = PREAMBLE) -> SearchResult:
    program = Program(GRAPH, preamble=preamble)
    return SearchResult(Stage.AOT, render(program), Rule(), program, program)


def run(oracle: Asked, begun: SearchResult) -> tuple[SearchResult, bool, list[SearchResult]]:
    accepted: list[SearchResult] = []
    oracle_: Any = oracle
    found, finished = without_leftovers(begun, oracle_, accepted.append)
    return found, finished, accepted


def test_what_is_not_needed_goes() -> None:
    oracle = Asked(lambda text: "raise ValueError" in text)
    found, finished, accepted = run(oracle, result())
    assert finished
    assert "raise ValueError" in found.text
    assert "other" not in found.text
    assert "first" not in found.text
    assert found.program is not None
    assert found.text == render(found.program)
    # each step was asked before it was taken
    assert accepted
    assert all(step.text in oracle.texts for step in accepted)
    assert accepted[-1].text == found.text
    assert len({step.text for step in accepted}) == len(accepted)


def test_what_makes_wrong_numbers_goes_on_returning_them() -> None:
    preamble = "def lowering(x):\n    x = x + 1\n    return x * 2\n\n\nregister(lowering)\n"
    begun = result(preamble)
    wrong = replace(begun, reference=Signature(kind=Kind.ACCURACY, phase=Phase.RUN, exception=("AssertionError",)))
    assert (
        "return"
        not in run(Asked(lambda text: "register(lowering)" in text and "def lowering" in text), begun)[0].text.split("class Repro")[0]
    )
    found, _, _ = run(Asked(lambda text: "register(lowering)" in text and "def lowering" in text), wrong)
    assert "def lowering(x):\n    return x * 2\n" in found.text


def test_what_is_needed_stays() -> None:
    begun = result()
    found, finished, accepted = run(Asked(lambda _: False), begun)
    assert (found.text, finished, accepted) == (begun.text, True, [])


def test_a_program_without_any_is_not_asked_about() -> None:
    oracle = Asked(lambda _: True)
    for begun in (result(""), SearchResult(Stage.SOURCE, "x = 1", Rule())):
        assert run(oracle, begun) == (begun, True, [])
    assert oracle.texts == []


def test_the_end_of_the_time_leaves_the_best() -> None:
    whole = Asked(lambda text: "raise ValueError" in text)
    _, _, steps = run(whole, result())
    found, finished, accepted = run(Asked(whole.holds, spent_after=len(whole.texts) - 1), result())
    assert not finished
    assert accepted == steps[: len(accepted)]
    assert found in (*steps, result())


def test_only_so_many_are_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(leftovers, "MOST_LEFTOVERS", 2)
    oracle = Asked(lambda _: False)
    _, finished, _ = run(oracle, result())
    assert finished
    assert len(oracle.texts) <= 2
