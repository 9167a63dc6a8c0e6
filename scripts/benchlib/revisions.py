"""`scripts/compare-revisions`: the same programs through this checkout and through another revision of it, in turns.

Both revisions meet the same load: a program goes through one right after the other, and which is first alternates.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import os
import platform
import re
import resource
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from benchlib import corpus, measure, programs, report
from benchlib.cli import count, matches, own_python, positive, save

GPU = re.compile(r"\bcuda\b", re.IGNORECASE)
# The times that are compared: the columns of the table.
TIMES = ("search", "timing", "wall", "cpu")
SIDES = ("before", "after")
# Compiles the package, so that neither side does while it is measured; fails where it is not the one of the given directory.
PREPARE = """
import bot, compileall, pathlib, sys
package = pathlib.Path(bot.__file__).parent
sys.exit(not package.samefile(sys.argv[1]) or not compileall.compile_dir(package, quiet=2))
"""


@dataclass(frozen=True)
class Run:
    """One program through one revision. Times in seconds.

    `search` is `reduction.seconds`, `stages` is `timing` of `result.json` and `timing` its sum, `wall` the whole command, `cpu` the
    processor time of all its processes that were waited for. `load`: the machine's load average when the run started.
    """

    status: str
    lines: int | None
    queries: int
    search: float
    wall: float
    cpu: float
    load: float
    stages: Mapping[str, float] = field(default_factory=dict)

    @property
    def timing(self) -> float:
        """The seconds of all stages together."""
        return sum(self.stages.values())

    @property
    def result(self) -> tuple[str, int | None, int]:
        """What has to be equal in both revisions."""
        return self.status, self.lines, self.queries


@dataclass(frozen=True)
class Pair:
    """A program through both revisions. `first`: the side that ran first."""

    program: str
    first: str
    before: Run
    after: Run

    @property
    def equal(self) -> bool:
        """Whether status, lines and queries are the same."""
        return self.before.result == self.after.result

    def ratio(self, time: str) -> float | None:
        """The time, one of `TIMES`, of this checkout over that of the other revision; None where one of them has none."""
        before, after = getattr(self.before, time), getattr(self.after, time)
        return after / before if before and after else None


Runner = Callable[[programs.Program, str], Run]


def needs_gpu(text: str) -> bool:
    """Whether the code of a program, comments aside, names CUDA."""
    return any(GPU.search(line.partition("#")[0]) for line in text.splitlines())


def varied(cases: Sequence[corpus.Case], most: int) -> list[corpus.Case]:
    """At most so many cases, as many kinds among them as there are, in the manifest's order."""
    kinds: dict[str, list[corpus.Case]] = {}
    for case in cases:
        kinds.setdefault(case.kind, []).append(case)
    ranked = sorted(cases, key=lambda case: kinds[case.kind].index(case))
    return [case for case in cases if case in ranked[:most]]


def from_corpus(folder: Path, only: Sequence[str], most: int, *, gpu: bool) -> list[programs.Program]:
    """The cases of a corpus as programs: those named in `only`, else at most `most`; what needs a GPU is left out unless `gpu`.

    Raises:
        OSError: a file is missing. KeyError, ValueError: the manifest is none.
    """
    cases = [case for case in corpus.read(folder) if gpu or not needs_gpu(case.text)]
    chosen = [case for case in cases if any(matches(case.name, one) for one in only)] if only else varied(cases, most)
    return [programs.Program(case.name, case.text, case.message, hang_after=corpus.HANG) for case in chosen]


def from_catalog(only: Sequence[str], most: int, seed: int) -> list[programs.Program]:
    """Programs of the bench: those named in `only`, else the first `most` generated ones, with this seed."""
    if only:
        return [programs.program(name, seed) for name in programs.CATALOG if any(matches(name, one) for one in only)]
    return [program for name in programs.CATALOG if (program := programs.program(name, seed)).generated][:most]


def pairs(chosen: Iterable[programs.Program], run: Runner, repeat: int) -> Iterator[Pair]:
    """Each program through both sides, `repeat` times over the whole list; the side that is first alternates."""
    listed = list(chosen)
    for turn in range(repeat):
        for number, program in enumerate(listed):
            order = SIDES if (number + turn) % 2 == 0 else SIDES[::-1]
            runs = {side: run(program, side) for side in order}
            yield Pair(program.name, order[0], runs["before"], runs["after"])


