"""Leaving the compiler early: a failure up to the phase is seen, what comes after it is not paid for."""

from __future__ import annotations

import textwrap

import pytest

from bot.failure.outcome import Outcome
from bot.inside.protocol import Question
from bot.workers.pool import Pool

# whoever calls the C++ compiler is found out
NO_CPP = """
    import torch, torch._inductor.cpp_builder, torch._inductor.config as config

    def build(*_):
        raise RuntimeError("the C++ compiler was called")

    torch._inductor.cpp_builder.CppBuilder.build = build
"""
HEALTHY = "print(torch.compile(lambda x: torch.relu(x) + 1)(torch.ones(3)))\n"
LOWERING = """
    from torch._inductor import lowering
    @lowering.register_lowering(torch.ops.aten.relu.default)
    def broken(x): raise AssertionError("in lowering")
"""
POST_GRAD = """
    def broken(graph): raise AssertionError("in a pass")
    config.post_grad_custom_post_pass = broken
"""


def ask(pool: Pool, stop_after: str | None, *parts: str) -> Outcome:
    text = "\n".join(textwrap.dedent(part) for part in parts)
    return pool.ask(Question(text, "run", 100.0, stop_after=stop_after))[0]


@pytest.mark.parametrize("phase", ["pre_grad", "aot_autograd", "joint", "post_grad", "inductor_lowering", "inductor_codegen"])
def test_a_healthy_program_stops_before_the_cpp_compiler(pool: Pool, phase: str) -> None:
    outcome = ask(pool, phase, NO_CPP, HEALTHY)
    assert outcome.status == "stopped", outcome.text


def test_what_dynamo_traced_runs_as_it_is(pool: Pool) -> None:
    broken = """
        @torch.compile
        def f(x):
            x = torch.relu(x)
            print("between")
            if x.sum() > 1:
                x = x + 1
            return x

        assert f(torch.ones(3)).tolist() == [2.0, 2.0, 2.0]
    """
    outcome = ask(pool, "dynamo", NO_CPP, broken)
    assert outcome.status == "ok", outcome.text


def test_a_failure_of_dynamo_is_seen_behind_a_graph_break(pool: Pool) -> None:
    breaks = """
        @torch._dynamo.disable
        def between(): pass

        @torch.compile(fullgraph=True)
        def inner(x):
            if x.sum() > 0:
                return x

        @torch.compile
        def f(x):
            x = x + 1
            between()
            return x * 2

        inner(f(torch.ones(3)))
    """
    outcome = ask(pool, "dynamo", NO_CPP, breaks)
    assert outcome.status == "raised"
    assert "Data-dependent branching" in outcome.text


def test_what_was_exported_is_not_packaged(pool: Pool) -> None:
    package = "torch._inductor.aoti_compile_and_package(torch.export.export(torch.nn.ReLU(), (torch.ones(3),)))"
    assert ask(pool, "export", NO_CPP, package).status == "stopped"
    assert ask(pool, "export", NO_CPP, package.replace("ones(3)", "one(3)")).status == "raised"


def test_nothing_between_catches_the_end(pool: Pool) -> None:
    outcome = ask(pool, "inductor_lowering", NO_CPP, "try:\n    torch.compile(torch.relu)(torch.ones(3))\nexcept Exception:\n    pass")
    assert outcome.status == "stopped", outcome.text


def test_without_a_rung_the_cpp_compiler_is_called(pool: Pool) -> None:
    """The other tests of this file can fail."""
    outcome = ask(pool, None, NO_CPP, HEALTHY)
    assert outcome.status == "raised"
    assert "the C++ compiler was called" in outcome.text


@pytest.mark.parametrize(("phase", "bug"), [("inductor_lowering", LOWERING), ("post_grad", POST_GRAD), ("inductor_codegen", LOWERING)])
def test_a_failure_up_to_the_phase_is_seen(pool: Pool, phase: str, bug: str) -> None:
    outcome = ask(pool, phase, NO_CPP, bug, HEALTHY)
    assert outcome.status == "raised"
    assert "AssertionError: in " in outcome.text


def test_a_failure_in_codegen_is_not_seen_before_it(pool: Pool) -> None:
    bug = """
        from torch._inductor.codegen.cpp import CppScheduling
        def broken(*_): raise AssertionError("in codegen")
        CppScheduling.codegen_node = broken
    """
    assert ask(pool, "inductor_codegen", NO_CPP, bug, HEALTHY).status == "raised"
    assert ask(pool, "inductor_lowering", NO_CPP, bug, HEALTHY).status == "stopped"


@pytest.mark.parametrize("phase", ["pre_grad", "aot_autograd", "joint", "post_grad"])
def test_after_the_passes_nothing_is_lowered(pool: Pool, phase: str) -> None:
    outcome = ask(pool, phase, NO_CPP, LOWERING, HEALTHY)
    assert outcome.status == "stopped", outcome.text


CPP_BUG = 'import torch, torch._inductor.config as config\nconfig.cpp.inject_relu_bug_TESTING_ONLY = "compile_error"\n'


@pytest.mark.slow
@pytest.mark.parametrize("phase", ["cpp_compile", None])
def test_a_cpp_error_is_seen_with_its_rung_and_without(pool: Pool, phase: str | None) -> None:
    outcome = ask(pool, phase, CPP_BUG, HEALTHY)
    assert outcome.status == "raised", outcome.text
    assert "CppCompileError" in outcome.text


@pytest.mark.slow
def test_compiled_is_enough_for_the_cpp_rung(pool: Pool) -> None:
    outcome = ask(pool, "cpp_compile", "import torch\nf = torch.compile(lambda x: x + 1)\n", "f(torch.ones(3))\nprint('was run')")
    assert outcome.status == "stopped", outcome.text
    assert "was run" not in outcome.text


AOTI = """
    class Repro(torch.nn.Module):
        def forward(self, x): return torch.relu(x) + 1
    path = torch._inductor.aoti_compile_and_package(torch.export.export(Repro(), (torch.ones(3),)))
    print("was packaged", path)
"""


@pytest.mark.slow
def test_a_cpp_error_in_a_package_is_seen(pool: Pool) -> None:
    broken = ask(pool, "cpp_compile", CPP_BUG, AOTI)
    assert broken.status == "raised", broken.text
    assert "CppCompileError" in broken.text
    healthy = ask(pool, "cpp_compile", "import torch", AOTI)
    assert healthy.status == "stopped", healthy.text
    assert "was packaged" not in healthy.text
    assert healthy.seconds < 60


@pytest.mark.slow
def test_kernels_are_checked_and_not_made(pool: Pool) -> None:
    script = "import torch\nf = lambda x, w: (torch.relu(x) @ w).sin() + %s\nprint(torch.compile(f)(torch.ones(3, 3), torch.ones(3, 3)))\n"

    def made() -> set[str]:
        return {str(file) for file in pool.cache.rglob("*.so")}

    before = made()
    assert ask(pool, "cpp_compile", script % 41).status == "stopped"
    assert made() == before
    assert ask(pool, None, script % 43).status == "ok"
    assert made() > before
