"""What is remembered of a graph that fails between Dynamo, Inductor and AOTInductor."""

from __future__ import annotations

import struct
import textwrap
from array import array
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bot.engine.capture.region import Region, read_regions
from bot.failure.outcome import Outcome
from bot.inside.protocol import Question
from bot.reduce.graph.codec import graph_from_json
from bot.reduce.graph.form import refs
from bot.workers.pool import Pool

# A program is captured in a process of its own, which has no setting of ours in its environment.
INSTALL = """
    import os
    import torch
    del os.environ["AOT_INDUCTOR_COMPILE_WRAPPER_OPT_LEVEL"]
    from torch_minify_inside.eager import accuracy
    from torch_minify_inside.capture import escaped, hooks
    from torch_minify_inside.capture.tracker import Tracker
    seen = escaped.Escaped({out!r})
    tracker = Tracker(
        out={out!r}, check={check}, rule=accuracy.ComparisonRule(), beforehand={beforehand}, dump=False, escaped=seen,
        synchronous={synchronous}, later_calls={later_calls},
    )
    STUBS
    hooks.install(tracker)
"""
LOWERING = """
    from torch._inductor import lowering
    @lowering.register_lowering(torch.ops.aten.relu.default)
    def broken(x): raise AssertionError("in lowering")
"""

Rerun = Callable[..., "tuple[Outcome, tuple[Region, ...]]"]


@pytest.fixture
def rerun(pool: Pool, tmp_path: Path) -> Rerun:
    """Run a program with the hooks in place; how it ended and what was written."""

    def run(
        body: str,
        *,
        check: bool = False,
        beforehand: bool = False,
        synchronous: bool = False,
        later_calls: bool = False,
        stubs: str = "",
    ) -> tuple[Outcome, tuple[Region, ...]]:
        given = {"check": check, "beforehand": beforehand, "synchronous": synchronous, "later_calls": later_calls}
        start = textwrap.dedent(INSTALL).format(out=str(tmp_path), **given)
        text = start.replace("STUBS", textwrap.dedent(stubs)) + textwrap.dedent(body)
        return pool.ask(Question(text, "run", 100.0))[0], read_regions(tmp_path)

    return run


def targets(region: Region) -> list[str]:
    assert region.graph is not None, region.reason
    return [
        node["target"].rpartition(".")[2] if node["target"].startswith("operator") else node["target"] for node in region.graph["nodes"]
    ]


BACKEND = """
    def mine(gm, inputs): raise AssertionError("mine")
"""


def test_a_backend_that_raises(rerun: Rerun) -> None:
    body = BACKEND + "    torch.compile(lambda x: torch.relu(x) + 1, backend=mine, dynamic=False, fullgraph=True)(torch.ones(3))"
    outcome, (region,) = rerun(body)
    assert "AssertionError: mine" in outcome.text
    assert (region.hook, region.failed, region.backward) == ("dynamo", "compile", False)
    assert targets(region) == ["torch.relu", "add"]
    how = region.recipe
    assert how.backend is not None
    assert (how.backend.name, how.backend.expressions[0], how.backend.wanted) == ("mine", "mine", ("mine",))
    assert (how.dynamic, how.fullgraph, how.mode, how.options) == (False, True, None, {})
    assert how.config == {}  # what dynamic= sets meanwhile is not the program's


def test_a_failure_in_inductor_is_written_at_both_hook_points_inner_first(rerun: Rerun) -> None:
    body = LOWERING + '    torch.compile(lambda x: torch.relu(x).sum(), options={"max_autotune": False})(torch.ones(3))'
    _, regions = rerun(body)
    assert [(region.hook, region.failed) for region in regions] == [("aot", "compile"), ("dynamo", "compile")]
    inner, outer = regions
    assert targets(inner)[0] == "torch.ops.aten.relu.default"
    assert targets(outer)[0] == "torch.relu"
    for region in regions:
        assert region.recipe.backend is None
        assert region.recipe.options["max_autotune"].text == "False"


