"""Scripts to start from: their order, and what of the user's program each carries."""

from __future__ import annotations

import ast
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from bot.engine.capture.region import Object, Region, RegionRecipe, RuleUsed
from bot.engine.capture.starts import Start, flat, parts, starts
from bot.models.failure import Kind, Phase, Signature, Stage
from bot.reduce.graph.form import Code, Graph, Input, Meta, Node, Pipeline, Ref, Value, refs
from bot.reduce.graph.printer.script import render
from tests.reduce.graph.free_oracle import FreeOracle
from tests.reduce.graph.json_form import graph_to_json

FAILURE = Signature(kind=Kind.EXCEPTION, phase=Phase.INDUCTOR_LOWERING)
WRONG = Signature(kind=Kind.ACCURACY, phase=Phase.RUN)
TENSOR = Meta("tensor", (2,), (1,), "float32")
X = Input("arg0_1", TENSOR)


def graph(*targets: str, inputs: tuple[Input, ...] = (X,), op: str = "function", **kwargs: Any) -> Graph:
    nodes: list[Node] = []
    last = inputs[0].name
    for number, target in enumerate(targets or ("torch.ops.aten.relu.default",)):
        nodes.append(Node(f"n{number}", op, target, (Ref(last),), tuple(kwargs.items()), meta=TENSOR))
        last = nodes[-1].name
    return Graph(inputs, tuple(nodes), (Ref(last),))


def region(hook: str = "aot", held: Graph | None = None, **more: Any) -> Region:
    recipe = RegionRecipe(**more.pop("recipe", {}))
    facts = {"failed": "compile", "backward": False, "reason": None, "blobs": Path("blobs"), **more}
    return Region(hook=hook, recipe=recipe, graph=graph_to_json(held or graph()), **facts)


def made(*regions: Region, failure: Signature = FAILURE, source: str | None = None, line: int | None = None) -> list[Start]:
    return list(starts(regions, failure, source, line, seed=5))


INSTALLS = """import torch
from torch._inductor.lowering import lowerings, register_lowering

before = lowerings[torch.ops.aten.relu.default]


HOW


net = torch.nn.ReLU()
torch.compile(net)(torch.ones(3))
"""
ASSIGNED = "def mine(x):\n    return before(x)\n\n\nlowerings[torch.ops.aten.relu.default] = mine"
DECORATED = "@register_lowering(torch.ops.aten.relu)\ndef mine(x):\n    return before(x)"


@pytest.mark.parametrize("how", [ASSIGNED, DECORATED])
def test_what_torch_had_called_comes_along_with_what_put_it_there(how: str) -> None:
    source = INSTALLS.replace("HOW", how)
    found = list(starts([region()], FAILURE, source, source.count("\n"), seed=5, installed=("mine",)))
    first = found[0].program.preamble
    assert how in first
    assert "before = " in first
    assert "net" not in first
    assert found[-1].program.preamble == "", "it may be needed by nothing"


def test_a_function_that_is_only_defined_is_not_carried() -> None:
    source = INSTALLS.replace("HOW", "def mine(x):\n    return before(x)")
    found = list(starts([region()], FAILURE, source, source.count("\n"), seed=5, installed=("mine",)))
    assert [start.program.preamble for start in found] == [""]


def only(*regions: Region, **more: Any) -> Start:
    (start,) = made(*regions, **more)
    return start


