"""Which graphs draw random numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

torch: Any = pytest.importorskip("torch")

from bot.inside.eager import drawing, fp64  # noqa: E402

F = torch.nn.functional
ATEN = torch.ops.aten
DRAWN: list[tuple[bool, Callable[[Any], Any]]] = [
    (True, lambda x: F.dropout(x, 0.5)),
    (False, lambda x: F.dropout(x, 0.5, False)),
    (False, lambda x: F.dropout(x, 0.5, training=False)),
    (False, lambda x: F.dropout(x, 0.0)),
    (False, lambda x: F.dropout2d(x, p=0.0)),
    (False, lambda x: F.alpha_dropout(x, 0.0, True)),
    (False, lambda x: ATEN.dropout.default(x, 0.0, True)),
    (True, lambda x: ATEN.native_dropout.default(x, 0.0, True)),
    (True, lambda x: F.scaled_dot_product_attention(x, x, x, None, 0.1)),
    (True, lambda x: F.scaled_dot_product_attention(x, x, x, dropout_p=0.1)),
    (False, lambda x: F.scaled_dot_product_attention(x, x, x)),
    (False, lambda x: F.scaled_dot_product_attention(x, x, x, None, 0.0, True)),
    (True, lambda x: ATEN.native_dropout(x, 0.5, True)),
    (True, lambda x: ATEN.native_dropout(x, 0.5, None)),
    (False, lambda x: ATEN.native_dropout.default(x, 0.5, False)),
    (True, lambda x: ATEN.dropout.default(x, 0.5, True)),
    (False, lambda x: ATEN.dropout.default(x, 0.5, False)),
    (True, lambda x: torch.rand_like(x)),
    (True, lambda x: x.bernoulli_(0.5)),
    (False, lambda x: torch.relu(x)),
]


@pytest.mark.parametrize(("drawn", "function"), DRAWN)
def test_a_dropout_that_is_turned_off_draws_nothing(drawn: bool, function: Callable[[Any], Any]) -> None:
    """As eager says, too."""
    assert drawing.draws(torch.fx.symbolic_trace(function).graph) is drawn
    before = fp64.random_state()
    function(torch.ones(2, 2, 4, 4))
    assert fp64.drew(before) is drawn


class Calling(torch.nn.Module):
    """Calls what it holds as a graph of its own, as a checkpoint's body is."""

    def __init__(self, function: Callable[[Any], Any]) -> None:
        super().__init__()
        self.body = torch.fx.symbolic_trace(function)

    def forward(self, x: Any) -> Any:
        return self.body(x) + 1


class KeptApart(torch.fx.Tracer):
    def is_leaf_module(self, module: Any, name: str) -> bool:
        return True


@pytest.mark.parametrize(("drawn", "function"), [DRAWN[0], DRAWN[1]])
def test_what_a_graph_calls_draws_too(drawn: bool, function: Callable[[Any], Any]) -> None:
    module = Calling(Calling(function).body)
    graph = torch.fx.GraphModule(module, KeptApart().trace(module)).graph
    assert [node.op for node in graph.nodes][1] == "call_module"
    assert drawing.draws(graph) is drawn
