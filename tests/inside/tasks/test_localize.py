"""Where wrong numbers begin, and which of them reach an output."""

from __future__ import annotations

import textwrap
from typing import Any

import pytest

pytest.importorskip("torch")

from bot.inside.protocol import Question
from bot.inside.tasks import localize
from bot.workers.pool import Pool

# The backend computes `relu` and `log1p` wrongly, as the compiler does under its testing hooks.
WRONG = """
    def wrong(gm, inputs):
        for node in gm.graph.nodes:
            if node.target in (torch.relu, torch.log1p):
                with gm.graph.inserting_after(node):
                    more = gm.graph.call_function(torch.add, (node, AMOUNT))
                node.replace_all_uses_with(more)
                more.args = (node, AMOUNT)
        gm.recompile()
        return gm
"""
MODULE = """
    class Repro(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = torch.nn.Parameter(torch.full((8,), 2.0))

        def forward(self, x):
            log1p = torch.log1p(x)
            sign = torch.sign(log1p)
            scaled = sign * self.weight
            relu = torch.relu(x - 1)
            return (scaled, relu * 3)

    x = torch.arange(1.0, 9.0)
"""
CALL = "torch.testing.assert_close(torch.compile(Repro(), backend={})(x), Repro()(x))\n"


def ask(pool: Pool, *parts: str, **more: Any) -> dict[str, Any]:
    text = "import torch\n" + "\n".join(textwrap.dedent(part) for part in parts)
    outcome, facts = pool.ask(Question(text, "localize", 100.0, **more))
    return {
        "status": outcome.status,
        "first": facts.get("first"),
        "wrong": facts.get("wrong"),
        "harmless": facts.get("harmless"),
        "text": outcome.text,
    }


def test_forward_is_compiled_as_the_script_says() -> None:
    text = "class Repro:\n    def forward(self, x: int):\n        return x\n"
    for first, annotation in (("", int), ("from __future__ import annotations\n", "int")):
        program = localize._Program(first + text, "repro.py")
        for form in (program.kept({}), program.returning([], {})):
            assert form.__annotations__ == {"x": annotation}


def test_a_harmless_difference_and_the_one_that_matters(pool: Pool) -> None:
    found = ask(pool, "AMOUNT = 1.0", WRONG, MODULE, CALL.format("wrong"))
    assert (found["status"], found["first"], found["harmless"]) == ("ok", ["log1p", "relu"], ["log1p"]), found["text"]


def test_a_difference_within_the_tolerance_is_none(pool: Pool) -> None:
    parts = ("AMOUNT = 0.02", WRONG, MODULE, CALL.format("wrong"))
    assert ask(pool, *parts, tolerance=(0.1, 0.1))["first"] == []
    assert ask(pool, *parts, tolerance=(1e-3, 1e-3))["first"] == ["log1p", "relu"]


def test_what_is_returned_directly(pool: Pool) -> None:
    found = ask(pool, "AMOUNT = 1.0", WRONG, MODULE.replace("relu * 3", "torch.relu(x + 1)"), CALL.format("wrong"))
    assert found["first"] == ["log1p", "relu", "return"], found["text"]


RAISES = "def wrong(gm, inputs):\n    raise AssertionError('no')\n"
NO_FORWARD = MODULE.replace("Repro", "Other") + "\n    Repro = Other"


@pytest.mark.parametrize(
    ("parts", "status"),
    [((RAISES, MODULE, CALL.format("wrong")), "raised"), ((MODULE, "raise KeyError"), "raised"), ((NO_FORWARD, "x.sum()"), "ok")],
)
def test_nothing_is_said_of_a_script_that_does_not_get_there(pool: Pool, parts: tuple[str, ...], status: str) -> None:
    found = ask(pool, *parts)
    assert (found["status"], found["first"], found["harmless"]) == (status, [], []), found["text"]


@pytest.mark.slow
def test_what_inductor_computes_wrongly(pool: Pool) -> None:
    bugs = """
        import torch._inductor.config as config
        config.cpp.inject_relu_bug_TESTING_ONLY = config.cpp.inject_log1p_bug_TESTING_ONLY = "accuracy"
    """
    found = ask(pool, bugs, MODULE, CALL.format('"inductor"'))
    assert (found["status"], found["first"], found["harmless"]) == ("ok", ["log1p", "relu"], ["log1p"]), found["text"]


ROUNDED = """
    class Repro(torch.nn.Module):
        def forward(self, x):
            large = x + 1000
            back = large - 1000
            relu = torch.relu(back)
            return relu * 3

    x = torch.linspace(0, 1, 2000, dtype=torch.float16)
"""
# It keeps more digits than eager: far from eager, and nearer to float64.
FINER = """
    def finer(gm, inputs):
        def call(x):
            return [out.half() if isinstance(out, torch.Tensor) else {k: v.half() for k, v in out.items()} for out in gm(x.float())]
        return call
"""


@pytest.mark.parametrize(("planted", "first"), [(False, []), (True, ["relu"])])
def test_where_eager_itself_is_off_the_ratio_of_the_errors_decides(pool: Pool, planted: bool, first: list[str]) -> None:
    backend = FINER.replace("gm(x.float())", "wrong(gm, inputs)(x.float())") if planted else FINER
    found = ask(pool, "AMOUNT = 20.0", WRONG, backend, ROUNDED, CALL.format("finer"))
    assert (found["status"], found["first"]) == ("ok", first), found["text"]
    assert found["wrong"] == [*first, *(["return"] if planted else [])]


