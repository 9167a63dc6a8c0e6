"""A folder of failing programs through ours, judged from outside.

The folder holds `manifest.jsonl` (a line for each case: `id`, `kind`, `exception_type`, `message_regex`) and `cases/ID.py`.
"""

from __future__ import annotations

import json
import re
import shutil
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from benchlib import measure, report, watch
from benchlib.cli import busy

HANG = 60.0  # a repro that still runs after so many seconds hangs
CLAIMS = ("minimized", "reproduced", "flaky")  # statuses that say: this repro fails as the program does
FLAKY_RUNS = 10  # a failure that shows in one of three runs is missed by so many in 2 of 100 cases
FEW = 25  # lines of code that a minimal program has at most
# What is asked of a whole folder: (at least, at most), in the units of the summary.
GOALS: dict[str, tuple[float | None, float | None]] = {
    "share": (0.9, None),
    "lines_median": (None, FEW),
    "wall_median": (None, 120.0),
    "wall_most": (None, 600.0),
    "wrong": (None, 0),
}
COMPARISON = re.compile(r"not close|not equal|are not", re.IGNORECASE)
CONTROL = Path(__file__).with_name("control.py")
HEALTHY = Path(__file__).with_name("healthy.py")
REACHED = re.compile(r"^bench-control: (\d+) calls$", re.MULTILINE)


@dataclass(frozen=True)
class Case:
    """A failing program and what its failure looks like: exception type (or signal), and a regular expression (DOTALL)."""

    name: str
    text: str
    kind: str
    exception: str
    message: str


@dataclass(frozen=True)
class Verdict:
    """What ours made of a case, and whether the repro holds.

    `named`: result.json names it. `agrees`: it has the lines that result.json says. `fails`: alone it fails as the manifest says.
    `control`: with the compiler taken out it ends well. `reaches`: it calls the compiler. `said`: the last line of what it said
    alone, for whoever looks into a failure. `begins`: seconds up to the first question;
    `program`: of the program by itself, where that was run.
    """

    name: str
    kind: str
    status: str
    ended_by: str
    stage: str | None
    wall: float
    search: float
    queries: int
    duplicates: int
    peak: float
    lines_before: int
    lines_after: int | None
    named: bool = False
    agrees: bool = True
    fails: bool = False
    control: bool = False
    reaches: bool = False
    said: str = ""
    reason: str = ""
    begins: float | None = None
    program: float | None = None

    @property
    def holds(self) -> bool:
        """Whether there is a repro that is what it claims to be."""
        return self.agrees and self.fails and self.control and self.reaches

    @property
    def counts(self) -> bool:
        """Whether the repro holds and is minimized, or the program was minimal as it came."""
        # so says only a search that came to its end; many lines, as those of --embed, say that it is not so
        minimal = self.status == "reproduced" and self.ended_by == "fixed_point" and (self.lines_after or 0) <= FEW
        return self.holds and (self.status == "minimized" or minimal)

    @property
    def died(self) -> bool:
        """Whether ours ended without a result of its own: killed, or with a traceback."""
        return self.status == "killed" or self.status.startswith("exit ")

    @property
    def wrong(self) -> bool:
        """Whether a repro is claimed that does not hold, whatever the status calls it."""
        return self.status in CLAIMS and self.named and not self.holds


def read(folder: Path) -> list[Case]:
    """The cases of a folder, in the manifest's order.

    Raises:
        OSError: a file is missing. KeyError, ValueError: the manifest is none.
    """
    cases = []
    for line in (folder / "manifest.jsonl").read_text(encoding="utf-8").splitlines():
        if line.strip():
            entry = json.loads(line)
            text = (folder / "cases" / f"{entry['id']}.py").read_text(encoding="utf-8")
            cases.append(Case(entry["id"], text, entry["kind"], entry["exception_type"], entry["message_regex"]))
    return cases


def embedded(text: str) -> str:
    """The case at the end of a longer program, as it stands in a user's file."""
    return HEALTHY.read_text(encoding="utf-8").rstrip("\n") + "\n\n\n" + text


