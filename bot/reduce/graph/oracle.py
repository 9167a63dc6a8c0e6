"""What passes on graphs ask beside verdicts."""

from __future__ import annotations

from typing import Protocol

from bot.reduce.candidate import Oracle
from bot.reduce.graph.form import Meta


class GraphOracle(Oracle, Protocol):
    """An oracle that also knows what the values inside a script are."""

    def shapes(self, text: str) -> dict[str, Meta] | None:
        """Runs `Repro.forward` of the script `text` eagerly (compiler taken out) and describes each of its local values by name;
        None where the program is not legal. Costs no compile and is not counted as a query."""
        ...
