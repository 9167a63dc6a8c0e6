"""The whole reduction, with an oracle that costs nothing."""

from __future__ import annotations

import math
import random
import statistics
import struct
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bot.models.failure import Verdict
from bot.reduce.candidate import Candidate, Checks
from bot.reduce.graph.form import Graph, Input, Node, Program, Recipe, Ref, Value
from bot.reduce.graph.reducer import Numerics, reduce_program
from bot.reduce.graph.size import size_key
from tests.reduce.graph.free_oracle import APART, FreeOracle, case, chain, fed, measure, mixed, present
from tests.reduce.graph.world import World, ill_formed, infer, op, programs, tensor, word, words


def target(i: int) -> str:
    return f"torch.ops.aten.op{i}.default"


# --- how many queries


@pytest.mark.parametrize("shape", ["chain", "mixed"])
@pytest.mark.parametrize("n", [50, 300])
@pytest.mark.parametrize(("wanted", "factor"), [("1", 2), ("2", 4), ("fed", 4)])
def test_queries_grow_with_the_logarithm(shape: str, n: int, wanted: str, factor: int) -> None:
    least = 2 if wanted == "fed" else int(wanted)
    for seed in range(12):
        found = case(shape, n, wanted, seed)
        if found is None:
            continue
        measured = measure(*found)
        assert measured.left == least
        assert measured.operations <= factor * math.log2(n)


@pytest.mark.parametrize("shape", ["chain", "mixed"])
@pytest.mark.parametrize("n", [50, 300])
@pytest.mark.parametrize(("wanted", "factor"), [("1", 2), ("2", 4), ("fed", 4), ("3", 6)])
def test_so_do_those_of_a_whole_search(shape: str, n: int, wanted: str, factor: int) -> None:
    found = [case(shape, n, wanted, seed) for seed in range(12)]
    queries = [measure(*each).whole for each in found if each is not None]
    assert statistics.median(queries) <= factor * math.log2(n)


def test_three_needed_operations_are_found_in_nearly_every_graph() -> None:
    found = [case("mixed", 120, "3", seed) for seed in range(30)]
    left = [measure(*each).left for each in found if each is not None]
    assert max(left) <= 5
    assert Counter(left)[3] >= 0.9 * len(left)


def test_a_large_graph_costs_seconds_of_our_own_time() -> None:
    found = case("mixed", 4000, "1", 0)
    assert found is not None
    measured = measure(*found)
    assert (measured.left, measured.operations <= 24) == (1, True)
    assert measured.seconds < 30


def test_a_right_guess_is_the_only_query_of_the_search() -> None:
    program = mixed(400, random.Random(1))
    oracle = FreeOracle(present([217]))
    seen: list[int] = []
    reduce_program(program, oracle, oracle.render, guesses=[frozenset({"n217"})], on_accept=lambda p, _: seen.append(p.graph.ops))
    assert seen[0] == 1
    assert next(i for i, verdict in enumerate(oracle.memo.values()) if verdict is Verdict.SAME) == 0


def test_a_guess_that_needs_its_operands_is_the_fourth_query() -> None:
    oracle = FreeOracle(fed(99, 100))
    reduce_program(chain(300), oracle, oracle.render, guesses=[frozenset({"n100"})])
    # of size 1, simplified, alone, and then with what feeds it
    assert list(oracle.memo.values())[:4] == [Verdict.PASSES, Verdict.PASSES, Verdict.PASSES, Verdict.SAME]


def test_wrong_guesses_do_no_harm() -> None:
    oracle = FreeOracle(present([40]))
    found = reduce_program(chain(60), oracle, oracle.render, guesses=[frozenset({"n3"}), frozenset({"n9", "nowhere"})])
    assert [n.target for n in found.program.graph.nodes] == [target(40)]


class Hidden(FreeOracle):
    """One whose failure shows three times and then hides, until it is known to."""

    hides = True

    def ask(self, candidate: Candidate) -> Verdict:
        """A hidden failure passes."""
        if self.hides and len(self.memo) > 3:
            return Verdict.PASSES
        return super().ask(candidate)

    def settle(self, text: str) -> Callable[[], bool]:
        """The runs that tell whether it shows always are looked at later."""
        assert text in self.programs

        def steady() -> bool:
            self.hides = False
            return False

        return steady


