"""Running out of a GPU's memory on a small part of it."""

from __future__ import annotations

import re
from dataclasses import replace

from bot.reduce.graph.form import Graph, Input, Meta, Program, Recipe, Ref
from bot.reduce.graph.incumbent import Incumbent
from bot.reduce.graph.passes import memory
from bot.reduce.graph.reducer import reduce_program
from tests.reduce.graph.world import World, op, tensor, with_metas, words

GPU = 80 << 30
ROWS = 1 << 20


def layers(rows: int = ROWS) -> Program:
    """Some operations on 4 GiB, one of which needs much more when it is compiled."""
    nodes = (
        op("a", "relu.default", Ref("x"), meta=Meta()),
        op("b", "sin.default", Ref("a"), meta=Meta()),
        op("c", "op7.default", Ref("b"), meta=Meta()),
        op("d", "cos.default", Ref("c"), meta=Meta()),
    )
    return with_metas(Program(Graph((Input("x", tensor(rows, 1024)),), nodes, Ref("d")), Recipe(frees=True)))


def cap(program: Program) -> int:
    """Bytes that the script allows."""
    found = re.search(r"fraction\((\d+) \* 2\*\*20 ", "\n".join(program.recipe.setup))
    return int(found[1]) << 20 if found else GPU


def runs_out(program: Program) -> bool:
    """Eager holds the input, a value and the next; compiled code `op7` 24 times its value."""
    value = 4 * program.graph.inputs[0].meta.elements
    eager = value * min(3, 1 + len(program.graph.nodes))
    return eager <= cap(program) < value * (24 if "op7" in words(program) else 2)


def test_sizes_and_cap_shrink_together_and_eager_has_room() -> None:
    oracle = World(runs_out)
    incumbent = Incumbent(layers(), oracle, oracle.render)
    assert runs_out(incumbent.program)
    memory.Memory(GPU).run(incumbent)
    assert incumbent.program.graph.input_elements <= ROWS
    assert 32 << 20 <= cap(incumbent.program) < 128 << 20
    assert runs_out(incumbent.program)
    assert oracle.queries <= 12


def test_operations_go_that_both_sides_need_memory_for() -> None:
    oracle = World(runs_out)
    found = reduce_program(layers(), oracle, oracle.render, allowed=GPU)
    assert words(found.program) == ["op7"]
    (line,) = found.program.recipe.setup
    assert line.endswith("* 2**20 / torch.cuda.mem_get_info()[1])")
    assert runs_out(found.program)
    # neither side is near it
    value = 4 * found.program.graph.input_elements
    assert 2.2 * value < cap(found.program) < 22 * value
    assert found.fixed_point


def test_the_programs_own_cap_is_replaced() -> None:
    own = "torch.cuda.set_per_process_memory_fraction(0.3, 0)"
    program = layers()
    other = "torch.set_default_dtype(torch.float32)"
    held = memory.capped(replace(program, recipe=replace(program.recipe, setup=(own, other))), 64).recipe.setup
    assert held == (other, "torch.cuda.set_per_process_memory_fraction(64 * 2**20 / torch.cuda.mem_get_info()[1])")


def test_what_fits_on_a_small_part_only_as_it_is_stays() -> None:
    oracle = World(lambda program: runs_out(program) and program.graph.inputs[0].meta.shape[0] == ROWS)
    incumbent = Incumbent(layers(), oracle, oracle.render)
    memory.Memory(GPU).run(incumbent)
    assert incumbent.program.graph.inputs[0].meta.shape[0] == ROWS
    assert runs_out(incumbent.program)


def test_another_failure_takes_no_cap() -> None:
    oracle = World(lambda program: "op7" in words(program))
    found = reduce_program(layers(4), oracle, oracle.render)
    assert found.program.recipe.setup == ()


def test_sizes_shrink_as_ever_where_no_cap_will_do() -> None:
    oracle = World(lambda program: "op7" in words(program) and not program.recipe.setup)
    found = reduce_program(layers(), oracle, oracle.render, allowed=GPU)
    assert words(found.program) == ["op7"]
    assert found.program.graph.input_elements == 1
