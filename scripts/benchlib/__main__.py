"""`scripts/bench`: ours and PyTorch's minifier on the same failing programs, in one run, on one machine."""

from __future__ import annotations

import argparse
import dataclasses
import json
import multiprocessing
import os
import platform
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

from benchlib import corpus, measure, programs, report, truth
from benchlib.cli import count, named, own_python, positive, save
from benchlib.lanes import gpus, shared

CHILD = "import json, torch; print(json.dumps({'torch': torch.__version__, 'threads': torch.get_num_threads()}))"


def grammar() -> argparse.ArgumentParser:
    """The command line."""
    parser = argparse.ArgumentParser(prog="scripts/bench", description=__doc__, allow_abbrev=False)
    parser.add_argument("what", nargs="*", metavar="corpus DIR", help="instead: every case of a folder through ours (see docs/bench.md)")
    parser.add_argument("--python", default=None, help="the interpreter with torch and our dependencies (default: .venv, set up first)")
    parser.add_argument("--only", nargs="+", metavar="NAME", help="these programs or cases; a name may have a *")
    parser.add_argument("--list", action="store_true", help="print the names and end")
    parser.add_argument("--quick", action="store_true", help="the two smallest programs, 30 s each, one verification run")
    parser.add_argument("--limit", type=positive, default=600.0, metavar="SECONDS", help="for each program and tool (default 600)")
    parser.add_argument("--ours-only", action="store_true", help="leave PyTorch's out")
    parser.add_argument("--modes", nargs="+", default=["isolate", "no-isolate"], choices=["isolate", "no-isolate"], help="of PyTorch's")
    parser.add_argument("--enough", type=positive, metavar="RATIO", help="end PyTorch's search where it has taken RATIO times ours")
    parser.add_argument("--jobs", type=count, default=1, metavar="N", help="--jobs of ours (default 1)")
    parser.add_argument("--verify-runs", type=count, default=3, metavar="N", help="--verify-runs of ours (default 3)")
    parser.add_argument("--lanes", type=count, default=1, metavar="N", help="so many programs at a time, each on its share of the CPUs")
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="of the first graph (default 0)")
    parser.add_argument("--seeds", type=count, default=1, metavar="N", help="so many graphs of each generated sort (default 1)")
    parser.add_argument("--embed", action="store_true", help="corpus: each case behind a hundred lines of healthy code")
    parser.add_argument("--busy", type=count, default=0, metavar="N", help="corpus: beside N processes that never rest")
    parser.add_argument("--start", action="store_true", help="corpus: say when the search began, beside what the program takes alone")
    parser.add_argument("--json", type=Path, metavar="FILE", help="rewritten after every run")
    parser.add_argument(
        "--read", type=Path, nargs="+", metavar="FILE", help="print what these --json files of programs hold together, and end"
    )
    parser.add_argument("--keep", type=Path, metavar="DIR", help="leave programs, logs and results there")
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Measure; 0 where every repro of ours is what it claims to be and nothing was asked twice, else 1."""
    given = list(sys.argv[1:] if argv is None else argv)
    if given[:1] == ["truth"]:
        return truth.main(given[1:])
    parser = grammar()
    arguments = parser.parse_args(argv)
    cases = None
    if arguments.what:
        if arguments.what[0] != "corpus" or len(arguments.what) != 2:
            parser.error("the only thing to bench by name is: corpus DIR")
        cases = corpus.read(Path(arguments.what[1]))
    if arguments.lanes > len(os.sched_getaffinity(0)):
        parser.error(f"--lanes {arguments.lanes}: there are fewer CPUs")
    names = _chosen(parser, arguments, [case.name for case in cases] if cases is not None else list(programs.CATALOG))
    if arguments.list:
        print("\n".join(names))
        return 0
    if arguments.read:
        return _said(_read(parser, arguments.read))
    python = own_python(arguments.python)
    facts = json.loads(subprocess.run([python, "-c", CHILD], check=True, capture_output=True, text=True).stdout)
    cpus = len(os.sched_getaffinity(0))
    machine = {**facts, "cpus": cpus, "system": platform.platform(), "load_before": os.getloadavg()[0], "lanes": arguments.lanes}
    with tempfile.TemporaryDirectory(prefix="bench-", ignore_cleanup_errors=True) as made:
        scratch = (arguments.keep or Path(made)).resolve()
        scratch.mkdir(parents=True, exist_ok=True)
        limit = min(arguments.limit, 30.0) if arguments.quick else arguments.limit
        runs = 1 if arguments.quick else arguments.verify_runs
        setting = measure.Setting(python, limit, scratch, runs, arguments.jobs, arguments.enough)
        print(f"torch {facts['torch']}, {cpus} CPUs, load {machine['load_before']:.1f}, limit {limit:g} s", flush=True)
        if cases is not None:
            return _corpus([case for case in cases if case.name in names], setting, arguments, machine)
        return _programs(names, setting, arguments, machine)


def _chosen(parser: argparse.ArgumentParser, arguments: argparse.Namespace, names: Sequence[str]) -> list[str]:
    if arguments.quick and not arguments.only and not arguments.what:
        return list(programs.QUICK)
    return named(parser, names, arguments.only or ["*"])


def _measured(setting: measure.Setting, modes: Sequence[str], name: str, seed: int) -> Iterator[measure.Measure]:
    """Ours, then PyTorch's in each of these modes that the program has."""
    program = programs.program(name, seed)
    own = measure.ours(program, setting)
    yield own
    for mode in program.modes:
        if modes and (mode == "in-process" or mode in modes):
            yield measure.theirs(program, setting, mode, setting.limit_beside(own))


