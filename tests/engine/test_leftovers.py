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
from bot.reduce.graph.form import Graph, Input, Meta, Node, Program, Recipe, Ref
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


@pytest.mark.parametrize(("phase", "kept"), [(Phase.CPP_COMPILE, True), (Phase.TRITON_COMPILE, True), (Phase.INDUCTOR_LOWERING, False)])
def test_what_makes_code_that_is_rejected_goes_on_returning_it(phase: Phase, kept: bool) -> None:
    """Without what it returns, the code is wrong in another place as well, of which the error says nothing."""
    begun = result("def lowering(x):\n    note = 1\n    return x * 2\n\n\nregister(lowering)\n")
    failing = replace(begun, reference=Signature(kind=Kind.EXCEPTION, phase=phase, exception=("CppCompileError",)))
    found, _, _ = run(Asked(lambda text: "register(lowering)" in text and "def lowering" in text), failing)
    assert ("def lowering(x):\n    return x * 2\n" in found.text) is kept
    assert "note" not in found.text


PASSES = "class A:\n    pass\n\n\nclass B:\n    bad = 1\n\n\nclass Chain:\n    def __init__(self, *passes):\n        self.passes = passes\n"


@pytest.mark.parametrize(
    "recipe",
    [
        Recipe(config=(("torch._inductor.config.post_grad_custom_post_pass", "Chain(A(), B(), A())"),)),
        Recipe(setup=("import torch", "register('cpu', device_custom_pass=Chain(A(), B(), A()))")),
        Recipe(backend="Chain(A(), B(), A())"),
        Recipe(options=(("joint_custom_pre_pass", "Chain(A(), B(), A())"),)),
    ],
)
def test_what_is_used_is_made_of_what_is_needed(recipe: Recipe) -> None:
    program = Program(GRAPH, recipe, PASSES)
    begun = SearchResult(Stage.AOT, render(program), Rule(), program, program)
    found, finished, accepted = run(Asked(lambda text: "Chain(" in text and "B()" in text and "bad = 1" in text), begun)
    assert finished
    assert "Chain(B())" in found.text
    assert "class A" not in found.text
    assert accepted[-1].text == found.text
    found, _, _ = run(Asked(lambda text: "B()" in text and "bad = 1" in text), begun)
    assert "Chain" not in found.text


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


def test_a_long_preamble_is_asked_about_to_its_end() -> None:
    body = "".join(f"    a{n} = {n}\n    b{n} = {n}\n" for n in range(40))
    oracle = Asked(lambda text: all(f"a{n} = " in text for n in range(40)))
    found, finished, _ = run(oracle, result(f"def needed(graph):\n{body}"))
    assert finished
    assert not any(f"b{n} = " in found.text for n in range(40))
