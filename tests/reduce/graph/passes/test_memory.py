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


def eager(program: Program) -> int:
    """Bytes: the input, a value and the next."""
    return 4 * program.graph.inputs[0].meta.elements * min(3, 1 + len(program.graph.nodes))


def runs_out(program: Program) -> bool:
    """Compiled `op7` takes 24 times its value; any compiled code has a buffer of 256 MiB beside what eager needs, to be timed."""
    value = 4 * program.graph.inputs[0].meta.elements
    compiled = value * (24 if "op7" in words(program) else 2)
    return eager(program) <= cap(program) < max(compiled, eager(program) + (256 << 20))


def test_sizes_and_cap_shrink_together_and_eager_has_room() -> None:
    oracle = World(runs_out)
    incumbent = Incumbent(layers(), oracle, oracle.render)
    assert runs_out(incumbent.program)
    memory.Memory(GPU).run(incumbent)
    assert incumbent.program.graph.input_elements <= 64 * ROWS
    assert eager(incumbent.program) + (512 << 20) <= cap(incumbent.program) < 2 << 30
    assert runs_out(incumbent.program)
    assert oracle.queries <= 14


def test_what_the_compiler_needs_for_itself_is_no_failure_of_the_program() -> None:
    """Once all but a `relu` went, under a cap that left no room for the buffer with which any kernel is timed."""
    oracle = World(runs_out)
    found = reduce_program(layers(), oracle, oracle.render, allowed=GPU)
    assert words(found.program) == ["op7"]
    assert cap(found.program) >= eager(found.program) + (512 << 20)
    # and where that alone makes it fail, it stays as it is
    tight = World(lambda program: eager(program) <= cap(program) < eager(program) + (256 << 20))
    allowed = (eager(layers()) >> 20) + 1
    full = memory.capped(layers(), allowed)
    incumbent = Incumbent(full, tight, tight.render)
    memory.Memory(allowed << 20).run(incumbent)
    assert incumbent.program == full
    assert tight.queries < 40


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