def fits(case: Case, run: watch.Run) -> bool:
    """Whether a run of a repro fails as the case does."""
    if case.kind == "hang":
        return run.status is None
    if run.status is None or run.status == 0:
        return False
    if case.kind == "crash":
        return run.status < 0
    kind = case.exception.rpartition(".")[2]
    if not re.search(rf"^(?:\w+\.)*{re.escape(kind)}\b", run.output, re.MULTILINE):
        return False
    if kind == "AssertionError" and COMPARISON.search(case.message):
        return COMPARISON.search(run.output) is not None
    return re.search(case.message, run.output, re.DOTALL) is not None


def judge(case: Case, setting: measure.Setting, *, embed: bool, beside: int = 0, timed: bool = False) -> Verdict:
    """Minimize one case, with so many busy processes `beside`, and run what came out. `timed`: run the program by itself before that."""
    place = setting.scratch / case.name
    shutil.rmtree(place, ignore_errors=True)
    for name in ("tmp", "work", "alone", "control"):
        (place / name).mkdir(parents=True)
    text = embedded(case.text) if embed else case.text
    (place / "work" / "case.py").write_text(text, encoding="utf-8")
    # nothing is kept from one case to the next
    env = watch.environment({"TMPDIR": str(place / "tmp"), "TORCH_MINIFY_CACHE_DIR": str(place / "tmp" / "kept")})
    program = _by_itself(place, env, setting) if timed else None
    with busy(beside):
        found = measure.minimize(place / "work" / "case.py", env, setting, None)
    run, result, repro = found.run, found.result, found.repro
    last = [line for line in run.output.splitlines() if line.strip()][-1:]
    verdict = Verdict(
        case.name,
        case.kind,
        found.status,
        result.get("ended_by", "-"),
        result.get("stage"),
        run.seconds,
        found.reduction.get("seconds", 0.0),
        found.queries,
        found.duplicates,
        run.peak,
        measure.code_lines(text),
        found.lines,
        named=bool(result.get("files", {}).get("repro")),
        agrees=measure.agrees(repro, found.reduction),
        reason=result.get("reason") or ("" if result else "".join(last)),
        begins=result.get("timing", {}).get("capture") or None,
        program=program,
    )
    return _proven(verdict, case, repro, setting, place) if repro.exists() else verdict


def _by_itself(place: Path, env: Mapping[str, str], setting: measure.Setting) -> float:
    """Seconds that the case takes in cold compile directories, as a user starts it."""
    own = {**env, "TORCHINDUCTOR_CACHE_DIR": str(place / "tmp" / "program"), "TMPDIR": str(place / "alone")}
    command, work = [setting.python, "case.py"], place / "work"
    return watch.run(command, cwd=work, env=own, limit=setting.limit, log=place / "program.txt", sample=False).seconds


def _proven(verdict: Verdict, case: Case, repro: Path, setting: measure.Setting, place: Path) -> Verdict:
    limit = HANG if case.kind == "hang" else measure.ALONE_LIMIT

    def run(name: str, *command: str) -> watch.Run:
        # cold every time
        shutil.rmtree(place / name)
        (place / name).mkdir()
        shutil.copy(repro, place / name / "repro.py")
        env = watch.environment({"TMPDIR": str(place / "tmp"), "TORCHINDUCTOR_CACHE_DIR": str(place / name / "cache")})
        command = (setting.python, *command, "repro.py")
        return watch.run(command, cwd=place / name, env=env, limit=limit, log=place / f"{name}.txt", sample=False)

    alone, control = run("alone"), run("control", str(CONTROL))
    more = FLAKY_RUNS - 1 if verdict.status == "flaky" else 0
    while more and not fits(case, alone):
        alone, more = run("alone"), more - 1
    reached = REACHED.findall(control.output)
    said = [line for line in alone.output.splitlines() if line.strip()]
    return Verdict(
        **{
            **verdict.__dict__,
            "fails": fits(case, alone),
            "control": control.status == 0,
            "reaches": bool(reached) and int(reached[-1]) > 0,
            "said": said[-1][:200] if said else "",
        }
    )