def test_what_was_rejected_counts_only_for_a_failure_that_always_shows() -> None:
    oracle = Hidden(present([40]))
    found = reduce_program(chain(60), oracle, oracle.render, checks=Checks(settle=oracle.settle))
    assert [n.target for n in found.program.graph.nodes] == [target(40)]
    oracle = Hidden(present([40]))
    found = reduce_program(chain(60), oracle, oracle.render, checks=Checks(settle=lambda _: lambda: True))
    assert found.program.graph.ops > 1


def four_ops() -> Program:
    """mm, add, relu and sum of two large inputs, with everything about it that a user's program has."""
    big = tensor(64, 64)
    nodes = (
        op("mm_7", "mm.default", Ref("primals_1"), Ref("primals_2"), meta=big),
        op("add_3", "add.Tensor", Ref("mm_7"), Ref("primals_2"), meta=big, alpha=2),
        op("relu_2", "relu.default", Ref("add_3"), meta=big),
        op("tanh_9", "tanh.default", Ref("relu_2"), meta=big),
    )
    blob = Value("blob", ("/nowhere/primals.bin",))
    inputs = (Input("primals_1", big, blob, requires_grad=True), Input("primals_2", big, blob, requires_grad=True, leaf=False))
    recipe = Recipe(
        mode="max-autotune",
        options=(("epilogue_fusion", "True"),),
        fullgraph=True,
        dynamic=True,
        config=(("torch._inductor.config.freezing", "True"), ("torch._inductor.config.max_fusion_size", "8")),
        contexts=("torch.no_grad()",),
        setup=('torch.set_float32_matmul_precision("high")',),
    )
    return Program(Graph(inputs, nodes, Ref("tanh_9")), recipe)


ALL_FOUR = ["mm", "add", "relu", "tanh"]


def same_four(program: Program) -> bool:
    aliases = {"matmul": "mm"}
    return [aliases.get(w, w) for w in words(program)] == ALL_FOUR


def test_simplifying_four_operations_takes_few_queries() -> None:
    oracle = World(same_four)
    found = reduce_program(four_ops(), oracle, oracle.render)
    assert oracle.queries <= 15, Counter(oracle.origins)
    assert found.program.recipe == Recipe(seed=None)
    assert found.program.graph.input_elements == 1
    assert [i.value.kind for i in found.program.graph.inputs] == ["randn"]
    assert "torch.ops.aten" not in found.candidate.text


def test_what_needs_its_operations_alone_is_simplified_in_one_query() -> None:
    oracle = World(lambda p: {"op9", "op30"} <= set(words(p)))
    found = reduce_program(mixed(40, random.Random(3)), oracle, oracle.render)
    assert found.program.graph.input_elements == len(found.program.graph.inputs) == 1
    after = oracle.origins[oracle.origins.index("batch") :]
    assert Counter(after)["batch"] == 1
    assert not {"sizes", "inputs"} & set(after)


def test_what_a_right_guess_names_is_as_small_as_it_goes_after_one_query() -> None:
    oracle = World(lambda p: "op9" in words(p))
    program = mixed(40, random.Random(3))
    found = reduce_program(program, oracle, oracle.render, guesses=[frozenset({"n9"})])
    assert found.program.graph.input_elements == len(found.program.graph.inputs) == 1
    assert oracle.origins[0] == "guess"
    assert not {"batch", "sizes", "inputs"} & set(oracle.origins), oracle.origins


def test_a_right_guess_that_needs_a_size_costs_one_query_more() -> None:
    def needs(p: Program) -> bool:
        return "op9" in words(p) and p.graph.inputs[0].meta.shape[0] > 1

    oracle = World(needs)
    program = mixed(40, random.Random(3))
    found = reduce_program(program, oracle, oracle.render, guesses=[frozenset({"n9"})])
    assert found.program.graph.inputs[0].meta.shape == (2, 2)
    assert oracle.origins[:2] == ["guess", "guess"]
    assert "batch" not in oracle.origins, oracle.origins


