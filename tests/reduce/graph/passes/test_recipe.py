"""What the script says about compiling and calling."""

from __future__ import annotations

from dataclasses import replace

from bot.reduce.graph.edits import applied, apply
from bot.reduce.graph.form import EAGER_ALONE, Graph, Input, Meta, Program, Recipe, Ref, Value
from bot.reduce.graph.incumbent import Incumbent
from bot.reduce.graph.passes import recipe
from tests.reduce.graph.world import World, op, tensor, with_metas

META = tensor(4, 4)


def program_with(given: Recipe, preamble: str = "") -> Program:
    nodes = (op("r", "relu.default", Ref("x"), meta=META),)
    return Program(Graph((Input("x", META, requires_grad=given.backward),), nodes, Ref("r")), given, preamble)


FULL = Recipe(
    backend="my_backend",
    mode="max-autotune",
    options=(("a", "1"), ("b", "2")),
    dynamic=False,
    fullgraph=True,
    config=tuple((f"torch._inductor.config.c{i}", "True") for i in range(6)),
    contexts=("torch.no_grad()",),
    setup=("torch.set_default_dtype(torch.float64)",),
    backward=True,
    freshness=True,
)


def reduced(oracle: World) -> Incumbent:
    incumbent = Incumbent(program_with(FULL), oracle, oracle.render)
    apply(incumbent, recipe.edits(incumbent.program), "recipe")
    apply(incumbent, recipe.settings(incumbent.program), "settings")
    return incumbent


def test_everything_but_the_backend_goes_in_two_queries() -> None:
    oracle = World(lambda p: True)
    incumbent = reduced(oracle)
    assert incumbent.program.recipe == Recipe(backend="my_backend", seed=None)
    assert not incumbent.program.graph.inputs[0].requires_grad
    assert oracle.queries == 2


def test_the_one_entry_that_is_needed_stays() -> None:
    oracle = World(lambda p: ("torch._inductor.config.c4", "True") in p.recipe.config)
    incumbent = reduced(oracle)
    assert incumbent.program.recipe == Recipe(backend="my_backend", seed=None, config=(("torch._inductor.config.c4", "True"),))
    assert oracle.queries <= 10


def test_what_says_how_numbers_are_compared_stays() -> None:
    given = Recipe(accuracy=True, eager_alone=True, config=(EAGER_ALONE, ("torch._inductor.config.c1", "True")))
    assert [edit(program_with(given)) for edit in recipe.settings(program_with(given))] == [
        program_with(replace(given, config=(EAGER_ALONE,)))
    ]
    other = replace(given, eager_alone=False)
    assert len(recipe.settings(program_with(other))) == 2


def test_the_seed_of_a_comparison_stays() -> None:
    program = program_with(Recipe(accuracy=True, seed=0))
    assert recipe.edits(program) == []
    assert recipe.edits(program_with(Recipe(seed=0)), keep_seed=True) == []


def test_definitions_go_when_nothing_names_them() -> None:
    preamble = "import my_ops\n\ndef my_backend(gm, inputs):\n    return gm\n"
    needed = program_with(Recipe(backend="my_backend", seed=None), preamble)
    assert applied(needed, recipe.edits(needed)) == needed
    loose = replace(needed, recipe=Recipe(seed=None))
    assert applied(loose, recipe.edits(loose)).preamble == ""


def test_an_operator_library_is_named_by_its_namespace() -> None:
    assert "mylib" in recipe.defined('@torch.library.custom_op("mylib::f", mutates_args=())\ndef f(x): ...\n')
    assert "other" in recipe.defined('lib = torch.library.Library("other", "DEF")\n')


def test_static_sizes_are_plain_numbers() -> None:
    shape = replace(tensor(6, 4), dynamic=(0,), symbols=("s0", None))
    nodes = (
        op("s", "sym_size.int", Ref("x"), 0, meta=Meta("int", symbols=("s0",))),
        op("half", "operator.floordiv", Ref("s"), 2, meta=Meta("int")),
        op("v", "view.default", Ref("x"), [Ref("half"), 8], meta=Meta()),
    )
    inputs = (Input("x", shape), Input("s9", Meta("int", symbols=("s9",)), Value("literal", ("3",))))
    nodes = (*nodes, op("w", "view.default", Ref("v"), [Ref("s9"), 8], meta=Meta()))
    program = Program(Graph(inputs, nodes, Ref("w")), Recipe(dynamic=True))
    found = recipe.static(program)
    assert found is not None
    assert [(n.name, n.args[1]) for n in found.graph.nodes] == [("v", [3, 8]), ("w", [3, 8])]
    assert found.graph.inputs == (Input("x", tensor(6, 4)),)
    assert found.recipe == Recipe()
    assert with_metas(found).graph.nodes[-1].meta.shape == (3, 8)