class TestOrder:
    """The deepest form that fails is the smallest."""

    def test_hook_points_and_at_one_of_them_the_last(self) -> None:
        first, last = (region("aot", graph(f"torch.ops.aten.{word}.default")) for word in ("sin", "cos"))
        found = made(region("dynamo"), first, region("aoti"), last)
        assert [start.stage for start in found] == [Stage.AOT_INDUCTOR, Stage.AOT, Stage.AOT, Stage.DYNAMO]
        assert [start.program.graph.nodes[0].target for start in found[1:3]] == ["torch.ops.aten.cos.default", "torch.ops.aten.sin.default"]
        assert [start.program.recipe.pipeline for start in found] == [Pipeline.AOTI, Pipeline.COMPILE, Pipeline.COMPILE, Pipeline.COMPILE]

    def test_a_graph_that_could_not_be_written_is_passed_over(self) -> None:
        assert made(region().model_copy(update={"graph": None, "reason": "no"})) == []

    def test_the_compilers_names_lead_to_the_programs(self) -> None:
        start = only(region("aot", graph("torch.ops.aten.sin.default", "torch.ops.aten.sin.default")))
        assert start.program.graph.inputs[0].name == "x"
        assert start.named(["n0", "n1", "unknown"]) == {"sin", "sin_1"}
        assert start.named(["n1"]) == {"sin_1"}

    def test_recorded_inputs_are_found(self) -> None:
        recorded = Input("arg0_1", TENSOR, Value("blob", ("x.bin", "float32")))
        start = only(region("aot", graph(inputs=(recorded,)), blobs=Path("/somewhere/region-001")))
        assert start.program.graph.inputs[0].value == Value("blob", ("/somewhere/region-001/x.bin", "float32"))

    @pytest.mark.parametrize("inside", [False, True], ids=["of the graph", "of a body"])
    def test_only_files_of_the_capture_are_recorded_inputs(self, tmp_path: Path, inside: bool) -> None:
        """What is named here becomes part of the repro, and a program can write what it likes into its capture."""
        place = tmp_path / "region-001"
        place.mkdir()
        (tmp_path / "secret").write_text("secret")
        (place / "link").symlink_to(tmp_path / "secret")

        def started(name: str) -> str:
            inputs = (Input("arg0_1", TENSOR, Value("blob", (name, "float32"))),)
            body = replace(graph(), bodies=(("body", graph(inputs=inputs)),)) if inside else graph(inputs=inputs)
            found = only(region("aot", body, blobs=place)).program.graph
            return str((found.bodies[0][1] if inside else found).inputs[0].value.args[0])

        for name in (str(tmp_path / "secret"), "../secret", "deep/../../secret"):
            assert started(name) == str(place / "secret")
        (place / "file").write_text("recorded")
        assert started("file") == str(place / "file")
        inputs = (Input("arg0_1", TENSOR, Value("blob", ("link", "float32"))),)
        linked = replace(graph(), bodies=(("body", graph(inputs=inputs)),)) if inside else graph(inputs=inputs)
        assert made(region("aot", linked, blobs=place)) == [], "of such a graph no script is made"


