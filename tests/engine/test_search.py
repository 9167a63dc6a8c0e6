"""Which form of a program a search starts from."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from bot.engine.capture.region import Capture, Object
from bot.engine.capture.source import Source
from bot.engine.options import Options
from bot.engine.progress import Progress
from bot.engine.search import LARGE_GRAPH, Search
from bot.engine.state import Reproduction
from bot.engine.target import Target
from bot.engine.trail import Trail
from bot.failure.outcome import Outcome
from bot.models.failure import Kind, Phase, Signature, Stage, Verdict
from bot.oracle import diagnose
from bot.oracle.budget import Budget
from bot.oracle.criterion import Criterion
from bot.oracle.judge import Judgment
from bot.oracle.oracle import Begun
from bot.oracle.run_plan import RunPlan
from bot.reduce.graph.form import Graph
from tests.engine.capture.test_starts import graph, region

FAILURE = Signature(kind=Kind.EXCEPTION, phase=Phase.POST_GRAD, exception=("ValueError",), message="no sin")
# A pass of the user's, and the program that runs it; nothing else of it can be carried.
SCRIPT = """import torch
import torch._inductor.config as config


def vendor(graph):
    raise ValueError("no sin")


config.post_grad_custom_post_pass = vendor
for batch in loader():
    print(batch)
"""


class Asked:
    """An oracle for which scripts that hold `needs` are SAME; the user's own loop and the graph's call fail."""

    criterion, plan = Criterion(FAILURE), RunPlan()

    def __init__(self, needs: str) -> None:
        self.needs = needs
        self.texts: list[str] = []
        self.draw_inputs: list[bool] = []

    def narrowed(self, *_: Any) -> Asked:
        return self

    def in_fresh_processes(self, *, graph_caches: bool = False) -> Asked:
        return self

    def begins(self, candidate: Any, tries: int = 1, *, draws_inputs: bool = False) -> Begun | None:
        self.texts.append(candidate.text)
        self.draw_inputs.append(draws_inputs)
        return Begun(Judgment(Verdict.SAME, FAILURE), self.plan) if self.needs in candidate.text else None

    def answer(self, _: Any) -> tuple[Outcome, dict[str, Any]]:
        return Outcome(status="infra"), {}

    def observe(self, text: str) -> tuple[Outcome, Signature | None]:
        fails = "loader()" in text or "Repro()" in text
        return (Outcome(status="raised"), FAILURE) if fails else (Outcome(status="ok"), None)


@pytest.fixture
def search(tmp_path: Path) -> Callable[..., tuple[Search, Asked]]:
    def made(
        needs: str = "", held: Graph | None = None, text: str = "", failure: Signature = FAILURE, oracle: type[Asked] = Asked
    ) -> tuple[Search, Asked]:
        script = tmp_path / "fail.py"
        vendor = Object(text=None, name="vendor", expressions=("vendor",), wanted=("vendor",))
        failed = region(held=held, recipe={"config": {"torch._inductor.config.post_grad_custom_post_pass": vendor}})
        capture = Capture(outcome=Outcome(status="raised", text=text), signature=failure, regions=(failed,), versions={}, log=tmp_path)
        reproduction = Reproduction(capture, failure, Source(SCRIPT, script), SCRIPT, 60.0)
        asked = oracle(needs)
        options = Options(Target(script, None, ()), sys.executable, tmp_path / "out")
        return Search(options, reproduction, Trail(), lambda: asked, Progress()), asked  # type: ignore[arg-type, return-value]

    return made


def test_a_graph_counts_where_its_call_fails(search: Callable[..., tuple[Search, Asked]]) -> None:
    found, _ = search()
    start = found.begin()
    assert start is not None
    assert "loader()" not in start.program.preamble


def test_a_graph_does_not_count_where_the_program_before_it_fails(search: Callable[..., tuple[Search, Asked]]) -> None:
    """A preamble that is the whole program shows the failure before the graph is reached: the other preambles do not fail."""
    found, oracle = search(needs="loader()")
    assert found.begin() is None
    assert any("loader()" in text for text in oracle.texts)
    assert not any(oracle.draw_inputs), "its pass may draw as well"


WORDS = ("sin", "cos", "tan", "exp", "log", "abs")
LARGE = graph(*(f"torch.ops.aten.{word}.default" for word in WORDS))
NAMED = "While executing %n4 : "


def test_the_operation_that_the_failure_names_is_asked_before_the_graph(search: Callable[..., tuple[Search, Asked]]) -> None:
    found, oracle = search(held=LARGE, text=NAMED)
    start = found.begin()
    assert start is not None
    assert len(oracle.texts) == 1
    assert [node.target for node in start.program.graph.nodes] == ["torch.ops.aten.log.default"]
    assert start.whole is not None
    assert start.whole.graph.ops == len(WORDS), "what the repro is compared with"


def test_the_graph_is_asked_where_that_operation_alone_passes(search: Callable[..., tuple[Search, Asked]]) -> None:
    found, oracle = search(needs="aten.sin", held=LARGE, text=NAMED)
    start = found.begin()
    assert start is not None
    assert start.program.graph.ops == len(WORDS)
    assert len(oracle.texts) == 2


@pytest.mark.parametrize(("text", "kind"), [("", Kind.EXCEPTION), (NAMED, Kind.ACCURACY)])
def test_where_the_failure_names_none_the_graph_comes_first(text: str, kind: Kind, search: Callable[..., tuple[Search, Asked]]) -> None:
    found, oracle = search(held=LARGE, text=text, failure=FAILURE.model_copy(update={"kind": kind}))
    found.begin()
    assert "aten.sin" in oracle.texts[0]


def test_a_few_operations_are_asked_at_once(search: Callable[..., tuple[Search, Asked]]) -> None:
    found, oracle = search(held=graph(*(f"torch.ops.aten.{word}.default" for word in WORDS[:4])), text="While executing %n3 : ")
    found.begin()
    assert "aten.sin" in oracle.texts[0]


WRONG = Signature(kind=Kind.ACCURACY, phase=Phase.RUN, exception=("AssertionError",))


class Wrong(Asked):
    """The same, where the last operation is wrong; `tasks` are what else it was asked."""

    def __init__(self, needs: str) -> None:
        super().__init__(needs)
        self.tasks: list[str] = []

    def answer(self, question: Any, *_: object) -> tuple[Outcome, dict[str, Any]]:
        self.tasks.append(question.task)
        return Outcome(status="ok"), {"first": ["return"], "wrong": ["return"], "harmless": []}

    def observe(self, _: str) -> tuple[Outcome, Signature | None]:
        return Outcome(status="ok"), None


def after_sines(count: int) -> Graph:
    return graph(*["torch.ops.aten.sin.default"] * count, "torch.ops.aten.log.default")


@pytest.fixture(autouse=True)
def one_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a machine of few CPUs."""
    monkeypatch.setattr(diagnose, "WIDTH", 1)