def long(middle: str, setup: str = "") -> str:
    """A module of 81 statements, with these in the middle, from `v39` to `v42`."""
    before = [f"v{i} = torch.add({'x' if i == 0 else f'v{i - 1}'}, 1)" for i in range(40)]
    after = [f"v{i} = v{i - 1} - 1" for i in range(43, 80)]
    body = "\n".join("        " + line for line in [*before, *middle.splitlines(), *after, "return (v79, v7 + v20)"])
    head = "class Repro(torch.nn.Module):\n    def forward(self, x):\n"
    return f"{setup}{head}{body}\n\nx = torch.linspace(0.0, 2.0, 9)\n"


# The error is in `v41` each time, and most of what comes before or after it is not looked at.
MIDDLES = {
    "plain": "v40 = v39 * 2\nv41 = torch.relu(v40)\nv42 = v41 - v30",
    "changed in place": "v40 = v39 * 2\nv41 = torch.relu(v40)\nv42 = v41 - v39.add_(1)",
    "random numbers": "v40 = torch.nn.functional.dropout(v39)\nv41 = torch.relu(v40)\nv42 = v41 - torch.rand(9)",
}


@pytest.mark.parametrize("middle", MIDDLES.values(), ids=list(MIDDLES))
def test_the_beginning_alone_is_found_among_few_values(pool: Pool, middle: str) -> None:
    found = ask(pool, "AMOUNT = 1.0", WRONG, long(middle), CALL.format("wrong"), beginning=True)
    assert (found["status"], found["first"], found["harmless"]) == ("ok", ["v41"], []), found["text"]
    assert found["wrong"][-1] == "v47", "what comes behind is not compared"


def test_a_beginning_in_a_window(pool: Pool) -> None:
    """What is in front of it is not compared, nor what is behind it."""
    for window, first in (((0, 40), []), ((32, 48), ["v41"]), ((48, 60), []), ((400, 464), [])):
        found = ask(pool, "AMOUNT = 1.0", WRONG, long(MIDDLES["plain"]), CALL.format("wrong"), beginning=True, window=window)
        assert (found["status"], found["first"]) == ("ok", first), found["text"]


NEVER = """
    def never(x):
        raise AssertionError("run")
"""


@pytest.mark.parametrize(("window", "first"), [((0, 40), []), ((32, 42), ["v41"])])
def test_what_follows_a_window_is_run_only_to_see_what_the_error_reaches(pool: Pool, window: tuple[int, int], first: list[str]) -> None:
    text = long(MIDDLES["plain"]).replace("v60 = v59 - 1", "v60 = never(v59)")
    found = ask(pool, "AMOUNT = 1.0", WRONG, NEVER, text, CALL.format("wrong"), beginning=True, window=window)
    if first:
        assert (found["status"], "AssertionError: run" in found["text"]) == ("raised", True)
    else:
        assert (found["status"], found["first"]) == ("ok", []), found["text"]


# `relu` is wrong by half, of numbers that an absolute tolerance passes; only their sum is beyond it.
SMALL = """
    class Repro(torch.nn.Module):
        def forward(self, x):
            small = x * 2
            relu = torch.relu(small)
            whole = relu.sum()
            return whole * 3

    def half(gm, inputs):
        for node in gm.graph.nodes:
            if node.target is torch.relu:
                with gm.graph.inserting_after(node):
                    more = gm.graph.call_function(torch.mul, (node, 1.5))
                node.replace_all_uses_with(more)
                more.args = (node, 1.5)
        gm.recompile()
        return gm

    x = torch.full((100_000,), 1e-6)
"""


@pytest.mark.parametrize("beginning", [False, True])
def test_what_is_wrong_of_small_numbers_is_where_an_error_begins(pool: Pool, beginning: bool) -> None:
    found = ask(pool, SMALL, CALL.format("half"), tolerance=(1e-3, 1e-3), beginning=beginning)
    assert found["first"] == ["relu"]
    assert found["harmless"] == []
    assert "small" not in found["wrong"]


def test_a_beginning_that_reaches_no_output_is_harmless(pool: Pool) -> None:
    middle = "v40 = torch.log1p(v39 + 2)\nv41 = torch.sign(v40)\nv42 = v41 * v39"
    found = ask(pool, "AMOUNT = 1.0", WRONG, long(middle), CALL.format("wrong"), beginning=True)
    assert found["first"] == found["harmless"], found["text"]


def test_a_beginning_among_what_is_returned(pool: Pool) -> None:
    text = long("v40 = v39\nv41 = v40\nv42 = v41").replace("v7 + v20", "torch.relu(v7 - v20)")
    found = ask(pool, "AMOUNT = 1.0", WRONG, text, CALL.format("wrong"), beginning=True)
    assert found["first"] == ["return"], found["text"]


def test_statements_that_cannot_be_compiled_alone_are_passed_over(pool: Pool) -> None:
    refusing = WRONG.replace("for node in gm", "assert 'v3' not in [n.name for n in gm.graph.nodes]\n        for node in gm")
    found = ask(pool, "AMOUNT = 1.0", refusing, long(MIDDLES["plain"]), CALL.format("wrong"), beginning=True)
    assert found["first"] == ["v41"], found["text"]


def test_an_error_of_the_whole_graph_alone_has_no_beginning(pool: Pool) -> None:
    only = WRONG.replace("for node in gm", "for node in () if len(gm.graph.nodes) < 70 else gm")
    found = ask(pool, "AMOUNT = 1.0", only, long(MIDDLES["plain"]), CALL.format("wrong"), beginning=True)
    assert (found["status"], found["first"], found["wrong"]) == ("ok", [], []), found["text"]