class TestRecipe:
    """How each form compiles and calls its module."""

    def test_settings(self) -> None:
        how = {
            "mode": "reduce-overhead",
            "contexts": ("torch.no_grad()",),
            "setup": ("torch.set_default_dtype(torch.float64)",),
            "config": {"torch._inductor.config.freezing": Object(text="True", name="True")},
            "options": {"max_autotune": Object(text="False", name="False")},
        }
        inner, outer = made(region("aot", recipe=how), region("dynamo", recipe=how))
        for start in (inner, outer):
            recipe = start.program.recipe
            assert recipe.mode == "reduce-overhead"
            assert recipe.config == (("torch._inductor.config.freezing", "True"),)
            assert recipe.options == (("max_autotune", "False"),)
            assert recipe.setup == ("torch.set_default_dtype(torch.float64)",)
            assert (recipe.seed, recipe.accuracy, recipe.backward, recipe.backend) == (5, False, False, None)
        assert outer.program.recipe.contexts == ("torch.no_grad()",)
        assert inner.program.recipe.contexts == (), "Inductor's graph was traced under it already"

    def test_a_backend_that_has_a_text(self) -> None:
        how = {"backend": Object(text='"aot_eager"', name="aot_eager")}
        inner, outer = made(region("aot", recipe=how), region("dynamo", recipe=how))
        assert (inner.program.recipe.backend, outer.program.recipe.backend) == (None, '"aot_eager"')

    @pytest.mark.parametrize(
        ("hook", "given", "symbolic", "expected"),
        [
            ("aot", None, False, None),
            ("aot", False, True, True),
            ("dynamo", None, True, True),
            ("dynamo", None, False, None),
            ("dynamo", False, True, False),
            ("dynamo", True, False, True),
            ("aoti", None, True, None),
        ],
    )
    def test_dynamic(self, hook: str, given: bool | None, symbolic: bool, expected: bool | None) -> None:
        meta = Meta("tensor", (2,), (1,), "float32", dynamic=(0,)) if symbolic else TENSOR
        start = only(region(hook, graph(inputs=(Input("a", meta),)), recipe={"dynamic": given}))
        assert start.program.recipe.dynamic is expected

    @pytest.mark.parametrize(
        ("target", "op", "mutates"),
        [
            ("torch.ops.aten.add_.Tensor", "function", True),
            ("torch.ops.aten.add.Tensor", "function", False),
            ("torch.ops.aten.__and__.Tensor", "function", False),
            ("operator.setitem", "function", True),
            ("operator.iadd", "function", True),
            ("operator.invert", "function", False),
            ("operator.index", "function", False),
            ("torch.relu_", "function", True),
            ("torch.nn.functional.relu", "function", False),
            ("mul_", "method", True),
            ("__getitem__", "method", False),
            ("view", "method", False),
        ],
    )
    def test_operations_in_place_need_fresh_inputs(self, target: str, op: str, mutates: bool) -> None:
        assert only(region("dynamo", graph(target, op=op))).program.recipe.freshness is mutates

    def test_the_argument_inplace_does_too(self) -> None:
        for value in (True, False):
            held = graph("torch.nn.functional.leaky_relu", inplace=value)
            assert only(region("dynamo", held)).program.recipe.freshness is value

    def test_an_operator_that_writes_by_its_schema_does_too(self) -> None:
        node = Node("n", "function", "torch.ops.aten.add.out", (Ref("arg0_1"), 1), (("out", Ref("arg0_1")),), TENSOR, ("out",))
        assert only(region("dynamo", Graph((X,), (node,), Ref("n")))).program.recipe.freshness

    @pytest.mark.parametrize(
        ("failure", "grad", "hook", "expected"),
        [
            (FAILURE, True, "dynamo", [False, True]),
            (FAILURE.model_copy(update={"backward": True}), True, "dynamo", [True, False]),
            (FAILURE.model_copy(update={"backward": True}), True, "aot", [False]),
            (FAILURE.model_copy(update={"backward": True}), False, "dynamo", [False]),
        ],
    )
    def test_a_backward_pass(self, failure: Signature, grad: bool, hook: str, expected: list[bool]) -> None:
        held = graph(inputs=(Input("a", TENSOR, requires_grad=grad),))
        found = [start.program.recipe for start in made(region(hook, held), failure=failure)]
        assert [recipe.backward for recipe in found] == expected
        compiled_only = failure.backward and grad and hook == "dynamo"
        assert [recipe.has_backward for recipe in found] == [compiled_only and not recipe.backward for recipe in found]

    def test_accuracy_keeps_the_rule_under_which_it_failed(self) -> None:
        held = graph(inputs=(Input("a", TENSOR, requires_grad=True),))
        rule = RuleUsed(strict=True, tolerance=(0.1, 0.2))
        for backward, expected in ((True, [True, False]), (False, [False, True])):
            found = made(region("dynamo", held, rule=rule, backward=backward), failure=WRONG)
            assert [start.program.recipe.backward for start in found] == expected
            for start in found:
                assert (start.program.recipe.accuracy, start.program.recipe.strict, start.program.recipe.tolerance) == (
                    True,
                    True,
                    (0.1, 0.2),
                )

    def test_gradients_that_only_a_weighted_sum_shows_are_compared_first(self) -> None:
        trained = graph(inputs=(replace(X, requires_grad=True),))
        found = made(region("dynamo", trained, weighted=True), failure=WRONG)
        assert all(start.program.recipe.weighted for start in found)
        assert [start.program.recipe.backward for start in found] == [True, False, True, False], "each, and both against float64"

    @pytest.mark.parametrize(("near", "expected"), [(True, [False, True]), (False, [True])])
    def test_where_eager_misses_the_tolerance_both_are_held_against_float64(self, near: bool, expected: list[bool]) -> None:
        found = made(region("aot", against_float64=not near), failure=WRONG)
        assert [start.program.recipe.against_float64 for start in found] == expected
        own = made(region("aot", rule=RuleUsed(tolerance=(0.1, 0.2))), failure=WRONG)
        assert [start.program.recipe.against_float64 for start in own] == [False], "the program's own comparison decides"
        assert not only(region("aot")).program.recipe.against_float64

    @pytest.mark.parametrize(
        ("value", "near", "expected"),
        [("False", True, [(True, False)]), ("False", False, [(True, False)]), ("True", False, [(False, True)])],
    )
    def test_a_program_may_take_eager_for_right(self, value: str, near: bool, expected: list[tuple[bool, bool]]) -> None:
        name = "torch._dynamo.config.same_two_models_use_fp64"
        found = made(region("aot", recipe={"config": {name: Object(text=value, name=name)}}, against_float64=not near), failure=WRONG)
        assert [(start.program.recipe.eager_alone, start.program.recipe.against_float64) for start in found] == expected
        assert all((name, value) in start.program.recipe.config for start in found)

    def test_only_the_wrong_outputs_are_returned_first(self) -> None:
        nodes = tuple(Node(name, "function", f"torch.{name}", (Ref("a"),), meta=TENSOR) for name in ("sin", "cos", "tan"))
        held = Graph((Input("a", TENSOR),), nodes, (Ref("sin"), None, Ref("cos"), Ref("tan")))
        found = made(region("aot", held, wrong=(1, 2), against_float64=True), failure=WRONG)
        assert [len([*refs(start.program.graph.output)]) for start in found] == [2, 3]
        assert len(made(region("aot", held, wrong=(0, 1, 2), against_float64=True), failure=WRONG)) == 1
        assert len(made(region("aot", held, wrong=(3,), against_float64=True), failure=WRONG)) == 1, "of a gradient"

    @pytest.mark.parametrize(
        ("given", "expected", "shown"),
        [("0.05", 0.05, "0.05"), ("1e-05", 1e-5, "1e-5"), ("mine", 1e-3, "1e-3"), (None, 1e-3, "1e-3")],
    )
    def test_a_configured_tolerance_outlives_its_setting(self, given: str | None, expected: float, shown: str) -> None:
        name = "torch._dynamo.config.repro_tolerance"
        config = {} if given is None else {name: Object(text=given, name=name)}
        start = made(region("aot", recipe={"config": config}), failure=WRONG)[0]
        assert (start.program.recipe.tolerance, start.program.recipe.repro_tolerance) == (None, expected)
        bare = replace(start.program, recipe=replace(start.program.recipe, config=()))
        assert f"rtol={shown}, atol={shown}," in render(bare)