@pytest.mark.parametrize("operations", [LARGE_GRAPH, LARGE_GRAPH - 1], ids=["large", "small"])
def test_where_wrong_numbers_begin_is_asked_before_a_large_graph(search: Callable[..., tuple[Search, Wrong]], operations: int) -> None:
    found, oracle = search(held=after_sines(operations - 1), failure=WRONG, oracle=Wrong)
    start = found.begin()
    assert start is not None
    assert len(oracle.texts) == 1
    large = operations == LARGE_GRAPH
    assert oracle.tasks == (["localize"] if large else [])
    assert start.program.graph.ops == (1 if large else operations)
    assert start.program.graph.nodes[-1].target == "torch.ops.aten.log.default"


def test_a_large_graph_is_asked_where_what_is_wrong_in_it_passes_alone(search: Callable[..., tuple[Search, Wrong]]) -> None:
    found, oracle = search(needs="aten.sin", held=after_sines(LARGE_GRAPH), failure=WRONG, oracle=Wrong)
    start = found.begin()
    assert start is not None
    assert start.program.graph.ops == LARGE_GRAPH + 1
    assert oracle.tasks == ["localize"], "each graph is looked through once"


class Settled(Asked):
    """An oracle for which a graph's call fails, and nothing smaller does."""

    is_steady = True
    judge = SimpleNamespace(isolation="warm")

    def __init__(self, needs: str) -> None:
        super().__init__(needs)
        self.budget = Budget(60.0)  # its time begins here
        self.ledger = SimpleNamespace(queries=0, memo_hits=0)

    def narrowed(self, *_: Any, **__: Any) -> Settled:
        return self

    def ask(self, _: Any) -> Verdict:
        return Verdict.PASSES

    def first(self, _: Any) -> None:
        return None

    def shapes(self, _: str) -> None:
        return None

    def settle(self, _: str) -> Callable[[], bool]:
        return lambda: True

    def passes(self, _: str) -> bool:
        return True

    def is_slow(self, *_: str) -> bool:
        return False

    def reject(self, _: str) -> None:
        pass