@pytest.mark.parametrize(
    ("text", "contexts"),
    [
        ("torch.no_grad()", ("torch.no_grad()",)),
        ("torch.inference_mode()", ("torch.no_grad()",)),  # what Dynamo makes of it while it compiles
        ('torch.autocast("cpu", dtype=torch.bfloat16)', ('torch.autocast("cpu", dtype=torch.bfloat16)',)),
        ("torch.enable_grad()", ()),
    ],
)
def test_contexts_around_the_call(rerun: Rerun, text: str, contexts: tuple[str, ...]) -> None:
    _, (region,) = rerun(BACKEND + f"    with {text}:\n        torch.compile(lambda x: x + 1, backend=mine)(torch.ones(3))")
    assert region.recipe.contexts == contexts


def test_the_context_of_a_call_that_fails(rerun: Rerun) -> None:
    body = BACKEND.replace("raise", "return lambda *args: 1 / 0 #") + "    with torch.inference_mode():\n"
    _, (region,) = rerun(body + "        torch.compile(lambda x: x + 1, backend=mine)(torch.ones(3))")
    assert (region.failed, region.recipe.contexts) == ("run", ("torch.inference_mode()",))


def test_settings_in_force(rerun: Rerun) -> None:
    body = """
        torch._inductor.config.cpp.simdlen = 1
        torch.set_default_dtype(torch.float64)
        torch.compile(lambda x: x + 1, backend=mine)(torch.ones(3))
    """
    _, (region,) = rerun(textwrap.dedent(BACKEND) + textwrap.dedent(body))
    assert {name: held.text for name, held in region.recipe.config.items()} == {"torch._inductor.config.cpp.simdlen": "1"}
    assert region.recipe.setup == ("torch.set_default_dtype(torch.float64)",)


def test_a_compiled_call_that_raises_comes_with_its_inputs(rerun: Rerun) -> None:
    body = """
        def mine(gm, inputs):
            def run(x, n):
                if n.sum() == 14: raise AssertionError("in the call")
                return gm(x, n)
            return run
        f = torch.compile(lambda x, n: x[n], backend=mine)
        for last in (1, 2, 3, 3):
            try:
                f(torch.arange(10.0), torch.tensor([0, 11 if last == 3 else 1, last]) % 10)
            except (AssertionError, IndexError): pass
        f(torch.arange(10.0), torch.tensor([5, 9, 0]))
    """
    outcome, regions = rerun(body)
    assert outcome.status == "raised"
    assert "in the call" in outcome.text
    # the graph had worked before: a later call comes with its own inputs, without what was called before it
    (later,) = regions
    assert (later.hook, later.failed) == ("dynamo", "run")
    assert array("q", (later.blobs / "l_n_.bin").read_bytes()).tolist() == [5, 9, 0]
    outcome, (region,) = rerun(body.replace("for last in (1, 2, 3, 3)", "for last in ()"))
    assert (region.hook, region.failed) == ("dynamo", "run")
    assert array("q", (region.blobs / "l_n_.bin").read_bytes()).tolist() == [5, 9, 0]


def test_a_healthy_program_leaves_nothing(rerun: Rerun) -> None:
    body = "torch.compile(lambda x: torch.relu(x) + 1, backend='aot_eager')(torch.ones(3))\nassert tracker.calls == 1\n"
    for options in ({}, {"check": True}, {"beforehand": True}):
        outcome, regions = rerun(body, **options)
        assert (outcome.status, regions) == ("ok", ()), outcome.text


def test_inputs_that_cannot_be_copied_are_not_compared(rerun: Rerun) -> None:
    """A kind of tensor may refuse it where it is called: the program ends as it does by itself."""
    body = """
        class Tagged(torch.Tensor):
            __torch_function__ = torch._C._disabled_torch_function_impl
            def clone(self, *_, **__): raise TypeError("a tag is not copied")
        def mine(gm, inputs):
            def call(x):
                if x.sum() > 5: raise ValueError("too much")
                return gm(x)
            return call
        f = torch.compile(lambda x: x * 2, backend=mine)
        f(torch.ones(3).as_subclass(Tagged))
        f(torch.ones(3).as_subclass(Tagged))
    """
    for options in ({}, {"check": True, "later_calls": True}):
        outcome, regions = rerun(body, **options)
        assert (outcome.status, regions) == ("ok", ()), outcome.text
    body = textwrap.dedent(body) + "f(torch.full((3,), 4.0).as_subclass(Tagged))\n"
    outcome, (region,) = rerun(body.replace("f(torch.ones(3).as_subclass(Tagged))\n", ""), check=True)
    assert "ValueError: too much" in outcome.text
    assert (region.hook, region.failed) == ("dynamo", "run")


