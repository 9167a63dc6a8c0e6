"""The table, the ratios and the summary."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from benchlib.measure import Measure

LARGE = 10  # nodes from which on the ratio of the search counts
LONG = 120.0  # seconds of PyTorch's from which on the ratio of the whole counts


@dataclass(frozen=True)
class Ratio:
    """PyTorch's time over ours, for one program and mode. `least`: the limit cut PyTorch's, so it is at least this."""

    program: str
    seed: int
    tool: str
    search: float
    whole: float
    least: bool
    isolated: bool
    nodes: int
    their_wall: float


def beside(rows: Iterable[Measure]) -> Iterator[tuple[Measure, Measure]]:
    """Each run of PyTorch's with the run of ours before it: a program may have been measured several times."""
    mine: dict[tuple[str, int], Measure] = {}
    for row in rows:
        key = (row.program, row.seed)
        if row.tool == "ours":
            mine[key] = row
        elif key in mine:
            yield mine[key], row


def ratios(rows: Sequence[Measure]) -> list[Ratio]:
    """For each run of PyTorch's that asked something beside a run of ours that searched to its end."""
    found = []
    for own, row in beside(rows):
        if not own.search or own.status != "minimized" or not own.agrees:
            continue
        if row.search is None or row.status not in ("minified", "limit"):
            continue
        found.append(
            Ratio(
                program=row.program,
                seed=row.seed,
                tool=row.tool,
                search=row.search / own.search,
                whole=row.wall / own.wall,
                least=row.cut,
                isolated=row.isolated,
                nodes=row.nodes or 0,
                their_wall=row.wall,
            )
        )
    return found


def line(row: Measure) -> str:
    """One run, as it is said while the others go on."""
    small = f"{_said(row.ops_before)} > {_said(row.ops_after)} ops, {row.queries} queries, {row.duplicates} twice"
    search = "no search" if row.search is None else f"search {row.search:.1f} s"
    return f"{row.program} {row.seed}, {row.tool}: {row.status} in {row.wall:.1f} s, {search}, {small}"


def table(rows: Sequence[Measure]) -> str:
    """A line for each run."""
    head = ("program", "seed", "tool", "status", "search s", "wall s", "queries", "dup", "ops", "best", "elems", "lines", "MiB", "same")
    lines = [head, *(_cells(row) for row in rows)]
    return aligned(lines)


def _cells(row: Measure) -> tuple[str, ...]:
    mark = ">" if row.cut else ""
    return (
        row.program,
        str(row.seed),
        row.tool,
        row.status,
        f"{mark}{row.search:.1f}" if row.search is not None else "-",
        f"{mark}{row.wall:.1f}",
        str(row.queries),
        str(row.duplicates),
        f"{_said(row.ops_before)} > {_said(row.ops_after)}",
        str(row.optimum),
        _said(row.elements),
        _said(row.lines),
        f"{row.peak:.0f}",
        {True: "yes", False: "NO", None: "-"}[row.same] if row.agrees else "not what result.json says",
    )


def _said(value: int | None) -> str:
    return "-" if value is None else str(value)


def aligned(lines: Sequence[Sequence[str]]) -> str:
    """Columns as wide as they need; the first line is the head."""
    widths = [max(len(line[i]) for line in lines) for i in range(len(lines[0]))]
    return "\n".join("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in lines)


def comparison(rows: Sequence[Measure]) -> str:
    """How many times faster ours is, medians over the seeds of a program."""
    groups: dict[tuple[str, str], list[Ratio]] = {}
    for ratio in ratios(rows):
        groups.setdefault((ratio.program, ratio.tool), []).append(ratio)
    if not groups:
        return "nothing to compare"
    lines = [("program", "against", "search", "end to end", "queries")]
    for (program, tool), found in groups.items():
        mark = ">" if any(ratio.least for ratio in found) else ""
        shares = query_shares(rows, program=program, tool=tool)
        lines.append(
            (
                program,
                tool,
                f"{mark}{statistics.median(r.search for r in found):.1f} x",
                f"{mark}{statistics.median(r.whole for r in found):.1f} x",
                f"{100 * statistics.median(shares):.0f} %" if shares else "-",
            )
        )
    return aligned(lines)


def query_shares(rows: Sequence[Measure], *, program: str | None = None, tool: str | None = None) -> list[float]:
    """Our queries over PyTorch's, where PyTorch's came to its end."""
    return [
        own.queries / row.queries
        for own, row in beside(rows)
        if row.queries and not row.cut and program in (None, row.program) and tool in (None, row.tool)
    ]


def summary(rows: Sequence[Measure]) -> dict[str, float | int | None]:
    """Over all programs. Ratios are PyTorch's over ours; None where nothing was measured for it."""
    mine = [row for row in rows if row.tool == "ours"]
    found = ratios(rows)
    isolated = [r.search for r in found if r.isolated]
    inside = [r.search for r in found if not r.isolated]
    generated = [row for row in mine if row.generated and row.ops_after is not None]
    excess = [(row.ops_after or 0) - row.optimum for row in generated]
    least: dict[tuple[str, int], int] = {}
    for row in rows:
        if row.tool != "ours" and row.ops_after is not None and row.same:
            key = (row.program, row.seed)
            least[key] = min(least.get(key, row.ops_after), row.ops_after)
    more = [row.program for row in mine if row.ops_after is not None and row.ops_after > least.get((row.program, row.seed), row.ops_after)]
    return {
        "programs": len(mine),
        "minimized": sum(row.status == "minimized" for row in mine),
        "repro_fails_alone": sum(row.same is True and row.agrees for row in mine),
        "their_repro_fails_alone": sum(row.same is True for row in rows if row.tool != "ours"),
        "their_runs": sum(row.tool != "ours" for row in rows),
        "search_vs_isolated_median": _median(isolated),
        "search_vs_isolated_least": _least(r.search for r in found if r.isolated and r.nodes >= LARGE),
        "search_vs_in_process_median": _median(inside),
        "end_to_end_least_where_long": _least(r.whole for r in found if r.their_wall > LONG),
        "query_share_median": _median(query_shares(rows)),
        "duplicate_queries": sum(row.duplicates for row in mine),
        "more_ops_than_theirs": len(more),
        "optimum_share": sum(e <= 0 for e in excess) / len(excess) if excess else None,
        "excess_ops_most": max(excess, default=None),
        "input_elements_median": _median([row.elements for row in mine if row.elements is not None]),
        "lines_median": _median([row.lines for row in mine if row.lines is not None]),
        "peak_mib_most": max((row.peak for row in mine), default=None),
    }


def _median(values: Sequence[float]) -> float | None:
    return round(statistics.median(values), 3) if values else None


def _least(values: Iterable[float]) -> float | None:
    found = list(values)
    return round(min(found), 3) if found else None
