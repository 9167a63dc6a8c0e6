"""A graph of the compiler's, as a hook point found it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..eager import accuracy
from ..protocol import Failed, HookPoint


@dataclass
class CapturedGraph:
    """One graph on its way through a hook point."""

    hook: HookPoint
    graph: Any  # a GraphModule as it was before compiling, or an ExportedProgram
    inputs: Sequence[Any] | None
    recipe: dict[str, Any]
    compiler: str = "inductor"
    backward: bool = False
    backend: Callable[..., Any] | None = None
    failed: Failed = ""
    compared: accuracy.Compared = field(default_factory=accuracy.Compared)