def summary(found: Sequence[Pair]) -> dict[str, dict[str, float | None]]:
    """For each time: the median of the pairs' ratios, and the ratio of the totals over the pairs that have both."""
    totals = {}
    for time in TIMES:
        both = [pair for pair in found if pair.ratio(time) is not None]
        ratios = [ratio for pair in both if (ratio := pair.ratio(time)) is not None]
        before, after = (sum(getattr(getattr(pair, side), time) for pair in both) for side in SIDES)
        totals[time] = {"median": statistics.median(ratios) if ratios else None, "total": after / before if before else None}
    return totals


def line(pair: Pair) -> str:
    """One pair, as it is said while the others go on."""
    sides = ", ".join(
        f"{side} {run.status} in {run.wall:.1f} s (search {run.search:.1f} s)" for side, run in zip(SIDES, _runs(pair), strict=True)
    )
    return f"{pair.program}: {sides}, search x {_ratio(pair.ratio('search'))}{'' if pair.equal else ', NOT EQUAL'}"


def table(found: Sequence[Pair]) -> str:
    """A line for each pair, then the medians and the totals of the ratios."""
    head = ("program", "first", "status", "lines", "queries", "before s", "after s", *(f"{time} x" for time in TIMES), "equal")
    totals = summary(found)
    rows = [
        (
            pair.program,
            pair.first,
            _both(pair, "status"),
            _both(pair, "lines"),
            _both(pair, "queries"),
            f"{pair.before.search:.1f}",
            f"{pair.after.search:.1f}",
            *(_ratio(pair.ratio(time)) for time in TIMES),
            "yes" if pair.equal else "NO",
        )
        for pair in found
    ]
    ends = [(name, *[""] * 6, *(_ratio(totals[time][name]) for time in TIMES), "") for name in ("median", "total")]
    return report.aligned([head, *rows, *ends])


def _runs(pair: Pair) -> tuple[Run, Run]:
    return pair.before, pair.after


def _both(pair: Pair, name: str) -> str:
    values = ["-" if (value := getattr(run, name)) is None else str(value) for run in _runs(pair)]
    return values[0] if values[0] == values[1] else " | ".join(values)


def _ratio(ratio: float | None) -> str:
    return "-" if ratio is None else f"{ratio:.3f}"


@contextlib.contextmanager
def worktree(revision: str, place: Path) -> Iterator[Path]:
    """A checkout of `revision` at `place`, removed at the end."""
    git = ["git", "-C", str(measure.ROOT), "worktree"]
    subprocess.run([*git, "add", "--quiet", "--detach", str(place), revision], check=True)
    try:
        yield place
    finally:
        subprocess.run([*git, "remove", "--force", str(place)], check=True)


def prepare(root: Path, python: str) -> None:
    """Compile the package of a checkout, and see that the interpreter imports it from there and not from an installation.

    Raises:
        SystemExit: another package is imported.
    """
    env = {**os.environ, "PYTHONPATH": str(root)}
    if subprocess.run([python, "-c", PREPARE, str(root / "bot")], env=env, cwd=root.parent, check=False).returncode:
        raise SystemExit(f"{python} does not import the package of {root}")


def runner(roots: Mapping[str, Path], setting: measure.Setting, unconfined: str = "") -> Runner:
    """What runs a program through one side; `roots` are the checkouts of both sides. The side `unconfined` goes without the sandbox."""

    def run(program: programs.Program, side: str) -> Run:
        load, started = os.getloadavg()[0], _cpu()
        found = measure.minimized(program, dataclasses.replace(setting, root=roots[side], confined=side != unconfined), side)
        search = found.reduction.get("seconds", 0.0)
        stages = found.result.get("timing", {})
        return Run(found.status, found.lines, found.queries, search, found.run.seconds, _cpu() - started, load, stages)

    return run


