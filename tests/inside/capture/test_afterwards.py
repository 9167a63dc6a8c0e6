"""Comparing what was compiled when the program has ended: what is found, and what that must not change about how it ended."""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

from bot.engine.capture.region import Capture  # noqa: E402
from bot.engine.capture.run import STACKS, Watch, capture  # noqa: E402
from bot.engine.target import Target  # noqa: E402
from bot.inside.capture.afterwards import Afterwards  # noqa: E402
from bot.inside.capture.captured_graph import CapturedGraph  # noqa: E402
from bot.models.failure import Kind  # noqa: E402
from bot.workers.process import Patience  # noqa: E402

pytestmark = pytest.mark.slow  # an interpreter with torch for each

# A backend whose compiled code is called by the program once: a second call is that of the comparison.
COUNTED = """
    import os, time, torch
    calls = []
    def mine(gm, inputs):
        def call(*args):
            calls.append(1)
            if len(calls) > 1: later()
            return gm(*args)
        return call
    f = torch.compile(lambda x: torch.relu(x) + 1, backend=mine)
"""
WRONG = """
    import torch
    def mine(gm, inputs): return lambda *args: [one * FACTOR for one in gm(*args)]
    def run(x): return torch.compile(lambda x: torch.relu(x) + 1, backend=mine)(x)
"""


@pytest.fixture
def ended(tmp_path: Path) -> Callable[..., Capture]:
    def run(begin: str, body: str, own: float = 100.0) -> Capture:
        script = tmp_path / "fail.py"
        script.write_text(textwrap.dedent(begin) + "\n" + textwrap.dedent(body))
        watch = Watch(tmp_path / "out", tmp_path / "cache", afterwards=True)
        return capture(Target(script, None, ()), sys.executable, tmp_path, watch, Patience(own, stacks=STACKS))

    return run


def test_wrong_numbers_of_a_program_that_ends_well(ended: Callable[..., Capture]) -> None:
    found = ended(WRONG.replace("FACTOR", "1.5"), "run(torch.randn(8))")
    assert (found.outcome.status, found.signature, found.regions) == ("ok", None, ())
    assert found.compared is not None
    assert [(region.hook, region.failed) for region in found.compared] == [("dynamo", "accuracy")]
    assert found.errors is not None
    assert found.errors[0] > found.errors[1]


def test_numbers_that_are_right(ended: Callable[..., Capture]) -> None:
    assert ended(WRONG.replace("FACTOR", "1"), "run(torch.randn(8))").compared == ()


def test_the_programs_own_tolerance_decides(ended: Callable[..., Capture]) -> None:
    begin = WRONG.replace("FACTOR", "1.00002")  # PyTorch's rule lets that pass
    found = ended(begin, "x = torch.randn(8)\ntorch.testing.assert_close(run(x), torch.relu(x) + 1, rtol=1e-6, atol=1e-6)")
    assert found.signature is not None
    assert found.signature.kind is Kind.ACCURACY
    assert found.compared is not None
    assert [region.rule.tolerance for region in found.compared] == [(1e-6, 1e-6)]


@pytest.mark.parametrize(("said", "rules"), [("assert out.tolist() == [2, 2, 2]", [(True, None)]), ("", [])])
def test_whole_numbers_count_where_the_program_says_that_they_are_wrong(
    ended: Callable[..., Capture], said: str, rules: list[tuple[bool, None]]
) -> None:
    begin = """
        import torch
        def mine(gm, inputs): return lambda *args: [one + 1 for one in gm(*args)]
        out = torch.compile(lambda x: x * 2, backend=mine)(torch.ones(3, dtype=torch.int32))
    """
    found = ended(begin, said)
    assert found.compared is not None
    assert [(region.rule.strict, region.rule.tolerance) for region in found.compared] == rules


