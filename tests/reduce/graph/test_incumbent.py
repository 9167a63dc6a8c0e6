"""The one way to replace the smallest program."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from bot.models.failure import Verdict
from bot.reduce.candidate import Candidate
from bot.reduce.graph.form import Graph, Input, Program, Recipe, Ref
from bot.reduce.graph.incumbent import Incumbent
from bot.reduce.graph.reducer import reduce_program
from tests.reduce.graph.free_oracle import Predicate, chain, present
from tests.reduce.graph.world import World, op, programs, tensor, words

META = tensor(4, 4)


def named(*targets: str) -> Program:
    nodes = tuple(op(f"n{i}", f"{t}.default", Ref(f"n{i - 1}" if i else "x"), meta=META) for i, t in enumerate(targets))
    return Program(Graph((Input("x", META),), nodes, Ref(nodes[-1].name)))


def test_what_is_not_smaller_is_not_asked() -> None:
    oracle = World(lambda p: True)
    incumbent = Incumbent(named("relu", "sin"), oracle, oracle.render)
    assert not incumbent.offer(named("relu", "sin", "cos"), "test")
    assert not incumbent.offer(named("relu", "sin"), "test")
    assert not incumbent.offer(None, "test")
    assert oracle.queries == 0


def test_nothing_is_asked_twice_and_a_rejected_one_is_a_neighbor_again() -> None:
    oracle = World(lambda p: words(p) == ["relu"])
    incumbent = Incumbent(named("relu", "sin", "cos"), oracle, oracle.render)
    assert not incumbent.offer(named("sin"), "test")
    assert incumbent.offer(named("relu"), "test")
    assert incumbent.neighbors == []
    asked = oracle.queries
    assert not incumbent.offer(named("sin"), "test")  # no smaller now
    assert oracle.queries == asked


def test_names_do_not_make_another_candidate() -> None:
    oracle = World(lambda p: False)
    incumbent = Incumbent(named("relu", "sin"), oracle, oracle.render)
    other = Program(Graph((Input("p", META),), (op("q", "relu.default", Ref("p"), meta=META),), Ref("q")))
    assert not incumbent.offer(named("relu"), "test")
    assert not incumbent.offer(other, "test")
    assert oracle.queries == 1


def test_a_program_that_leaves_the_chain_of_the_error_is_not_asked() -> None:
    oracle = World(lambda p: True)
    incumbent = Incumbent(named("relu", "sin", "cos"), oracle, oracle.render, chain=frozenset({"n1", "n2"}))
    assert not incumbent.offer(incumbent.keep({"n0"}), "test")
    assert oracle.queries == 0
    assert incumbent.offer(incumbent.keep({"n1"}), "test")
    assert words(incumbent.program) == ["sin"]


class Parallel(World):
    """Asks all alternatives before it answers, as several workers would."""

    jobs = 3

    def first(self, candidates: Sequence[Candidate]) -> int | None:
        verdicts = [self.ask(candidate) for candidate in candidates]
        return verdicts.index(Verdict.SAME) if Verdict.SAME in verdicts else None


def test_workers_do_not_change_the_result() -> None:
    results = []
    for kind in (World, Parallel):
        oracle = kind(present([7, 31]))
        results.append(reduce_program(chain(60), oracle, oracle.render))
    assert results[0] == results[1]


class Lazy(World):
    """One worker: asks one alternative after the other, and none behind the first that is SAME."""

    def first(self, candidates: Sequence[Candidate]) -> int | None:
        assert len(candidates) == 1, "a single worker is given one at a time"
        return super().first(candidates)


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_any_number_of_workers_takes_the_same_steps(data: st.DataObject) -> None:
    program = data.draw(programs())
    needed = set(data.draw(st.lists(st.sampled_from(words(program)), min_size=1, max_size=3)))
    aliases = {"mm": "matmul", "view": "reshape"}
    steps = []
    for jobs in (1, 2, 5):
        oracle = (Lazy if jobs == 1 else Parallel)(lambda p: all({w, aliases.get(w)} & set(words(p)) for w in needed))
        oracle.jobs = jobs  # type: ignore[attr-defined]
        taken: list[str] = []
        found = reduce_program(program, oracle, oracle.render, on_accept=lambda _, c, taken=taken: taken.append(c.text))  # type: ignore[misc]
        steps.append((found, taken))
    assert steps[0] == steps[1] == steps[2]


class Timed(World):
    """Each question takes one unit of time, and `jobs` of those that are asked at once take it together."""

    def __init__(self, predicate: Predicate, jobs: int) -> None:
        super().__init__(predicate)
        self.jobs = jobs
        self.time = 0

    def ask(self, candidate: Candidate) -> Verdict:
        self.time += candidate.text not in self.memo
        return super().ask(candidate)

    def first(self, candidates: Sequence[Candidate]) -> int | None:
        if self.jobs == 1:
            return super().first(candidates)
        before = self.time
        verdicts = [self.ask(candidate) for candidate in candidates]
        self.time = before + math.ceil((self.time - before) / self.jobs)
        return verdicts.index(Verdict.SAME) if Verdict.SAME in verdicts else None


def test_two_workers_are_both_at_work() -> None:
    """Where most of what is asked is refused: operations that all stay, settings of which one is needed, readable forms."""
    targets = ("relu", "sin", "cos", "exp", "tanh", "sigmoid", "relu", "sin", "cos", "exp")
    config = tuple((f"torch._inductor.config.c{i}", "True") for i in range(8))
    program = replace(named(*targets), recipe=Recipe(seed=None, config=config))

    def needed(p: Program) -> bool:
        return words(p) == list(targets) and config[5] in p.recipe.config and "torch.ops.aten.cos" in repr(p)

    found, times = [], []
    for jobs in (1, 2):
        oracle = Timed(needed, jobs)
        found.append(reduce_program(program, oracle, oracle.render))
        times.append(oracle.time)
    assert found[0] == found[1]
    assert times[1] < 0.85 * times[0]