def test_inputs_that_must_differ_and_be_large_are_found_after_that_query_failed() -> None:
    program = mixed(40, random.Random(0))

    def needs(p: Program) -> bool:
        return {"op9", "op30"} <= set(words(p)) and len(p.graph.inputs) > 1 and p.graph.inputs[0].meta.shape[0] > 1

    oracle = World(needs)
    found = reduce_program(program, oracle, oracle.render)
    assert sorted(words(found.program)) == ["op30", "op9"]
    assert len(found.program.graph.inputs) == 2
    assert found.program.graph.inputs[0].meta.shape == (2, 2)


def test_what_the_failure_needs_stays() -> None:
    def needs(program: Program) -> bool:
        config = dict(program.recipe.config)
        return same_four(program) and "torch._inductor.config.freezing" in config and program.recipe.fullgraph

    oracle = World(needs)
    found = reduce_program(four_ops(), oracle, oracle.render)
    assert found.program.recipe == Recipe(seed=None, fullgraph=True, config=(("torch._inductor.config.freezing", "True"),))
    assert oracle.queries <= 30, Counter(oracle.origins)


# --- what comes out


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_the_result_is_well_formed_same_and_reached_again(data: st.DataObject) -> None:
    program = data.draw(programs())
    ops = [n for n in program.graph.nodes if word(n) != "getitem"]
    wanted = Counter(word(n) for n in data.draw(st.lists(st.sampled_from(ops), min_size=1, max_size=3, unique_by=lambda n: n.name)))
    renamed = {"matmul": "mm", "reshape": "view"}

    def predicate(candidate: Program) -> bool:
        here = Counter(renamed.get(w, w) for w in words(candidate))
        return all(here[w] >= n for w, n in wanted.items())

    oracle = World(predicate)
    accepted: list[tuple[tuple[int, ...], str]] = []
    found = reduce_program(program, oracle, oracle.render, on_accept=lambda p, c: accepted.append((c.size, c.origin)))
    assert predicate(found.program)
    assert found.fixed_point
    assert ill_formed(found.program) is None
    assert infer(found.program.graph) is not None
    assert oracle.render(found.program) == found.candidate.text
    assert found.program.graph.ops == sum(wanted.values())
    sizes = [size for size, origin in accepted if origin != "lift"]
    assert sizes == sorted(set(sizes), reverse=True)

    again = World(predicate)
    assert reduce_program(program, again, again.render).candidate == found.candidate
    assert list(again.memo) == list(oracle.memo)


@settings(max_examples=40, deadline=None)
@given(programs(), st.integers(0, 60))
def test_a_spent_budget_keeps_the_best_so_far(program: Program, budget: int) -> None:
    last = word(program.graph.nodes[-1])

    def predicate(candidate: Program) -> bool:
        return last in words(candidate)

    oracle = World(predicate, budget)
    best: list[Program] = [program]
    found = reduce_program(program, oracle, oracle.render, on_accept=lambda p, _: best.append(p))
    assert found.program == best[-1]
    assert predicate(found.program)
    if budget == 0 and program.graph.ops > 1:
        assert not found.fixed_point


def test_only_exposable_values_become_outputs() -> None:
    program = chain(40)
    exposable = frozenset({"n20", "n30"})
    allowed = {target(20), target(30), target(39)}

    def predicate(candidate: Program) -> bool:
        producers = {n.name: n.target for n in candidate.graph.nodes}
        outputs = {producers.get(name) for name in _outputs(candidate)}
        assert outputs <= allowed
        return target(17) in producers.values()

    oracle = FreeOracle(predicate)
    found = reduce_program(program, oracle, oracle.render, numerics=Numerics(exposable=exposable))
    assert [n.target for n in found.program.graph.nodes] == [target(17), target(20)]


def _outputs(program: Program) -> set[str]:
    from bot.reduce.graph.form import refs

    return set(refs(program.graph.output))


