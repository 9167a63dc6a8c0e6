"""Which values went into the code that a compiler refused."""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import Any

import pytest

from bot.inside.protocol import Question
from bot.inside.tasks import origins
from bot.workers.pool import Pool

REPRO = """
    import torch
    import torch._inductor.config as config
    config.cpp.inject_relu_bug_TESTING_ONLY = "compile_error"

    class Repro(torch.nn.Module):
        def forward(self, x, w):
            sin = torch.sin(x)
            mm = torch.mm(sin, w)
            relu = torch.relu(mm)
            exp = torch.exp(relu)
            return exp + 1

    torch.compile(Repro())(torch.ones(4, 4), torch.ones(4, 4))
"""


def asked(pool: Pool, text: str) -> list[list[str]]:
    _, facts = pool.ask(Question(textwrap.dedent(text), "origins", 100.0))
    return list(facts["guesses"])


@pytest.mark.slow
def test_a_cpp_error_points_at_its_operation_and_its_kernel(pool: Pool) -> None:
    first, *_, last = asked(pool, REPRO)
    assert first == ["relu"]
    assert set(last) >= {"exp", "relu", "return"}
    assert "mm" not in last


def test_what_is_no_error_of_generated_code_points_at_nothing(pool: Pool) -> None:
    assert asked(pool, "import torch\nraise KeyError(7)\n") == []


class Node:
    """As a scheduler's node: fused from graph nodes that know their line."""

    def __init__(self, *lines: int) -> None:
        self.node = self
        self.origins = [type("Origin", (), {"meta": {"stack_trace": f'  File "repro.py", line {line}, in forward'}})() for line in lines]


def make(watch: origins._Watch, operation: str, expression: str) -> None:
    """Inductor sets the kernel's variable tmp1."""

    class Held:
        kernel: Any = type("Kernel", (), {"current_node": Node(2, 3)})
        interpreter: Any = type("Interpreter", (), {"current_node": type("Fx", (), {"target": operation})})

    watch.making(lambda _cse, _buffer, _expression: "tmp1", Held)(None, None, expression)


@pytest.fixture
def watch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> origins._Watch:
    monkeypatch.chdir(tmp_path)
    Path("repro.py").write_text("def forward(x):\n    sin = x.sin()\n    relu = sin.relu()\n    return relu + 1\n")
    watch = origins._Watch("repro.py")
    define = watch.defining(lambda _scheduling, _code, _nodes: "triton_poi_fused_relu_sin_0")
    define(None, "def KERNEL(): pass", [Node(2, 3), object()])
    return watch


def test_generated_python_that_python_refuses(watch: origins._Watch, tmp_path: Path) -> None:
    kernel = tmp_path / "cab.py"
    kernel.write_text("def triton_poi_fused_relu_sin_0(x):\n    tmp0 = x\n    tmp1 = compile error!\n")

    make(watch, "relu", "compile error!")
    error = f"RuntimeError: Failed to import {kernel}\nSyntaxError: invalid syntax (cab.py, line 3)\n"
    assert watch.guesses(error) == [["relu"], ["relu", "sin"]]


@pytest.mark.parametrize(("written", "found"), [("tmp1 = compile error!", ["relu"]), ("tmp1 = relu(tmp1)", ["sin"])])
def test_of_the_variables_of_one_name_the_one_that_is_set_in_the_line_is_meant(
    watch: origins._Watch, tmp_path: Path, written: str, found: list[str]
) -> None:
    kernel = tmp_path / "k.cpp"
    kernel.write_text(f"{{\n    auto {written};\n}}\n")
    make(watch, "sin", "relu(tmp1)")
    make(watch, "relu", "compile error!")
    assert watch.guesses(f"{kernel}:2:5: error: expected\n")[0] == found


@pytest.mark.parametrize(
    "error",
    [
        "CompilationError: at 3:4\ndef triton_poi_fused_relu_sin_0(in_ptr0):\n",
        "Failed to import /nowhere.py\nSyntaxError: x (nowhere.py, line 3)",
        "",
    ],
)
def test_other_errors(watch: origins._Watch, error: str) -> None:
    assert watch.guesses(error) == ([["relu", "sin"]] if "def triton" in error else [])