class OnlyFresh(Settled):
    """An oracle for which the script fails in fresh processes alone, and nothing smaller does."""

    only_cached = False

    def __init__(self, needs: str) -> None:
        super().__init__(needs)
        self.fresh = False

    def in_fresh_processes(self, *, graph_caches: bool = False) -> Asked:
        other = type(self)(self.needs)
        other.fresh = graph_caches or not self.only_cached
        return other

    def begins(self, candidate: Any, tries: int = 1, *, draws_inputs: bool = False) -> Begun | None:
        return super().begins(candidate, tries, draws_inputs=draws_inputs) if self.fresh else None


class OnlyCached(OnlyFresh):
    """One for which everything passes but with torch's caches of graphs."""

    only_cached = True


@pytest.mark.parametrize(
    ("kind", "said"), [(OnlyFresh, "only where nothing was compiled before"), (OnlyCached, "only with torch's caches of compiled graphs")]
)
def test_what_fails_only_where_nothing_was_imported_is_asked_in_fresh_processes(
    search: Callable[..., tuple[Search, Asked]], capsys: pytest.CaptureFixture[str], kind: type[OnlyFresh], said: str
) -> None:
    found, _ = search(oracle=kind)
    assert found.begin() is None
    result = found.run()
    assert (result.stage, result.text, result.fixed_point) == (Stage.SOURCE, SCRIPT, True)
    assert isinstance(found.oracle, OnlyFresh)
    assert found.oracle.fresh
    assert f"{said}: each question gets a fresh process" in capsys.readouterr().err


@pytest.mark.parametrize(("status", "script_too"), [("raised", True), ("ok", False)])
def test_a_script_that_ends_well_is_not_reduced_beside_its_graph(
    search: Callable[..., tuple[Search, Asked]], capsys: pytest.CaptureFixture[str], status: Any, script_too: bool
) -> None:
    """Its numbers are wrong and it does not say so, so no part of it fails alone."""
    found, _ = search(needs="Repro()", held=after_sines(20), oracle=Settled)
    capture = found.reproduction.capture
    found.reproduction = replace(
        found.reproduction, capture=capture.model_copy(update={"outcome": Outcome(status=status)}), original=f"{SCRIPT}\n"
    )
    found.begin()
    found.run()
    assert ("reducing it as well" in capsys.readouterr().err) == script_too


def test_no_query_is_forgotten(search: Callable[..., tuple[Search, Asked]]) -> None:
    """`reduction.jsonl` has a line for each, those that looked for the start and those of a search before this one too."""
    found, oracle = search(needs="Repro()", held=after_sines(20), oracle=Settled)
    found.reproduction = replace(found.reproduction, original=f"{SCRIPT}\n")
    assert isinstance(oracle, Settled)
    oracle.ledger.queries, oracle.ledger.memo_hits = 5, 2
    found.begin()
    found.run()
    assert (oracle.ledger.queries, oracle.ledger.memo_hits) == (5, 2)


def test_a_script_that_cannot_be_taken_apart_is_not_said_to_be_at_its_smallest(
    search: Callable[..., tuple[Search, Asked]], monkeypatch: pytest.MonkeyPatch
) -> None:
    def rejects(*_: object, **__: object) -> None:
        raise SyntaxError("no such statement")

    monkeypatch.setattr("bot.engine.search.reduce_source", rejects)
    found, _ = search(needs="loader()", oracle=Settled)
    assert found.begin() is None
    result = found.run()
    assert (result.text, result.fixed_point) == (SCRIPT, False)
    assert result.fault == "the script cannot be taken apart: no such statement"
