"""What a graph that checkpoints computes in eager."""

from __future__ import annotations

from typing import Any

import pytest

torch: Any = pytest.importorskip("torch")
checkpoint: Any = pytest.importorskip("torch.utils.checkpoint").checkpoint

from bot.inside.eager import checkpointed  # noqa: E402
from bot.inside.eager.accuracy import ComparisonRule, compare_graph  # noqa: E402


class Block(torch.nn.Module):
    def __init__(self, drop: float) -> None:
        super().__init__()
        self.f = torch.nn.Sequential(torch.nn.Linear(6, 12), torch.nn.Dropout(drop), torch.nn.Linear(12, 6))

    def forward(self, x: Any) -> Any:
        return x + checkpoint(self.f, x, use_reentrant=False)


def twice(x: Any) -> Any:
    """A checkpoint in a checkpoint."""
    return checkpoint(lambda y: checkpoint(lambda z: torch.dropout(z, 0.5, True), y * 2, use_reentrant=False).sin(), x, use_reentrant=False)


def graph_of(function: Any, x: Any) -> tuple[Any, list[Any]]:
    """The graph that Dynamo makes of it, and what that is called with."""
    found: list[tuple[Any, list[Any]]] = []

    def backend(gm: Any, inputs: list[Any]) -> Any:
        found.append((gm, list(inputs)))
        return gm.forward

    torch._dynamo.reset()
    torch.compile(function, backend=backend)(x)
    return found[0]


def gradients(function: Any, inputs: list[Any]) -> list[Any]:
    torch.manual_seed(3)
    given = [value.detach().clone().requires_grad_(value.requires_grad) for value in inputs]
    out = function(*given)
    (out[0] if isinstance(out, (list, tuple)) else out).square().sum().backward()
    return [value.grad for value in given if value.grad is not None]


def test_a_dropout_has_the_same_mask_in_the_backward() -> None:
    x = torch.randn(5, 6, requires_grad=True)
    gm, inputs = graph_of(twice, x)
    assert inputs == [x]
    (wanted,) = gradients(twice, inputs)
    assert not torch.allclose(gradients(gm, inputs)[0], wanted)  # torch's own eager form
    torch.testing.assert_close(gradients(checkpointed.plainly(gm), inputs)[0], wanted)
    assert not torch.allclose(gradients(gm, inputs)[0], wanted)  # nothing was written to it


@pytest.mark.parametrize("drop", [0.3, 0.0])
def test_gradients_of_a_healthy_block_are_right(drop: float) -> None:
    gm, inputs = graph_of(Block(drop), torch.randn(5, 6))
    compile_fx = pytest.importorskip("torch._inductor.compile_fx").compile_fx
    found = compare_graph(gm, gm, inputs, boxed=False, backward=True, rule=ComparisonRule(), backend=compile_fx)
    assert (found.wrong, found.broke) == ((), False)


def test_a_graph_without_a_checkpoint_is_left_alone() -> None:
    gm = torch.fx.symbolic_trace(torch.nn.ReLU())
    assert checkpointed.plainly(gm) is gm
    assert checkpointed.plainly(torch.relu) is torch.relu