SOURCE = """
import torch
import mypasses
from torch._inductor import config

FACTOR = 3

def my_pass(graph):
    return FACTOR

config.post_grad_custom_post_pass = my_pass

def main():
    x = torch.ones(3)
    torch.compile(lambda x: x + 1)(x)

main()
"""
NAMED = Object(text=None, name="my_pass", expressions=("my_pass",), wanted=("my_pass",))
DEFINED = Object(text=None, name="inner", expressions=("inner",), definitions=("scale = 2", "def inner(graph):\n    return scale"))
ENTRY = "torch._inductor.config.post_grad_custom_post_pass"


KERNEL = """
import torch
import triton

SIZE = 128

@triton.jit
def add_one(src, dst, n, BLOCK):
    pass

def launch(x):
    add_one[(1,)](x, x, 4, SIZE)
    return x

torch.compile(launch)(torch.ones(4))
"""


def test_a_kernel_comes_with_its_definition_and_nothing_else() -> None:
    target = "torch.ops.higher_order.triton_kernel_wrapper_mutation"
    launch = Node("launch", "function", target, (Code("add_one"), (1, 1, 1)), (("src", Ref("arg0_1")),))
    held = Graph((X,), (launch,), (Ref("arg0_1"),))
    found = made(region("dynamo", held), source=KERNEL, line=15)
    assert "@triton.jit\ndef add_one(" in found[0].program.preamble
    assert "import triton" in found[0].program.preamble
    assert "SIZE" not in found[0].program.preamble
    assert "def launch" not in found[0].program.preamble
    assert found[0].program.recipe.freshness, "a kernel may write to any tensor that it is given"
    assert [start.program.recipe.launch_when_compiled for start in found[:2]] == [False, True], "as it is, then where only compiled"
    assert made(region("dynamo", held)) == []


