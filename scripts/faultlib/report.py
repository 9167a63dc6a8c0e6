"""What is printed of the runs: a line for each, and the table of the faults and their outcomes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from faultlib.judge import BAD, GOOD, NOTHING

Row = Mapping[str, Any]


def line(row: Row) -> str:
    """A `row` in one line, or in some where something is wrong."""
    runs = ", ".join(f"{run['status']} in {run['seconds']:.0f} s" for run in row["runs"])
    hits = "; ".join(hit for run in row["runs"] for hit in run["hits"][:3])
    why = f": {row['why']}" if row["why"] else ""
    return f"{row['outcome']:8} {row['fault']} {row['number']} ({row['program']}): {hits or 'nothing'} -> {runs or 'no run'}{why}"


def table(rows: Iterable[Row]) -> str:
    """The faults of the `rows`, and how often each had which outcome."""
    counts: dict[str, Counter[str]] = {}
    for row in rows:
        counts.setdefault(row["fault"], Counter())[row["outcome"]] += 1
    shown = [outcome for outcome in (*GOOD, *BAD, *NOTHING) if any(found[outcome] for found in counts.values())]
    wide = max(map(len, counts), default=5)
    lines = ["  ".join([f"{'fault':{wide}}", *shown])]
    for fault, found in counts.items():
        lines.append("  ".join([f"{fault:{wide}}", *(f"{found[outcome] or '':>{len(outcome)}}" for outcome in shown)]))
    total = sum(counts.values(), Counter())
    lines.append("  ".join([f"{'all':{wide}}", *(f"{total[outcome]:>{len(outcome)}}" for outcome in shown)]))
    return "\n".join(lines)


def bad(rows: Iterable[Row]) -> list[Row]:
    """Those of the `rows` that must not be."""
    return [row for row in rows if row["outcome"] in BAD]


def summary(rows: Sequence[Row]) -> dict[str, Any]:
    """The `rows` in numbers."""
    outcomes = Counter(row["outcome"] for row in rows)
    return {"runs": len(rows), "bad": len(bad(rows)), "outcomes": dict(outcomes)}
