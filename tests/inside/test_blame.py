"""Which operations went into the code that a compiler refused, as Inductor makes it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from bot.inside import blame


class Node:
    """As a scheduler's node: fused from graph nodes of these names."""

    def __init__(self, *names: str) -> None:
        self.node = self
        self.origins = [type("Origin", (), {"name": name})() for name in names]


def make(watch: blame.Blame, operation: str, expression: str) -> None:
    """Inductor sets the kernel's variable tmp1."""

    class Held:
        kernel: Any = type("Kernel", (), {"current_node": Node("sin", "relu")})
        interpreter: Any = type("Interpreter", (), {"current_node": type("Fx", (), {"target": operation})})

    watch.making(lambda _cse, _buffer, _expression: "tmp1", Held)(None, None, expression)


@pytest.fixture
def watch() -> blame.Blame:
    watch = blame.Blame(blame.node_names)
    define = watch.defining(lambda _scheduling, _code, _nodes: "triton_poi_fused_relu_sin_0")
    define(None, "def KERNEL(): pass", [Node("sin", "relu"), object()])
    return watch


def test_generated_python_that_python_refuses(watch: blame.Blame, tmp_path: Path) -> None:
    kernel = tmp_path / "cab.py"
    kernel.write_text("def triton_poi_fused_relu_sin_0(x):\n    tmp0 = x\n    tmp1 = compile error!\n")

    make(watch, "relu", "compile error!")
    error = f"RuntimeError: Failed to import {kernel}\nSyntaxError: invalid syntax (cab.py, line 3)\n"
    assert watch.guesses(error) == [["relu"], ["relu", "sin"]]


@pytest.mark.parametrize(("written", "found"), [("tmp1 = compile error!", ["relu"]), ("tmp1 = relu(tmp1)", ["sin"])])
def test_of_the_variables_of_one_name_the_one_that_is_set_in_the_line_is_meant(
    watch: blame.Blame, tmp_path: Path, written: str, found: list[str]
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
def test_other_errors(watch: blame.Blame, error: str) -> None:
    assert watch.guesses(error) == ([["relu", "sin"]] if "def triton" in error else [])


def test_another_graph_is_another_matter(watch: blame.Blame) -> None:
    watch.forget()
    assert watch.guesses("def triton_poi_fused_relu_sin_0(in_ptr0):\n") == []