def test_the_nearest_passing_program_lacks_one_operation() -> None:
    oracle = FreeOracle(fed(11, 11 + APART))
    found = reduce_program(chain(80), oracle, oracle.render)
    assert found.nearest_passing is not None
    assert oracle.memo[found.nearest_passing.text] is Verdict.PASSES
    assert found.nearest_passing.origin == "ops"
    assert found.nearest_passing.text.count("op42") + found.nearest_passing.text.count("op11") >= 1


def test_nothing_is_asked_of_a_program_that_is_as_small_as_can_be() -> None:
    meta = tensor(1)
    relu = Node("relu", "function", "torch.relu", (Ref("x"),), (), meta)
    program = Program(Graph((Input("x", meta),), (relu,), Ref("relu")), Recipe(seed=None))
    oracle = World(lambda p: "relu" in words(p))
    found = reduce_program(program, oracle, oracle.render)
    assert found.program == program
    assert oracle.queries == 0


def test_an_infinity_is_everywhere_before_sizes_shrink(tmp_path: Path) -> None:
    path = tmp_path / "x.bin"
    path.write_bytes(struct.pack("<24f", *[0.5] * 20, *[math.inf] * 4))
    item = Input("x", tensor(24), Value("blob", (str(path),)))

    def needs(p: Program) -> bool:
        value = p.graph.inputs[0].value
        return value in (Value("full", ("torch.inf",)), item.value) and p.graph.inputs[0].meta.shape[0] > 1

    oracle = World(needs)
    found = reduce_program(Program(Graph((item,), (op("r", "relu", Ref("x"), meta=item.meta),), Ref("r"))), oracle, oracle.render)
    assert found.program.graph.inputs[0].meta.shape == (2,)
    assert oracle.queries <= 9, Counter(oracle.origins)


def test_the_seed_stays_where_numbers_matter() -> None:
    oracle = World(same_four)
    found = reduce_program(four_ops(), oracle, oracle.render, numerics=Numerics(keep_seed=True))
    assert found.program.recipe.seed == 0
    checked = World(same_four)
    accurate = replace(four_ops(), recipe=Recipe(accuracy=True))
    assert reduce_program(accurate, checked, checked.render).program.recipe.seed == 0


def test_a_wrong_operation_in_half_precision_is_asked_in_float32_first() -> None:
    """As it is, its error alone may be within what half precision allows."""
    half = tensor(4, dtype="float16")
    places = (("relu", "x"), ("sin", "relu"), ("cos", "sin"))
    nodes = tuple(op(name, f"{name}.default", Ref(fed), meta=half) for name, fed in places)
    start = Program(Graph((Input("x", half),), nodes, Ref("cos")), Recipe(accuracy=True))
    asked: list[tuple[list[str], str]] = []

    def fails(program: Program) -> bool:
        asked.append((words(program), program.graph.sources[0].meta.dtype))
        return "sin" in words(program) and (len(words(program)) == 3 or asked[-1][1] == "float32")

    oracle = World(fails)
    found = reduce_program(start, oracle, oracle.render, guesses=[frozenset({"sin"})], numerics=Numerics(keep_seed=True))
    assert asked[0] == (["sin"], "float32")
    assert words(found.program) == ["sin"]


def test_a_seed_that_may_matter_goes_last() -> None:
    """A script without one is run several times."""
    unseeded: list[bool] = []

    def same(program: Program) -> bool:
        unseeded.append(program.recipe.seed is None)
        return same_four(program)

    oracle = World(same)
    found = reduce_program(four_ops(), oracle, oracle.render, numerics=Numerics(seed_last=True))
    assert found.program.recipe.seed is None
    assert unseeded.count(True) == 1
    needed = World(lambda p: same_four(p) and p.recipe.seed is not None)
    assert reduce_program(four_ops(), needed, needed.render, numerics=Numerics(seed_last=True)).program.recipe.seed == 0


def test_the_order_prefers_fewer_operations_to_smaller_inputs() -> None:
    small, large = chain(2), chain(1)
    large = large.with_graph(replace(large.graph, inputs=(Input("x", tensor(512, 512)),)))
    assert size_key(large, "longer text") < size_key(small, "text")