def test_an_imported_kernel_needs_no_definition() -> None:
    target = "torch.ops.higher_order.triton_kernel_wrapper_mutation"
    launch = Node("launch", "function", target, (Code("kernels.ops.add_one"), (1, 1, 1)), (("src", Ref("arg0_1")),))
    starts = made(region("dynamo", Graph((X,), (launch,), (Ref("arg0_1"),))))
    assert {start.program.preamble for start in starts} == {""}


def test_a_call_without_breaks_is_asked_after_the_plain_one_where_numbers_may_be_read() -> None:
    plain, whole = made(region(held=graph("torch.ops.aten.nonzero.default"), recipe={"fullgraph": True}))
    assert (plain.program.recipe.fullgraph, whole.program.recipe.fullgraph) == (False, True)
    (only_plain,) = made(region(recipe={"fullgraph": True}))
    assert not only_plain.program.recipe.fullgraph


class TestObjects:
    """Passes and backends of the user's: definitions first, then what of the script leads to them."""

    def test_an_object_with_definitions_needs_no_script(self) -> None:
        start = only(region(recipe={"config": {ENTRY: DEFINED}}))
        assert start.program.preamble == "scale = 2\ndef inner(graph):\n    return scale"
        assert start.program.recipe.config == ((ENTRY, "inner"),)

    def test_an_object_that_only_the_script_leads_to(self) -> None:
        found = made(region(recipe={"config": {ENTRY: NAMED}}), source=SOURCE, line=14)
        assert found
        smallest = found[0].program
        assert "def my_pass" in smallest.preamble
        assert "FACTOR = 3" in smallest.preamble
        assert "torch.compile" not in smallest.preamble
        assert "mypasses" not in smallest.preamble
        assert smallest.recipe.config == ((ENTRY, "my_pass"),)
        assert any("post_grad_custom_post_pass = my_pass" in s.program.preamble and not s.program.recipe.config for s in found), (
            "the assignment itself may be what carries it"
        )
        assert len({(s.program.preamble, s.program.recipe) for s in found}) == len(found), "no program twice"

    def test_without_a_script_it_cannot_be_reached(self) -> None:
        assert made(region(recipe={"config": {ENTRY: NAMED}})) == []
        assert made(region(recipe={"config": {ENTRY: NAMED}}), source="def (:") == []

    def test_options_and_backends(self) -> None:
        how = {"options": {"post_grad_custom_post_pass": NAMED}, "backend": DEFINED}
        outer = made(region("dynamo", recipe=how), source=SOURCE, line=14)[0].program
        assert outer.recipe.options == (("post_grad_custom_post_pass", "my_pass"),)
        assert outer.recipe.backend == "inner"
        inner = made(region("aot", recipe=how), source=SOURCE, line=14)[0].program
        assert inner.recipe.backend is None

    def test_a_pass_of_a_device(self) -> None:
        start = only(region(recipe={"custom_backend_passes": {"cpu": DEFINED}}))
        registered = ast.parse(start.program.recipe.setup[-1]).body[0]
        assert isinstance(registered, ast.Expr)
        assert ast.unparse(registered.value).startswith("common.register_backend_for_device('cpu', ")
        assert ast.unparse(registered.value).endswith("device_custom_pass=inner)")
        assert "def inner" in start.program.preamble

    def test_operators_that_the_user_registers(self) -> None:
        source = SOURCE.replace(
            "FACTOR = 3", '@torch.library.custom_op("mine::twice", mutates_args=())\ndef twice(x: torch.Tensor) -> torch.Tensor: ...'
        )
        found = made(region(held=graph("torch.ops.mine.twice.default")), source=source, line=15)
        preambles = [start.program.preamble for start in found]
        assert any("mine::twice" in preamble and "mypasses" not in preamble for preamble in preambles)
        assert "import mypasses" in preambles, "a package may register it"
        assert made(region(held=graph("torch.ops.aten.relu.default")), source=source, line=15)[0].program.preamble == ""

    def test_what_calls_an_operator_through_another_one_is_asked_last(self) -> None:
        indirect = region(held=graph("torch.ops.higher_order.auto_functionalized_v2"))
        assert [start.stage for start in made(region("dynamo"), indirect)] == [Stage.DYNAMO, Stage.AOT]
        assert [start.stage for start in made(region("dynamo"), region())] == [Stage.AOT, Stage.DYNAMO]

    def test_operators_that_are_arguments_count(self) -> None:
        """Functionalization calls what writes to its arguments through a higher-order operation."""
        target = "torch.ops.higher_order.auto_functionalized_v2"
        node = Node("n", "function", target, (Code("torch.ops.mine.twice.default"),), (("x", Ref("arg0_1")),), TENSOR)
        held = Graph((X,), (node,), (Ref("n"),))
        assert "import mypasses" in [start.program.preamble for start in made(region(held=held), source=SOURCE, line=14)]

    def test_operators_inside_bodies_count(self) -> None:
        body = graph("torch.ops.mine.twice.default")
        node = Node("n", "function", "torch.ops.higher_order.cond", (Ref("a"), Code("body")), meta=TENSOR)
        held = Graph((Input("a", TENSOR),), (node,), (Ref("n"),), bodies=(("body", body),))
        assert "import mypasses" in [start.program.preamble for start in made(region(held=held), source=SOURCE, line=14)]