def test_each_failure_is_written_once_and_every_graph_has_its_own(rerun: Rerun) -> None:
    body = """
        for n in range(6):
            f = torch.compile(lambda x, n=n: x + n, backend=mine)
            for _ in range(2):
                try:
                    f(torch.ones(3))
                except Exception: pass
            del f
            torch._dynamo.reset()
    """
    _, regions = rerun(textwrap.dedent(BACKEND) + textwrap.dedent(body))
    assert len(regions) == 12, "a failed compile is tried anew at the next call"


WRONG = """
    def mine(gm, inputs):
        return lambda *args: [out + 1 for out in gm(*args)]
"""


def test_wrong_numbers(rerun: Rerun) -> None:
    body = textwrap.dedent(WRONG) + "x = torch.arange(3.0)\nprint(torch.compile(lambda x: torch.relu(x) * 2, backend=mine)(x))\n"
    outcome, (region,) = rerun(body, check=True)
    assert outcome.status == "ok", "looking does not change how the program ends"
    assert (region.hook, region.failed) == ("dynamo", "accuracy")
    outcome, regions = rerun(body.replace("out + 1", "out"), check=True)
    assert (outcome.status, len(regions)) == ("ok", 1)


def test_wrong_numbers_of_a_backend_that_changes_a_body_in_place(rerun: Rerun) -> None:
    """The graph that is compared is the one that it was given, its bodies as well."""
    body = """
    def mine(gm, inputs):
        for module in gm.modules():
            for node in module.graph.nodes if isinstance(module, torch.fx.GraphModule) else ():
                node.target = torch.cos if node.target is torch.sin else node.target
            module.recompile()
        return gm.forward
    def f(x):
        return torch.cond(x.sum() > 0, lambda x: torch.sin(x), lambda x: torch.tanh(x), (x,))
    torch.compile(f, backend=mine)(torch.ones(3))
"""
    outcome, (region,) = rerun(body, check=True)
    assert outcome.status == "ok"
    assert (region.hook, region.failed) == ("dynamo", "accuracy")
    assert region.graph is not None
    called = [node["target"] for _, inner in region.graph["bodies"] for node in inner["nodes"]]
    assert "torch.sin" in called
    assert "torch.cos" not in called


@pytest.mark.parametrize(("later_calls", "calls", "found"), [(True, 4, True), (False, 4, False), (True, 1, False), (True, 3, False)])
def test_wrong_numbers_behind_the_first_call(rerun: Rerun, later_calls: bool, calls: int, found: bool) -> None:
    """As the steps behind the first one of a cache: wrong where an input is large."""
    body = f"""
        def mine(gm, inputs):
            return lambda *args: [out + (out > 5) for out in gm(*args)]
        f = torch.compile(lambda x: torch.relu(x) * 2, backend=mine)
        for number in range({calls}):
            f(torch.full((3,), float(number)))
    """
    outcome, regions = rerun(body, check=True, later_calls=later_calls)
    assert outcome.status == "ok", outcome.text
    assert [region.failed for region in regions] == ["accuracy"] * found
    for region in regions:
        assert region.graph is not None
        (given,) = graph_from_json(region.graph).inputs
        assert given.meta.shape == (3,)


def test_what_is_written_to_an_input_is_returned_by_the_graph_that_is_kept(rerun: Rerun) -> None:
    body = """
        def mine(gm, inputs):
            def call(*args):
                out = gm(*args)
                for one in args: one.add_(1)
                return out
            return call

        def f(x, y):
            y.mul_(x)
            return x * 2
        torch.compile(f, backend=mine)(torch.arange(3.0), torch.ones(3))
    """
    outcome, (region,) = rerun(body, check=True)
    assert (outcome.status, region.failed, region.wrong) == ("ok", "accuracy", (1,)), outcome.text
    assert region.graph is not None
    graph = graph_from_json(region.graph)
    _, written = refs(graph.output)
    assert written in {item.name for item in graph.inputs}


def test_wrong_shapes(rerun: Rerun) -> None:
    body = textwrap.dedent(WRONG).replace("out + 1", "out[:2]") + "torch.compile(lambda x: x * 2, backend=mine)(torch.arange(3.0))\n"
    outcome, (region,) = rerun(body, check=True)
    assert (outcome.status, region.failed) == ("ok", "accuracy"), outcome.text


