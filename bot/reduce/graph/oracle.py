"""What graph passes ask besides verdicts."""

from __future__ import annotations

from typing import Protocol

from bot.reduce.candidate import Oracle
from bot.reduce.graph.form import Meta


class GraphOracle(Oracle, Protocol):
    """An oracle that can also describe the values in a script."""

    def shapes(self, text: str) -> dict[str, Meta] | None:
        """Runs `Repro.forward` of the script `text` in eager (without the compiler) and describes each of its local values by name; None
        if the program is not legal. It compiles nothing and does not count as a query."""
        ...