def line(verdict: Verdict) -> str:
    """One case, as it is said while the others go on."""
    small = f"{verdict.lines_before} > {'-' if verdict.lines_after is None else verdict.lines_after} lines"
    start = f", the search began after {verdict.begins:.1f} s" if verdict.program is not None and verdict.begins is not None else ""
    start += f", the program takes {verdict.program:.1f} s" if start else ""
    return f"{verdict.name}: {verdict.status} in {verdict.wall:.1f} s, {small}, {_mark(verdict)}{start}"


def _mark(verdict: Verdict) -> str:
    return "counts" if verdict.counts else "WRONG" if verdict.wrong else "does not count"


def table(verdicts: Sequence[Verdict]) -> str:
    """A line for each case."""
    head = ("case", "kind", "status", "ended by", "stage", "wall s", "search s", "queries", "dup", "lines", "MiB")
    return report.aligned([(*head, "fails", "control", "reaches", "verdict", "why not"), *(_cells(verdict) for verdict in verdicts)])


def _cells(verdict: Verdict) -> tuple[str, ...]:
    return (
        verdict.name,
        verdict.kind,
        verdict.status,
        verdict.ended_by,
        verdict.stage or "-",
        f"{verdict.wall:.1f}",
        f"{verdict.search:.1f}",
        str(verdict.queries),
        str(verdict.duplicates),
        f"{verdict.lines_before} > {'-' if verdict.lines_after is None else verdict.lines_after}",
        f"{verdict.peak:.0f}",
        *("yes" if mark else "NO" for mark in (verdict.fails, verdict.control, verdict.reaches)),
        _mark(verdict),
        "" if verdict.counts else (verdict.reason or verdict.said)[:120] if verdict.agrees else "not what result.json says",
    )


def row(verdict: Verdict) -> dict[str, object]:
    """A case as `--json` holds it."""
    return {**asdict(verdict), "counts": verdict.counts, "wrong": verdict.wrong}


def summary(verdicts: Sequence[Verdict]) -> dict[str, float | int | None]:
    """Over all cases; lines are those of the repros that count. None where there is none."""
    after = [verdict.lines_after for verdict in verdicts if verdict.counts and verdict.lines_after is not None]
    counted = sum(verdict.counts for verdict in verdicts)
    return {
        "cases": len(verdicts),
        "counted": counted,
        "share": counted / len(verdicts),
        "minimized": sum(verdict.status == "minimized" for verdict in verdicts),
        "reproduced": sum(verdict.status == "reproduced" for verdict in verdicts),
        "wrong": sum(verdict.wrong for verdict in verdicts),
        "died": sum(verdict.died for verdict in verdicts),
        "duplicate_queries": sum(verdict.duplicates for verdict in verdicts),
        "wall_median": statistics.median(verdict.wall for verdict in verdicts),
        "wall_most": max(verdict.wall for verdict in verdicts),
        "lines_median": statistics.median(after) if after else None,
        "at_most_20_lines": sum(lines <= 20 for lines in after),
    }


@dataclass(frozen=True)
class Goal:
    """A figure of the summary against its limit."""

    figure: str
    value: float | int | None
    least: float | None
    most: float | None
    met: bool

    def __str__(self) -> str:
        limit = f"at least {self.least:g}" if self.least is not None else f"at most {self.most:g}"
        return f"{limit}: {'met' if self.met else 'MISSED'}"


def goals(found: Mapping[str, float | int | None]) -> list[Goal]:
    """What a summary comes to. A figure that there is none of misses its limit."""
    held = []
    for figure, (least, most) in GOALS.items():
        value = found[figure]
        met = value is not None and (least is None or value >= least) and (most is None or value <= most)
        held.append(Goal(figure, value, least, most, met))
    return held


def said(verdicts: Sequence[Verdict]) -> str:
    """The summary for people, a figure on each line."""
    found = summary(verdicts)
    limits = {goal.figure: f" ({goal})" for goal in goals(found)}
    return "\n".join(f"{figure}: {'-' if value is None else round(value, 3)}{limits.get(figure, '')}" for figure, value in found.items())