def test_a_program_that_dies_in_the_compiler_leaves_its_graph(rerun: Rerun) -> None:
    body = "import os\ndef mine(gm, inputs): os.abort()\ntorch.compile(lambda x: x * 3, backend=mine)(torch.ones(3))\n"
    outcome, (region,) = rerun(body, beforehand=True)
    assert outcome.status == "signal"
    assert (region.hook, region.failed, targets(region)) == ("dynamo", "pending", ["mul"])


def test_a_call_that_fails_after_others_that_worked(rerun: Rerun) -> None:
    body = """
    def mine(gm, inputs):
        def call(x):
            if x.sum() > 10:
                raise ValueError("too much")
            return gm(x)
        return call
    f = torch.compile(lambda x: x * 2, backend=mine)
    for size in (1.0, 2.0, 30.0):
        f(torch.full((3,), size))
    """
    outcome, (region,) = rerun(body)
    assert "ValueError: too much" in outcome.text
    assert (region.hook, region.failed) == ("dynamo", "run")
    (held,) = region.blobs.glob("*.bin")
    assert held.read_bytes() == struct.pack("3f", 30.0, 30.0, 30.0), "of the call that failed"


def test_a_program_that_dies_in_its_first_call_leaves_its_graph(rerun: Rerun) -> None:
    body = "import os\ndef mine(gm, inputs): return lambda *args: os.abort()\ntorch.compile(lambda x: x * 3, backend=mine)(torch.ones(3))\n"
    _, (region,) = rerun(body, beforehand=True)
    assert (region.hook, region.failed) == ("dynamo", "pending")


def test_the_backward_graph(rerun: Rerun) -> None:
    body = """
        def broken(*_): raise AssertionError("backward")
        from torch._inductor import lowering
        lowering.register_lowering(torch.ops.aten.sin.default)(broken)
        x = torch.ones(3, requires_grad=True)
        torch.compile(lambda x: x.cos().sum())(x).backward()
    """
    _, regions = rerun(body, stubs="import torch._inductor.graph\ntorch._functorch.config.bundled_autograd_cache = False")
    inner = [region for region in regions if region.hook == "aot"]
    assert inner[0].backward
    assert "torch.ops.aten.sin.default" in targets(inner[0])


def test_a_reader_that_fails_does_not_hide_the_failure(rerun: Rerun) -> None:
    stubs = "from torch_minify_inside.capture import fx_reader\ndef no(*_, **__): raise KeyError('ours')\nfx_reader.read_graph = no"
    outcome, (region,) = rerun(BACKEND + "    torch.compile(lambda x: x + 1, backend=mine)(torch.ones(3))", stubs=stubs)
    assert "AssertionError: mine" in outcome.text
    assert "KeyError" not in outcome.text
    assert (region.graph, region.reason) == (None, "KeyError: 'ours'")


EXPORT = """
    class Twice(torch.nn.Module):
        def forward(self, x): return x * 2
    program = torch.export.export(Twice(), (torch.ones(3),))
    path = torch._inductor.aoti_compile_and_package(program, inductor_configs={"max_autotune": True})
    print(torch._inductor.aoti_load_package(path)(torch.ones(3)))
"""


@pytest.mark.parametrize(
    ("compiles", "loads", "failed"),
    [
        ("raise AssertionError('package')", "", "compile"),
        ("return 'a.pt2'", "raise AssertionError('package')", "run"),
        ("return 'a.pt2'", "def call(x): raise AssertionError('package')\n    return call", "run"),
        ("return 'a.pt2'", "return lambda x: x * 3", "accuracy"),
        ("return 'a.pt2'", "return lambda x: x * 2", None),
    ],
)
def test_packages(rerun: Rerun, compiles: str, loads: str, failed: str | None) -> None:
    stubs = (
        f"def compiles(*_, **__):\n    {compiles}\n"
        f"def loads(*_, **__):\n    {loads or 'pass'}\n"
        "torch._inductor.aoti_compile_and_package, torch._inductor.aoti_load_package = compiles, loads\n"
    )
    outcome, regions = rerun(EXPORT, check=True, stubs=stubs)
    assert [(region.hook, region.failed) for region in regions] == ([("aoti", failed)] if failed else [])
    assert (outcome.status == "raised") is ("AssertionError" in compiles + loads), outcome.text
    for region in regions:
        assert region.recipe.options["max_autotune"].text == "True"
        assert targets(region) == ["torch.ops.aten.mul.Tensor"]