def _cpu() -> float:
    """Processor seconds of all processes that this one has waited for."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def grammar() -> argparse.ArgumentParser:
    """The command line."""
    parser = argparse.ArgumentParser(prog="scripts/compare-revisions", description=__doc__, allow_abbrev=False)
    parser.add_argument("revision", metavar="REV", help="what this checkout, as it is, is compared with")
    parser.add_argument("--after", metavar="REV", help="another revision in place of this checkout, which may then be edited meanwhile")
    parser.add_argument("--without-sandbox", action="store_true", help="REV runs without: `HEAD --without-sandbox` shows what it costs")
    parser.add_argument("--corpus", type=Path, metavar="DIR", help="a folder of failing programs (see docs/bench.md)")
    parser.add_argument("--programs", type=int, default=10, metavar="N", help="so many of the corpus, of all its kinds (default 10)")
    parser.add_argument("--bench", type=int, default=10, metavar="N", help="so many of the bench's generated programs (default 10)")
    parser.add_argument("--only", nargs="+", default=[], metavar="NAME", help="these instead, of either; a name may have a *")
    parser.add_argument("--gpu", action="store_true", help="take cases that name CUDA as well")
    parser.add_argument("--list", action="store_true", help="print the names and end")
    parser.add_argument("--repeat", type=count, default=1, metavar="N", help="each program so many times through both (default 1)")
    parser.add_argument("--limit", type=positive, default=600.0, metavar="SECONDS", help="for each run (default 600)")
    parser.add_argument("--jobs", type=count, default=1, metavar="N", help="--jobs of both (default 1)")
    parser.add_argument("--verify-runs", type=count, default=3, metavar="N", help="--verify-runs of both (default 3)")
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="of the generated programs (default 0)")
    parser.add_argument("--python", default=None, help="the interpreter with torch and our dependencies (default: .venv, set up first)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="rewritten after every pair")
    parser.add_argument("--keep", type=Path, metavar="DIR", help="leave programs, logs and results there")
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Compare; 0 where every program has the same status, lines and queries in both revisions, else 1."""
    parser = grammar()
    arguments = parser.parse_args(argv)
    chosen = from_corpus(arguments.corpus, arguments.only, arguments.programs, gpu=arguments.gpu) if arguments.corpus else []
    chosen += from_catalog(arguments.only, arguments.bench, arguments.seed)
    for one in arguments.only:
        if not any(matches(program.name, one) for program in chosen):
            parser.error(f"there is no {one}")
    if arguments.list:
        print("\n".join(program.name for program in chosen))
        return 0
    revisions = {"before": _commit(parser, arguments.revision), "after": arguments.after and _commit(parser, arguments.after)}
    python = own_python(arguments.python)
    with tempfile.TemporaryDirectory(prefix="compare-", ignore_cleanup_errors=True) as made:
        scratch = (arguments.keep or Path(made)).resolve()
        scratch.mkdir(parents=True, exist_ok=True)
        with contextlib.ExitStack() as stack:
            roots = {
                side: stack.enter_context(worktree(commit, Path(made) / side)) if commit else measure.ROOT
                for side, commit in revisions.items()
            }
            for root in roots.values():
                prepare(root, python)
            machine = {"cpus": len(os.sched_getaffinity(0)), "system": platform.platform(), "revisions": revisions}
            setting = measure.Setting(python, arguments.limit, scratch, arguments.verify_runs, arguments.jobs)
            if arguments.without_sandbox:
                # each side makes the header of C++ once on a machine
                setting = dataclasses.replace(setting, kept=scratch / "kept")
            run = runner(roots, setting, "before" if arguments.without_sandbox else "")
            if arguments.without_sandbox:
                for side in roots:  # it makes that, and is not counted
                    run(chosen[0], side)
            found = _compared(pairs(chosen, run, arguments.repeat), arguments.json, machine)
    print("\n" + table(found))
    return 0 if all(pair.equal for pair in found) else 1


def _commit(parser: argparse.ArgumentParser, revision: str) -> str:
    git = ["git", "-C", str(measure.ROOT), "rev-parse", "--verify", "--quiet", f"{revision}^{{commit}}"]
    commit = subprocess.run(git, capture_output=True, text=True, check=False).stdout.strip()
    if not commit:
        parser.error(f"there is no revision {revision}")
    return commit


def _compared(measured: Iterable[Pair], path: Path | None, machine: object) -> list[Pair]:
    """The pairs, each said and saved as it comes."""
    found: list[Pair] = []
    for pair in measured:
        found.append(pair)
        print(line(pair), flush=True)
        rows = [dataclasses.asdict(pair) | {"equal": pair.equal} for pair in found]
        save(path, {"machine": machine, "pairs": rows, "summary": summary(found)})
    return found


if __name__ == "__main__":
    sys.exit(main())
