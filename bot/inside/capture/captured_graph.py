"""A graph of the compiler's, as seen at a hook point."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from ..eager import accuracy
from ..protocol import Failed, HookPoint


@dataclass
class CapturedGraph:
    """One graph that passes a hook point."""

    hook: HookPoint
    graph: Any  # a GraphModule as it was before compiling, or an ExportedProgram
    inputs: Sequence[Any] | None
    recipe: dict[str, Any]
    compiler: str = "inductor"
    backward: bool = False
    backend: Callable[..., Any] | None = None
    failed: Failed = ""
    compared: accuracy.Compared = field(default_factory=accuracy.Compared)


def returning(gm: Any, places: Sequence[int]) -> Any:
    """The graph `gm`, which also returns its inputs at these `places`, after its own outputs."""
    graph = copy.deepcopy(gm.graph)
    inputs = [node for node in graph.nodes if node.op == "placeholder"]
    output = next(node for node in graph.nodes if node.op == "output")
    returned = output.args[0] if isinstance(output.args[0], (tuple, list)) else (output.args[0],)
    output.args = ((*returned, *(inputs[place] for place in places)),)
    return torch.fx.GraphModule(gm, graph)