def _all_measured(setting: measure.Setting, modes: Sequence[str], name: str, seed: int) -> list[measure.Measure]:
    return list(_measured(setting, modes, name, seed))


def _settle(lanes: Any) -> None:
    """Take one of the shares of the machine, for this process and all that it starts."""
    cpus, env = lanes.get()
    os.sched_setaffinity(0, cpus)
    os.environ.update(env)


def _in_lanes(setting: measure.Setting, modes: Sequence[str], chosen: Sequence[tuple[str, int]], lanes: int) -> Iterator[measure.Measure]:
    """The runs of each program, several programs at the same time, each lane with CPUs of its own and one GPU."""
    processes = multiprocessing.get_context("fork")
    shares = processes.SimpleQueue()
    for share in shared(lanes, sorted(os.sched_getaffinity(0)), gpus()):
        shares.put(share)
    with ProcessPoolExecutor(lanes, processes, _settle, (shares,)) as pool:
        for rows in pool.map(partial(_all_measured, setting, modes), *zip(*chosen, strict=True)):
            yield from rows


def _programs(names: Iterable[str], setting: measure.Setting, arguments: argparse.Namespace, machine: object) -> int:
    rows: list[measure.Measure] = []
    seeds = range(arguments.seed, arguments.seed + arguments.seeds)
    chosen = [(name, seed) for name in names for seed in seeds if seed == arguments.seed or programs.program(name, seed).generated]
    modes = [] if arguments.ours_only else arguments.modes
    if arguments.lanes == 1:
        found = (row for name, seed in chosen for row in _measured(setting, modes, name, seed))
    else:
        found = _in_lanes(setting, modes, chosen, arguments.lanes)
    for row in found:
        rows.append(row)
        print(report.line(row), flush=True)
        content = {"machine": machine, "rows": [dataclasses.asdict(row) for row in rows]}
        ratios = [dataclasses.asdict(ratio) for ratio in report.ratios(rows)]
        save(arguments.json, {**content, "ratios": ratios, "summary": report.summary(rows)})
    return _said(rows)


def _read(parser: argparse.ArgumentParser, paths: Iterable[Path]) -> list[measure.Measure]:
    rows: list[measure.Measure] = []
    for path in paths:
        try:
            rows.extend(measure.Measure(**row) for row in json.loads(path.read_text(encoding="utf-8"))["rows"])
        except (OSError, ValueError, KeyError, TypeError) as e:
            parser.error(f"{path} is not the --json file of a bench of programs: {e}")
    return rows


def _said(rows: Sequence[measure.Measure]) -> int:
    """Prints everything; the exit status."""
    print("\n" + report.table(rows))
    if any(row.tool != "ours" for row in rows):
        print("\nPyTorch's time over ours (> where the limit cut PyTorch's), and our queries in percent of theirs:")
        print(report.comparison(rows))
    print("\n" + "\n".join(f"{key}: {value}" for key, value in report.summary(rows).items() if value is not None))
    mine = [row for row in rows if row.tool == "ours"]
    return 0 if all(row.same and row.agrees and not row.duplicates for row in mine) else 1


def _corpus(cases: Sequence[corpus.Case], setting: measure.Setting, arguments: argparse.Namespace, machine: object) -> int:
    verdicts: list[corpus.Verdict] = []
    for case in cases:
        verdicts.append(corpus.judge(case, setting, embed=arguments.embed, beside=arguments.busy, timed=arguments.start))
        print(corpus.line(verdicts[-1]), flush=True)
        found = corpus.summary(verdicts)
        goals = [dataclasses.asdict(goal) for goal in corpus.goals(found)]
        rows = [corpus.row(verdict) for verdict in verdicts]
        save(arguments.json, {"machine": machine, "rows": rows, "summary": found, "goals": goals})
    print("\n" + corpus.table(verdicts) + "\n\n" + corpus.said(verdicts))
    return 1 if any(verdict.wrong or verdict.died or verdict.duplicates for verdict in verdicts) else 0


if __name__ == "__main__":
    sys.exit(main())
