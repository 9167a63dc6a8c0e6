#!/usr/bin/env python3
"""How many queries a search takes, with an oracle that costs nothing: `python scripts/curve.py`.

Each row: graphs of n operations of which k matter (chosen at random with a fixed seed; "fed": the second must be fed by the
first, 30 operations apart). Queries are what the oracle would have to run; repeated texts are not counted. "operations": the search
for these alone. "whole": from the first to the last step; one is added for the readable form, which these operations do not have.
"""

from __future__ import annotations

import math
import statistics
import sys
from collections.abc import Sequence
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from tests.reduce.graph.free_oracle import case, measure

SIZES = (50, 200, 1000, 4000)


def spread(queries: Sequence[int]) -> str:
    """The median and the most."""
    return f"{statistics.median(queries):.0f} .. {max(queries)}"


def row(shape: str, n: int, wanted: str) -> str:
    """A line of the table."""
    found = [case(shape, n, wanted, seed) for seed in range(40 if n < 1000 else 10)]
    runs = [measure(*each) for each in found if each is not None]
    least, factor = {"1": (1, 2), "2": (2, 4), "fed": (2, 4), "3": (3, 6)}[wanted]
    operations, whole = spread([run.operations for run in runs]), spread([run.whole for run in runs])
    optimum = 100 * sum(run.left == least for run in runs) / len(runs)
    worst, own = max(run.left for run in runs), max(run.seconds for run in runs)
    allowed = math.floor(factor * math.log2(n))
    return f"{shape:6} {n:5} {wanted:>6} {len(runs):4} {operations:>10} {whole:>10} {allowed:7} {optimum:5.0f} % {worst:5} {own:6.1f}"


def main() -> None:
    """Print the table."""
    print("graph      n needed runs operations      whole allowed optimum worst  own s")
    print("                         queries, median .. most")
    for shape in ("chain", "mixed"):
        for n in SIZES:
            for wanted in ("1", "2", "fed", "3"):
                print(row(shape, n, wanted), flush=True)


if __name__ == "__main__":
    main()