def test_an_operation_is_asked_alone_and_then_with_what_leads_to_it() -> None:
    held = graph("torch.ops.aten.relu.default", "torch.ops.aten.exp.default", "torch.ops.aten.sin.default")
    (start, *_) = made(region(held=held, failed="accuracy"), failure=WRONG)
    first, second, third = (node.name for node in start.program.graph.nodes)
    (alone,) = parts(start, [frozenset({second})])
    assert [node.name for node in alone.program.graph.nodes] == [second]
    alone, led = parts(start, [frozenset({second})], upstream=True)
    assert [node.name for node in alone.program.graph.nodes] == [second]
    assert [node.name for node in led.program.graph.nodes] == [first, second]
    assert list(refs(led.program.graph.output)) == [second]
    assert led.whole is start.program
    assert third not in led.program.graph.metas()


def test_an_operation_in_half_precision_is_asked_alone_in_float32_as_well() -> None:
    held = graph("torch.ops.aten.relu.default", "torch.ops.aten.exp.default")
    half = replace(TENSOR, dtype="float16")
    held = replace(
        held,
        inputs=tuple(replace(item, meta=half) for item in held.inputs),
        nodes=tuple(replace(node, meta=half) for node in held.nodes),
    )
    (start, *_) = made(region(held=held, failed="accuracy"), failure=WRONG)
    second = start.program.graph.nodes[1].name
    asked = list(parts(start, [frozenset({second})]))
    assert [[node.name for node in one.program.graph.nodes] for one in asked] == [[second], [second]]
    assert [one.program.graph.metas()[second].dtype for one in asked] == ["float16", "float32"]
    assert all(one.whole is start.program for one in asked)


def test_where_numbers_are_wrong_a_branch_is_asked_in_place_of_its_call_first() -> None:
    branch = graph("torch.ops.aten.sin.default", inputs=(Input("b", TENSOR),))
    nodes = (
        Node("c", "function", "torch.ops.higher_order.cond", (True, Ref("yes"), Ref("yes"), (Ref("arg0_1"),)), (), Meta()),
        Node("item", "function", "operator.getitem", (Ref("c"), 0), (), TENSOR),
    )
    held = Graph((X,), nodes, (Ref("item"),), bodies=(("yes", branch),))
    (start, *_) = made(region(held=held, failed="accuracy"), failure=WRONG)
    written_out, as_it_is = flat(start, FreeOracle(lambda _: True))
    assert [node.target for node in written_out.program.graph.nodes] == ["torch.ops.aten.sin.default"]
    assert (written_out.whole, as_it_is) == (start.program, start)
    raises = replace(start, program=replace(start.program, recipe=replace(start.program.recipe, accuracy=False)))
    assert list(flat(raises, FreeOracle(lambda _: True))) == [raises]