@pytest.mark.parametrize(
    ("loads", "failed"), [("return lambda x: x * 3", "accuracy"), ("return lambda x: x * 2", None), ("raise KeyError", None)]
)
def test_a_package_that_the_program_never_loads_is_compared_all_the_same(rerun: Rerun, loads: str, failed: str | None) -> None:
    stubs = (
        f"def compiles(program, *, package_path=None, inductor_configs=None): return 'a.pt2'\n"
        f"def loads(path):\n    {loads}\n"
        "torch._inductor.aoti_compile_and_package, torch._inductor.aoti_load_package = compiles, loads\n"
    )
    outcome, regions = rerun(EXPORT.replace("torch._inductor.aoti_load_package(path)(torch.ones(3))", "path"), check=True, stubs=stubs)
    assert outcome.status == "ok", outcome.text
    assert [(region.hook, region.failed) for region in regions] == ([("aoti", failed)] if failed else [])


COUNTING = """
    class Counts(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("count", torch.zeros(()))
        def forward(self):
            self.count += 1
            return self.count + 0
    program = torch.export.export(Counts(), ())
    path = torch._inductor.aoti_compile_and_package(program)
    first = torch._inductor.aoti_load_package(path)()
    assert (first, program.module()()) == (1, 1), first
"""


@pytest.mark.parametrize("starts", [0, 1])
def test_a_package_that_keeps_a_state_is_compared_as_it_is_made(rerun: Rerun, starts: int) -> None:
    """A call of it, or of the program, changes what the next one gives."""
    stubs = (
        "import itertools\nimport torch._inductor\n"
        "def loads(path):\n"
        f"    counts = itertools.count({starts} + 1)\n"
        "    return lambda: torch.tensor(float(next(counts)))\n"
        "torch._inductor.aoti_compile_and_package, torch._inductor.aoti_load_package = lambda *_, **__: 'a.pt2', loads\n"
    )
    outcome, regions = rerun(COUNTING, check=True, stubs=stubs)
    assert [region.failed for region in regions] == ["accuracy"] * starts
    assert (outcome.status == "ok") is (starts == 0), outcome.text


def test_recipe_values_are_plain(rerun: Rerun) -> None:
    """Whatever goes wrong, what is read back has the form that is written down in `bot.engine.capture.region`."""
    body = BACKEND + "    torch.compile(lambda x: x, backend=mine, options={'a': [1, float('nan')], 'b': mine})(torch.ones(3))"
    _, regions = rerun(body)
    values: Any = regions[0].recipe.options if regions else {}
    assert values == {} or values["a"].text == "[1, torch.nan]"


def test_a_graph_is_written_before_the_call_that_leaves_nothing_to_read(rerun: Rerun) -> None:
    """As after an error of a GPU's kernel: what the call was given cannot be read any more."""
    body = """
    def mine(gm, inputs):
        def call(*args):
            args[0].resize_(0)
            raise RuntimeError("CUDA error: device-side assert triggered")
        return call

    torch.compile(lambda x: x.relu() + 1, backend=mine)(torch.tensor([1.5, -2.0]))
    """
    outcome, regions = rerun(body, synchronous=True)
    assert "device-side assert" in outcome.text
    (region,) = [region for region in regions if region.hook == "dynamo"]
    assert region.failed == "run"
    assert targets(region) == ["relu", "add"]
    assert region.graph is not None
    assert region.graph["inputs"][0]["meta"]["shape"] == [2]


def test_decompositions_that_a_program_gives_to_an_exported_program_are_known(rerun: Rerun) -> None:
    body = """
    def mine(x, beta=1.0, threshold=20.0): return x
    class Net(torch.nn.Module):
        def forward(self, x): return torch.nn.functional.softplus(x)
    torch.export.export(Net(), (torch.ones(3),)).run_decompositions({torch.ops.aten.softplus.default: mine})
    raise RuntimeError([one.__name__ for one in tracker.decompositions])
    """
    outcome, _ = rerun(body)
    assert "RuntimeError: ['mine']" in outcome.text
