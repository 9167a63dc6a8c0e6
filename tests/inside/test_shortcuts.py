"""Shortcuts that a version of PyTorch does not allow: no run ends because of one."""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

pytest.importorskip("torch")

from bot.inside.protocol import SHORTCUT_FAILED, Question
from bot.inside.shortcuts import function_at, shortcut
from bot.workers.pool import Pool
from tests.probes import probed

# It needs none of what is changed below, so it fails only where a shortcut lets it.
PROGRAM = """
import torch
print(torch.compile(torch.relu, backend="eager")(torch.ones(3)))
raise KeyError("its own failure")
"""


@pytest.fixture
def started(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[str], Pool]]:
    """Workers whose interpreter runs some code first, as another version of torch would have other code."""
    pools: list[Pool] = []

    def start(code: str) -> Pool:
        (tmp_path / "sitecustomize.py").write_text(textwrap.dedent(code))
        monkeypatch.setenv("PYTHONPATH", str(tmp_path))
        pools.append(Pool(sys.executable, probed(tmp_path / "cache"), tmp_path / "workers.log"))
        return pools[-1]

    yield start
    for pool in pools:
        pool.close()


def logged(pool: Pool) -> list[str]:
    return [line.removeprefix(SHORTCUT_FAILED) for line in pool.log.read_text().splitlines() if line.startswith(SHORTCUT_FAILED)]


@pytest.mark.slow
def test_a_protocol_among_the_classes_of_inductor(started: Callable[[str], Pool]) -> None:
    """As in torch 2.15, where every search ended in this."""
    pool = started("""
        import typing
        import torch._inductor.ir as ir

        class Allocates(typing.Protocol):
            def allocate(self) -> int: ...

        ir.Allocates = Allocates
    """)
    outcome, _ = pool.ask(Question(PROGRAM, limit=100.0))
    assert "KeyError: 'its own failure'" in outcome.text
    assert logged(pool) == []


MOVED = """
    import abc
    import torch._dynamo.backends.registry as registry
    import torch._inductor.codecache as codecache
    import torch._inductor.codegen.common as common
    import torch._inductor.codegen.cpp as cpp
    import torch._inductor.compile_fx as compile_fx
    import torch._inductor.cpp_builder as builder
    import torch._inductor.cpu_vec_isa as isa
    import torch._inductor.fx_passes.joint_graph as joint
    import torch._inductor.graph as graph
    import torch._inductor.ir as ir

    def refuse(*_):
        raise TypeError("not in this torch")

    def lookup(name, lookup=registry.lookup_backend):
        return refuse() if name == "inductor" else lookup(name)

    def other_parameters(source, flags):
        pass

    class Refusing(abc.ABCMeta):
        __subclasscheck__ = refuse

    class Strange(metaclass=Refusing):
        pass

    del builder._run_compile_cmd, codecache.AotCodeCompiler, compile_fx.compile_fx_aot
    for name in ("codegen", "codegen_with_cpp_wrapper", "compile_to_module"):
        delattr(graph.GraphLowering, name)
    ir.Strange = Strange
    joint.lazy_init = refuse
    registry.lookup_backend = lookup
    isa.VecISA.check_build = cpp.CppScheduling.define_kernel = common.CSE.generate = other_parameters
"""


@pytest.mark.slow
def test_nothing_that_saves_time_ends_a_run(started: Callable[[str], Pool]) -> None:
    pool = started(MOVED)
    for task, phase in (("run", "inductor_lowering"), ("run", "inductor_codegen"), ("run", "export"), ("origins", "cpp_compile")):
        outcome, _ = pool.ask(Question(PROGRAM, task, limit=100.0, stop_after=phase))
        assert (outcome.status, "KeyError: 'its own failure'" in outcome.text) == ("raised", True), outcome.text
    assert {line.partition(":")[0] for line in logged(pool)} == {
        "initialize_classes",
        "initialize_dynamo",
        "initialize_passes",
        "leaving the compiler after cpp_compile",
        "leaving the compiler after export",
        "leaving the compiler after inductor_codegen",
        "leaving the compiler after inductor_lowering",
        "remember_compiled",
        "remember_instructions",
        "watching kernels",
        "watching variables",
    }


@pytest.mark.slow
def test_who_cannot_tell_whether_a_fork_is_safe_does_without(started: Callable[[str], Pool]) -> None:
    pool = started("""
        import sys
        import torch

        def is_initialized(of):
            return False

        if "server" in sys.orig_argv:
            torch.mtia.is_initialized = is_initialized
    """)
    outcome, facts = pool.ask(Question("import sys\nprint('OF', sys.argv, sys.orig_argv[2])\n", limit=100.0))
    assert outcome.status == "ok", outcome.text
    assert facts["printed"].endswith("spare\n"), "a fork has its parent's command line"
    assert [line.partition(":")[0] for line in logged(pool)] == ["forking"]


@pytest.mark.slow
def test_packages_share_nothing_where_the_first_one_is_not_noticed(started: Callable[[str], Pool]) -> None:
    pool = started("import torch._inductor.codecache as codecache\ndel codecache.AotCodeCompiler\n")
    outcome, facts = pool.ask(Question("import os\nprint('IN', os.environ['TORCHINDUCTOR_CACHE_DIR'])", limit=100.0))
    assert outcome.status == "ok"
    assert "IN " in facts["printed"]
    assert str(pool.cache) not in facts["printed"]


class Early(BaseException):
    """As the early end of a run."""


def test_only_errors_are_caught(capfd: pytest.CaptureFixture[str]) -> None:
    with shortcut("a guess"):
        raise ValueError("no \udcff")
    with pytest.raises(Early), shortcut("the rest"):
        raise Early
    assert capfd.readouterr().err == f"{SHORTCUT_FAILED}a guess: ValueError: no \\udcff\n"


class Owner:
    def method(self, first: int, second: int = 0) -> int:
        return first + second


def test_a_function_is_known_by_its_parameters() -> None:
    assert function_at(Owner, "method", "self", "first") is Owner.method
    for name, parameters in (("other", ()), ("method", ("self", "second")), ("method", ("self", "first", "second", "third"))):
        with pytest.raises(AttributeError, match=rf"this torch has no Owner\.{name}\("):
            function_at(Owner, name, *parameters)
