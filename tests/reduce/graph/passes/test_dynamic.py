"""Which sizes have to be dynamic, and what the script says of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from bot.models.failure import Verdict
from bot.reduce.candidate import Candidate, Checks
from bot.reduce.graph.form import Graph, Input, Meta, Pipeline, Program, Recipe, Ref, Value
from bot.reduce.graph.incumbent import Incumbent
from bot.reduce.graph.passes import dynamic
from bot.reduce.graph.printer.script import lines, render
from bot.reduce.graph.reducer import reduce_program
from tests.reduce.graph.world import World, op, tensor

META = replace(tensor(4, 4), dynamic=(0, 1), symbols=("s0", "s1"))
Dynamic = Callable[[dict[str, tuple[int, ...]]], bool]


def program(**given: object) -> Program:
    nodes = (op("a", "mm.default", Ref("x"), Ref("y"), meta=META),)
    recipe = replace(Recipe(dynamic=True, seed=None), **given)  # type: ignore[arg-type]
    return Program(Graph((Input("x", META), Input("y", META)), nodes, Ref("a")), recipe)


def needing(needed: Dynamic) -> Callable[[Program], bool]:
    """Fails where these sizes of the left and the right operand are dynamic: marked, or with all others."""

    def holds(asked: Program) -> bool:
        if len(asked.graph.inputs) != 2:  # never merged
            return False
        dims = {i.name: (0, 1) if asked.recipe.dynamic else i.meta.dynamic for i in asked.graph.inputs}
        return needed(dims)

    return holds


def symbolic(holds: Callable[[Program], bool]) -> Callable[[Program], bool]:
    """Sizes of one are static whatever is said."""
    return lambda asked: holds(asked) and all(size > 1 for i in asked.graph.inputs for size in i.meta.shape)


def reduced(needed: Dynamic) -> str:
    oracle = World(symbolic(needing(needed)))
    return reduce_program(program(), oracle, oracle.render).candidate.text


def test_one_mark_stays_and_the_script_says_why() -> None:
    text = reduced(lambda dims: 1 in dims["y"])
    assert "# y.size(1) must be dynamic: with static sizes this passes\ntorch._dynamo.mark_dynamic(y, 1)\n" in text
    assert text.count("mark_dynamic") == 1
    assert "dynamic=True" not in text


def test_two_marks_stay() -> None:
    text = reduced(lambda dims: 0 in dims["x"] and 1 in dims["y"])
    assert "# x.size(0) and y.size(1) must be dynamic: with static sizes this passes\n" in text
    assert text.count("mark_dynamic") == 2


def test_what_marks_cannot_say_stays_dynamic() -> None:
    oracle = World(lambda p: p.recipe.dynamic is True)
    text = reduce_program(program(), oracle, oracle.render).candidate.text
    assert "# dynamic=True is needed: with static sizes this passes\ntorch.compile(Repro(), dynamic=True)" in text
    assert "mark_dynamic" not in text


def test_one_mark_too_many_may_be_another_error() -> None:
    def holds(asked: Program) -> bool:
        return (bool(asked.recipe.dynamic) and len(asked.graph.inputs) == 2) or {i.name: i.meta.dynamic for i in asked.graph.inputs} == {
            "x": (0,),
            "y": (),
        }

    oracle = World(symbolic(holds))
    text = reduce_program(program(), oracle, oracle.render).candidate.text
    assert "torch._dynamo.mark_dynamic(x, 0)\n" in text
    assert text.count("mark_dynamic") == 1


class Otherwise(World):
    """The program with static sizes fails, but in another way."""

    def ask(self, candidate: Candidate) -> Verdict:
        verdict = super().ask(candidate)
        return Verdict.DIFFERENT if verdict is Verdict.PASSES else verdict


def test_nothing_is_said_where_static_sizes_do_not_pass() -> None:
    oracle = Otherwise(symbolic(needing(lambda dims: 1 in dims["y"])))
    text = reduce_program(program(), oracle, oracle.render).candidate.text
    assert "torch._dynamo.mark_dynamic(y, 1)\n" in text
    assert "#" not in text


def test_nothing_is_said_where_static_sizes_do_not_pass_all_the_way() -> None:
    oracle, asked = World(symbolic(needing(lambda dims: 1 in dims["y"]))), []

    def ends_well(text: str) -> bool:
        asked.append(text)
        return False

    text = reduce_program(program(), oracle, oracle.render, checks=Checks(ends_well=ends_well)).candidate.text
    assert text.replace("torch._dynamo.mark_dynamic(y, 1)\n", "") == asked[0]
    assert "#" not in text


def test_a_static_program_costs_nothing() -> None:
    oracle = World(lambda p: True)
    plain = Program(Graph((Input("x", tensor(1)),), (op("r", "relu.default", Ref("x"), meta=tensor(1)),), Ref("r")), Recipe(seed=None))
    incumbent = Incumbent(plain, oracle, oracle.render)
    assert not dynamic.run(incumbent)
    assert not dynamic.explain(incumbent)
    assert oracle.queries == 0


def test_nothing_is_said_of_what_is_not_dynamic() -> None:
    oracle = World(lambda p: p.recipe.dynamic is False)
    incumbent = Incumbent(program(dynamic=False), oracle, oracle.render)
    assert not dynamic.run(incumbent)
    assert not dynamic.explain(incumbent)


def test_a_size_of_one_is_not_marked() -> None:
    oracle = World(lambda p: all(i.meta.shape[dim] > 1 for i in p.graph.inputs for dim in i.meta.dynamic) or p.recipe.dynamic is True)
    meta = replace(tensor(1, 4), dynamic=(0, 1))
    held = Program(Graph((Input("x", meta),), (op("r", "relu.default", Ref("x"), meta=meta),), Ref("r")), Recipe(dynamic=True, seed=None))
    incumbent = Incumbent(held, oracle, oracle.render)
    assert dynamic.run(incumbent)
    assert incumbent.program.recipe.dynamic is None
    assert "dynamic" not in incumbent.candidate.text


def test_exported_sizes_go_one_by_one() -> None:
    oracle = World(lambda p: p.graph.inputs[0].meta.dynamic[:1] == (0,) and len(p.graph.inputs) == 2)
    held = program(pipeline=Pipeline.AOTI, dynamic=None)
    text = reduce_program(held, oracle, oracle.render).candidate.text
    assert 'dynamic_shapes={"x": {0: torch.export.Dim.DYNAMIC}, "y": None}' in text
    assert "# x.size(0) must be dynamic: with static sizes this passes\n" in text


def test_the_comment_is_no_line() -> None:
    said = replace(program(), static_passes="")
    assert render(said) != render(program())
    assert lines(render(said)) == lines(render(program()))


def test_what_was_said_of_other_definitions_is_not_said() -> None:
    said = replace(program(), preamble="def f(): ...", static_passes="def f(): ...")
    assert "# dynamic=True is needed" in render(said)
    assert "#" not in render(replace(said, preamble=""))
    oracle = World(lambda p: p.recipe.dynamic is True)
    again = dynamic.explained(replace(said, preamble="def g(): ..."), oracle, oracle.render)
    assert again.static_passes == "def g(): ..."
    oracle = World(lambda p: True)
    assert dynamic.explained(again, oracle, oracle.render).static_passes is None


def test_integers_alone_can_be_what_is_dynamic() -> None:
    meta = tensor(4)
    n = Input("n", Meta("int", symbols=("s0",)), Value("literal", ("3",)))
    held = Program(Graph((Input("x", meta), n), (op("r", "add.Tensor", Ref("x"), Ref("n"), meta=meta),), Ref("r")), Recipe(dynamic=True))
    assert "# dynamic=True is needed: with" in render(replace(held, static_passes=""))