PACKAGE = """
    import os, torch
    import torch._inductor.config as config

    config.cpp.inject_relu_bug_TESTING_ONLY = "accuracy"

    class Net(torch.nn.Module):
        def forward(self, x): return torch.relu(x) * 2

    with torch.no_grad():
        path = torch._inductor.aoti_compile_and_package(torch.export.export(Net(), (torch.ones(4),)), package_path="net.pt2")
"""
LOADED = "model = torch._inductor.aoti_load_package(path)"
USES = {
    "never loaded": "os.remove(path)",
    "loaded": f"{LOADED}\nprint(model(torch.ones(4)))",
    "said to be wrong": f"{LOADED}\nassert model(torch.ones(4)).tolist() == [2.0] * 4",
}


@pytest.mark.parametrize("use", USES.values(), ids=USES)
def test_a_package_is_compared_when_the_program_has_ended(ended: Callable[..., Capture], use: str) -> None:
    """It is made once. To compare it in another run takes as long as the first."""
    found = ended(PACKAGE, use)
    assert found.compared is not None
    assert [(region.hook, region.failed) for region in found.compared] == [("aoti", "accuracy")]


def test_a_package_without_example_inputs_that_is_never_called_is_not_compared(ended: Callable[..., Capture]) -> None:
    body = "program = torch.export.export(torch.nn.ReLU(), (torch.ones(4),))\nprogram.example_inputs = None\n"
    assert ended("import torch", body + "torch._inductor.aoti_compile_and_package(program)").compared is None


def test_the_modes_of_the_call_are_those_of_the_comparison(ended: Callable[..., Capture]) -> None:
    """A product in a small type is wrong only beside one in that type."""
    body = """
        with torch.no_grad(), torch.autocast("cpu", dtype=torch.bfloat16):
            torch.compile(lambda a: a @ a, backend="aot_eager")(torch.randn(64, 64))
    """
    assert ended("import torch", body).compared == ()


RANDOM = "torch.compile(lambda x: torch.dropout(x, 0.5, True))(torch.ones(8))"
FORKS = """
    import os
    if os.fork() == 0:
        run(torch.ones(8))
    else:
        os.wait()
"""


@pytest.mark.parametrize("body", [RANDOM, FORKS], ids=["random numbers", "a process that it started"])
def test_what_cannot_be_told_at_the_end(ended: Callable[..., Capture], body: str) -> None:
    assert ended(WRONG.replace("FACTOR", "1"), body).compared is None


@pytest.mark.parametrize("later", ["os.abort()", "raise ValueError('twice')", "time.sleep(1000)", "os._exit(3)"])
def test_what_happens_while_comparing_is_not_the_programs_end(ended: Callable[..., Capture], later: str) -> None:
    found = ended(COUNTED, f"def later(): {later}\nf(torch.randn(8))", own=20.0)
    assert (found.outcome.status, found.signature, found.compared) == ("ok", None, None)
    assert found.outcome.seconds < 20.0


def test_a_compiler_that_fails_is_not_compared(ended: Callable[..., Capture]) -> None:
    body = """
        def mine(gm, inputs): raise KeyError("mine")
        torch.compile(lambda x: x + 1, backend=mine)(torch.ones(3))
    """
    found = ended("import torch", body)
    assert found.compared is None
    assert [region.failed for region in found.regions] == ["compile"]


def test_no_more_is_held_than_the_memory_allows(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = torch.fx.symbolic_trace(lambda x: x + 1)
    region = CapturedGraph("dynamo", graph, None, {})
    kept = Afterwards()
    kept.keep(region, graph, [torch.ones(8)], boxed=False)
    assert kept.whole
    monkeypatch.setattr("bot.inside.capture.afterwards.MOST", 60)
    kept.keep(region, graph, [torch.ones(8)], boxed=False)
    assert not kept.whole


def test_no_error_of_ours_is_the_programs(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken() -> None:
        raise AttributeError("this torch has none of that name")

    monkeypatch.setattr("bot.inside.capture.recipe.setup", broken)
    graph = torch.fx.symbolic_trace(lambda x: x + 1)
    kept = Afterwards()
    kept.keep(CapturedGraph("dynamo", graph, None, {}), graph, [torch.ones(8)], boxed=False)
    assert not kept.whole
