"""The one way to replace the smallest program; edits, outputs and simpler operations by it."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from bot.models.failure import Verdict
from bot.reduce.candidate import Candidate
from bot.reduce.graph.edits import Edit, apply
from bot.reduce.graph.form import Graph, Input, Program, Recipe, Ref, refs
from bot.reduce.graph.incumbent import Incumbent
from bot.reduce.graph.passes import ops, outputs, simplify_ops
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


def test_nothing_is_asked_twice_and_a_rejected_one_is_a_neighbour_again() -> None:
    oracle = World(lambda p: words(p) == ["relu"])
    incumbent = Incumbent(named("relu", "sin", "cos"), oracle, oracle.render)
    assert not incumbent.offer(named("sin"), "test")
    assert incumbent.offer(named("relu"), "test")
    assert incumbent.neighbours == []
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


class Parallel(World):
    """Asks all alternatives before it answers, as several workers would."""

    jobs = 3

    def first(self, candidates: Sequence[Candidate]) -> int | None:
        verdicts = [self.ask(candidate) for candidate in candidates]
        return verdicts.index(Verdict.SAME) if Verdict.SAME in verdicts else None


def test_workers_do_not_change_the_result() -> None:
    from bot.reduce.graph.reducer import reduce_program

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
    from bot.reduce.graph.reducer import reduce_program

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


class Sleeping(World):
    """Each question takes a while, and several are asked at once."""

    def __init__(self, predicate: Predicate, jobs: int) -> None:
        super().__init__(predicate)
        self.jobs = jobs

    def ask(self, candidate: Candidate) -> Verdict:
        if candidate.text not in self.memo:
            time.sleep(0.05)
        return super().ask(candidate)

    def first(self, candidates: Sequence[Candidate]) -> int | None:
        if self.jobs == 1:
            return super().first(candidates)
        with ThreadPoolExecutor(self.jobs) as executor:
            verdicts = list(executor.map(self.ask, candidates))
        return verdicts.index(Verdict.SAME) if Verdict.SAME in verdicts else None


def test_two_workers_are_both_at_work() -> None:
    """Where most of what is asked is refused: operations that all stay, settings of which one is needed, readable forms."""
    from bot.reduce.graph.reducer import reduce_program

    targets = ("relu", "sin", "cos", "exp", "tanh", "sigmoid", "relu", "sin", "cos", "exp")
    config = tuple((f"torch._inductor.config.c{i}", "True") for i in range(8))
    program = replace(named(*targets), recipe=Recipe(seed=None, config=config))

    def needed(p: Program) -> bool:
        return words(p) == list(targets) and config[5] in p.recipe.config and "torch.ops.aten.cos" in repr(p)

    found, seconds = [], []
    for jobs in (1, 2):
        oracle = Sleeping(needed, jobs)
        started = time.monotonic()
        found.append(reduce_program(program, oracle, oracle.render))
        seconds.append(time.monotonic() - started)
    assert found[0] == found[1]
    assert seconds[1] < 0.85 * seconds[0]


@settings(max_examples=80, deadline=None)
@given(st.sets(st.integers(0, 11)), st.integers(1, 12))
def test_edits_are_applied_but_for_those_that_cannot_be(blocked: set[int], count: int) -> None:
    entries = tuple((f"torch._inductor.config.c{i}", "True") for i in range(count))
    needed = {f"torch._inductor.config.c{i}" for i in blocked}
    program = Program(named("relu").graph, Recipe(config=entries))
    oracle = World(lambda p: needed & {k for k, _ in entries} <= {k for k, _ in p.recipe.config})
    incumbent = Incumbent(program, oracle, oracle.render)

    def drop(name: str) -> Edit:
        return lambda p: Program(p.graph, Recipe(config=tuple(c for c in p.recipe.config if c[0] != name)))

    apply(incumbent, [drop(name) for name, _ in entries], "test")
    assert {k for k, _ in incumbent.program.recipe.config} == needed & {k for k, _ in entries}
    if not blocked:
        assert oracle.queries == 1


def test_outputs_that_are_not_needed_go_with_what_they_need() -> None:
    nodes = tuple(op(f"n{i}", f"{t}.default", Ref("x"), meta=META) for i, t in enumerate(("sin", "relu", "cos", "exp", "tanh")))
    program = Program(Graph((Input("x", META),), nodes, tuple(Ref(f"n{i}") for i in range(5))))
    oracle = World(lambda p: "cos" in words(p))
    incumbent = Incumbent(program, oracle, oracle.render)
    outputs.run(incumbent)
    assert list(refs(incumbent.program.graph.output)) == ["n2"]
    assert words(incumbent.program) == ["cos"]


def test_outputs_whose_operations_were_found_to_be_needed_cost_nothing() -> None:
    nodes = tuple(op(f"n{i}", f"{t}.default", Ref("x"), meta=META) for i, t in enumerate(("sin", "relu")))
    program = Program(Graph((Input("x", META),), nodes, (Ref("n0"), Ref("n1"))))
    oracle = World(lambda p: set(words(p)) == {"sin", "relu"})
    incumbent = Incumbent(program, oracle, oracle.render)
    ops.run(incumbent)
    asked = oracle.queries
    assert not outputs.run(incumbent)
    assert (asked, oracle.queries) == (2, 2)


def test_what_only_an_output_uses_is_not_replaced_by_its_operand() -> None:
    nodes = tuple(op(f"n{i}", f"{t}.default", Ref("x"), meta=META) for i, t in enumerate(("sin", "relu")))
    program = Program(Graph((Input("x", META),), nodes, (Ref("n0"), Ref("n1"))))
    oracle = World(lambda p: set(words(p)) == {"sin", "relu"})
    assert not simplify_ops.run(Incumbent(program, oracle, oracle.render))
    assert oracle.queries == 0


def test_a_replacement_that_passes_says_that_its_operation_is_needed() -> None:
    nodes = (
        op("m", "mm.default", Ref("x"), Ref("y"), meta=META),
        op("a", "add.Tensor", Ref("m"), Ref("x"), meta=META),
    )
    program = Program(Graph((Input("x", META), Input("y", META)), nodes, Ref("a")))
    oracle = World(lambda p: words(p) == ["mm", "add"])
    incumbent = Incumbent(program, oracle, oracle.render)
    simplify_ops.run(incumbent)
    asked = oracle.queries
    assert not ops.neighbours(incumbent)
    assert oracle.queries == asked > 0
    assert not ops.neighbours(Incumbent(program, oracle, oracle.render))
    assert oracle.queries == asked + 1


def test_an_operation_is_replaced_by_a_plain_one() -> None:
    nodes = (
        op("m", "mm.default", Ref("x"), Ref("y"), meta=META),
        op("t", "tanh.default", Ref("m"), meta=META),
    )
    program = Program(Graph((Input("x", META), Input("y", META)), nodes, Ref("t")))
    oracle = World(lambda p: len(p.graph.nodes) == 2 and words(p)[-1] == "tanh")
    incumbent = Incumbent(program, oracle, oracle.render)
    simplify_ops.run(incumbent)
    assert Counter(words(incumbent.program)) == Counter(["relu", "tanh"])
    assert [i.name for i in incumbent.program.graph.inputs] == ["x"]


def test_a_shared_operand_takes_the_place_of_an_operation() -> None:
    nodes = (
        op("r", "relu.default", Ref("x"), meta=META),
        op("a", "add.Tensor", Ref("r"), Ref("x"), meta=META),
    )
    program = Program(Graph((Input("x", META),), nodes, Ref("a")))

    def same_operand_twice(p: Program) -> bool:
        return any(n.target == "torch.ops.aten.add.Tensor" for n in p.graph.nodes) and len(p.graph.inputs) == 1

    oracle = World(same_operand_twice)
    incumbent = Incumbent(program, oracle, oracle.render)
    simplify_ops.run(incumbent)
    assert [(n.name, list(n.uses())) for n in incumbent.program.graph.nodes] == [("a", ["x", "x"])]
