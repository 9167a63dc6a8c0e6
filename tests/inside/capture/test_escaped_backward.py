"""What leaves the compiler in a backward, before a graph is called."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

torch: Any = pytest.importorskip("torch")

from bot.inside.capture.escaped import Escaped, watch_backward  # noqa: E402
from bot.inside.protocol import ESCAPED_FILE  # noqa: E402


def noted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, second: Any) -> str:
    """What is written down of a program that catches what `second` raises, which is given the first gradient and what it is of."""
    for owner in (torch.autograd, torch.autograd.graph):
        monkeypatch.setattr(owner, "_engine_run_backward", owner._engine_run_backward)
    watch_backward(Escaped(str(tmp_path)))
    torch._dynamo.reset()
    x = torch.ones(2, requires_grad=True)
    y = torch.compile(lambda x: x**3, backend="aot_eager")(x).sum()
    (gradient,) = torch.autograd.grad(y, x, create_graph=True)
    with pytest.raises(RuntimeError):
        second(y, gradient, x)
    path = tmp_path / ESCAPED_FILE
    return json.loads(path.read_text(encoding="utf-8"))["text"] if path.exists() else ""


@pytest.mark.parametrize(
    "second",
    [lambda y, gradient, x: torch.autograd.grad(gradient.sum(), x), lambda y, gradient, x: gradient.sum().backward()],
    ids=["grad", "backward"],
)
def test_a_second_derivative_that_the_compiler_refuses(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, second: Any) -> None:
    text = noted(tmp_path, monkeypatch, second)
    assert "does not currently support double backward" in text.splitlines()[-1]


def test_what_eager_refuses_is_not_the_compilers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def unused(y: Any, gradient: Any, x: Any) -> None:
        torch.autograd.grad(x.sum(), torch.ones(1, requires_grad=True))

    assert noted(tmp_path, monkeypatch, unused) == ""
