"""`scripts/gpu-check`: failing and healthy programs on this machine's GPU, judged from outside; see docs/gpu.md."""

from __future__ import annotations

import argparse
import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path
from queue import SimpleQueue

from benchlib import corpus, measure, watch
from benchlib.cli import count, named, own_python, positive, save
from benchlib.gpu_catalog import PARTS, SCENARIOS, Scenario
from benchlib.lanes import Share, gpus, shared
from bot.machine import gpu, interpreter
from bot.sandbox.aside import ask

FACTS = """
import json, platform, torch
found = {"torch": torch.__version__, "python": platform.python_version(), "cuda": torch.version.cuda, "gpu": None}
if torch.cuda.is_available():
    found["gpu"] = torch.cuda.get_device_name()
try:
    import triton
    found["triton"] = triton.__version__
except ImportError:
    pass
print(json.dumps(found))
"""
KEPT = ("result.json", "repro.py")  # of a result directory, for --record
LOG = 20_000  # characters of the first run's output that are recorded
_lane = threading.local()  # `env`: the variables of a thread's share


@dataclass(frozen=True)
class Row:
    """One scenario's result. Times in seconds; `query` is the median of the single queries. `wrong` says what is not as it has to be: empty
    where all is; `slow` what took too long."""

    name: str
    part: int
    status: str
    stage: str | None = None
    phase: str | None = None
    ops_before: int | None = None
    ops_after: int | None = None
    lines: int | None = None
    queries: int = 0
    query: float | None = None
    capture: float = 0.0
    search: float = 0.0
    verification: float = 0.0
    wall: float = 0.0
    ended_by: str | None = None
    reason: str | None = None
    wrong: tuple[str, ...] = ()
    slow: tuple[str, ...] = ()
    sandbox: tuple[str, ...] = field(default=())


def grammar() -> argparse.ArgumentParser:
    """The command line."""
    parser = argparse.ArgumentParser(prog="scripts/gpu-check", description=__doc__, allow_abbrev=False)
    parts = ", ".join(f"{number}: {what}" for number, what in PARTS.items())
    parser.add_argument("--part", type=int, nargs="+", choices=sorted(PARTS), metavar="N", help=f"only these ({parts})")
    parser.add_argument("--only", nargs="+", metavar="NAME", help="these scenarios; a name may have a *")
    parser.add_argument("--list", action="store_true", help="print the names and end")
    parser.add_argument("--python", default=None, help="the interpreter with torch and our dependencies (default: .venv, set up first)")
    parser.add_argument("--jobs", default="1", metavar="N", help="candidates that each scenario may try at once, or auto (default 1)")
    parser.add_argument("--limit", type=positive, default=300.0, metavar="SECONDS", help="the budget of each scenario (default 300)")
    parser.add_argument("--within", type=positive, metavar="SECONDS", help="begin no scenario after so many seconds")
    parser.add_argument("--lanes", type=count, default=1, metavar="N", help="so many at a time; times are those of a busy machine then")
    parser.add_argument("--json", type=Path, metavar="FILE", help="rewritten after every scenario")
    parser.add_argument("--keep", type=Path, metavar="DIR", help="leave programs, logs and results there")
    parser.add_argument("--record", type=Path, metavar="DIR", help="what the tests replay without a GPU: results, repros, logs")
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run the scenarios; 0 where all is as it has to be but for time, else 1, and 2 where there is no GPU."""
    parser = grammar()
    arguments = parser.parse_args(argv)
    chosen = [one for one in SCENARIOS if arguments.part is None or one.part in arguments.part]
    if arguments.only:
        names = named(parser, [one.name for one in chosen], arguments.only)
        chosen = [one for one in chosen if one.name in names]
    if arguments.list:
        print("\n".join(f"{one.part}  {one.name}" for one in chosen))
        return 0
    python = own_python(arguments.python)
    try:
        facts = json.loads(subprocess.run([python, "-c", FACTS], check=True, capture_output=True, text=True).stdout)
    except OSError as error:
        parser.error(f"--python {python}: {error.strerror}")
    except (subprocess.CalledProcessError, ValueError) as error:
        said = (getattr(error, "stderr", "") or "").strip().splitlines()
        parser.error(f"--python {python}: {said[-1] if said else 'it cannot say what torch it has'}")
    if facts["gpu"] is None:
        why = gpu.missing(python, interpreter.LIMIT, ask) or "asked again, it sees one"
        print(f"gpu-check: torch {facts['torch']} sees no GPU here: {why}", file=sys.stderr)
        return 2
    machine = {
        **facts,
        "cpus": len(os.sched_getaffinity(0)),
        "lanes": arguments.lanes,
        "jobs": arguments.jobs,
        "date": time.strftime("%Y-%m-%d"),
    }
    print(", ".join(f"{key} {value}" for key, value in machine.items()), flush=True)
    end = time.monotonic() + (arguments.within or float("inf"))
    rows: list[Row] = []
    with tempfile.TemporaryDirectory(prefix="gpu-check-", ignore_cleanup_errors=True) as made:
        scratch = (arguments.keep or Path(made)).resolve()
        run = partial(judged, python=python, scratch=scratch, limit=arguments.limit, jobs=arguments.jobs, end=end, record=arguments.record)
        with ThreadPoolExecutor(arguments.lanes, initializer=_settle, initargs=(shares(arguments.lanes),)) as executor:
            # the longest first, so that no lane is left with it at the end
            longest_first = sorted(chosen, key=lambda one: -(one.seconds or 0.0))
            for future in as_completed([executor.submit(run, one) for one in longest_first]):
                rows.append(future.result())
                print(_line(rows[-1]), flush=True)
                save(arguments.json, {"machine": machine, "rows": [asdict(one) for one in rows]})
        twins = {one.name: one.twin for one in chosen if one.twin}
        rows = [replace(row, wrong=(*row.wrong, *unlike(scratch / row.name, scratch / twins.get(row.name, row.name)))) for row in rows]
        save(arguments.json, {"machine": machine, "rows": [asdict(one) for one in rows]})
    print("\n" + table(rows))
    bad = [row.name for row in rows if row.wrong]
    print(f"\n{len(rows)} scenarios; not as they have to be: {', '.join(bad) or 'none'}; slower: {_named(rows) or 'none'}")
    return int(bool(bad))


def shares(lanes: int) -> SimpleQueue[Share]:
    """What each of several `lanes` has of a machine with several GPUs; with one GPU they share all there is."""
    queue: SimpleQueue[Share] = SimpleQueue()
    everything = sorted(os.sched_getaffinity(0))
    for share in shared(lanes, everything, gpus()) if len(gpus()) > 1 else [(set(everything), {})] * lanes:
        queue.put(share)
    return queue


def _settle(left: SimpleQueue[Share]) -> None:
    """Take one of the shares that are left, for this thread and all that it starts."""
    cpus, _lane.env = left.get()
    os.sched_setaffinity(0, cpus)


def _environment(more: Mapping[str, str]) -> dict[str, str]:
    """The variables of a process of this lane, and `more`."""
    return watch.environment({**getattr(_lane, "env", {}), **more})


def judged(scenario: Scenario, *, python: str, scratch: Path, limit: float, jobs: str, end: float, record: Path | None) -> Row:
    """Minimize one scenario with a budget of `limit` seconds and so many `jobs` below `scratch`, and look at what came out. Not begun
    after `end`."""
    if time.monotonic() > end:
        return Row(scenario.name, scenario.part, "not run", wrong=("there was no time",))
    for package in scenario.needs:
        if (
            importlib.util.find_spec(package) is None
            and subprocess.run([python, "-c", f"import {package}"], capture_output=True, check=False).returncode
        ):
            return Row(scenario.name, scenario.part, "not run", reason=f"{package} is not installed")
    place = scratch / scenario.name
    shutil.rmtree(place, ignore_errors=True)
    for name in ("tmp", "work", "alone", "control"):
        (place / name).mkdir(parents=True)
    (place / "work" / "program.py").write_text(scenario.text, encoding="utf-8")
    ours = {"TMPDIR": str(place / "tmp"), "TORCH_MINIFY_CACHE_DIR": str(place / "tmp" / "kept")}
    path = os.pathsep.join([str(measure.ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
    out = place / "work" / "minified"
    argv = [python, "-m", "bot", "run", "program.py", "--out", str(out), "--budget", f"{limit:.0f}s", "--jobs", jobs, *scenario.options]
    env = _environment({**ours, "PYTHONPATH": path})
    ran = watch.run(argv, cwd=place / "work", env=env, limit=limit + 120, log=place / "log.txt", sample=False)
    file, repro = out / "result.json", out / "repro.py"
    if not file.exists():
        said = [line for line in ran.output.splitlines() if line.strip()][-1:]
        return Row(scenario.name, scenario.part, f"exit {ran.status}", wall=ran.seconds, reason="".join(said), wrong=("no result",))
    found = json.loads(file.read_text(encoding="utf-8"))
    text = repro.read_text(encoding="utf-8") if repro.exists() else ""
    wrong = [*as_expected(scenario, found, text)]
    if text and found["status"] != "not_reproduced":
        wrong += _alone(scenario, python, repro, place)
    if record is not None:
        _record(record / scenario.name, out)
    reduction, timing = found["reduction"], found["timing"]
    seconds = {"all": (ran.seconds, scenario.seconds), "search": (timing["search"], scenario.search)}
    return Row(
        scenario.name,
        scenario.part,
        found["status"],
        stage=found.get("stage"),
        phase=(found.get("signature") or {}).get("phase"),
        ops_before=reduction.get("ops_before"),
        ops_after=reduction.get("ops_after"),
        lines=measure.code_lines(text) if text else None,
        queries=reduction["queries"],
        query=measure.seconds_per_query(out / "reduction.jsonl"),
        capture=timing["capture"],
        search=timing["search"],
        verification=timing["verification"],
        wall=round(ran.seconds, 1),
        ended_by=found.get("ended_by"),
        reason=found.get("reason"),
        wrong=tuple(wrong),
        slow=tuple(f"{what} {took:.0f} s (goal {most:g})" for what, (took, most) in seconds.items() if most and took > most),
        sandbox=tuple(found.get("sandbox", ())),
    )


def as_expected(scenario: Scenario, found: dict[str, object], repro: str) -> list[str]:
    """What of the result and its repro is not as the scenario has it, one sentence each."""
    wrong = []
    if found["status"] not in scenario.status.split("|"):
        wrong.append(f"status {found['status']}")
    if "minimized" not in scenario.status:
        return wrong
    after = found["reduction"].get("ops_after")  # type: ignore[attr-defined]
    if scenario.ops is not None and after is not None and after > scenario.ops:
        wrong.append(f"{after} operations")
    if measure.code_lines(repro) > scenario.lines:
        wrong.append(f"{measure.code_lines(repro)} lines")
    wrong += [f"lacks {one!r}" for one in scenario.has if not re.search(one, repro)]
    return wrong + [f"has {one!r}" for one in scenario.lacks if re.search(one, repro)]


def unlike(one: Path, twin: Path) -> list[str]:
    """What of the repros and signatures of two scenarios, below these directories, differs; comments do not count, nor one that was not
    run."""
    outs = [place / "work" / "minified" for place in (one, twin)]
    if not all((out / "result.json").exists() for out in outs):
        return []
    wrong = []
    found = [json.loads((out / "result.json").read_text(encoding="utf-8"))["signature"] for out in outs]
    if found[0] != found[1] and None not in found:
        wrong.append(f"signature not that of {twin.name}")
    texts = [(out / "repro.py").read_text(encoding="utf-8") if (out / "repro.py").exists() else "" for out in outs]
    plain = [[line for line in text.splitlines() if not line.startswith("#")] for text in texts]
    return wrong + ([f"repro not that of {twin.name}"] if plain[0] != plain[1] else [])


def _alone(scenario: Scenario, python: str, repro: Path, place: Path) -> list[str]:
    """What is wrong with the repro, run alone and with the compiler taken out, with nothing of ours on the path."""
    lane = getattr(_lane, "env", {})  # of this thread, whose CPUs those that it starts have as well

    def run(name: str, *command: str) -> watch.Run:
        shutil.copy(repro, place / name / "repro.py")
        env = watch.environment({**lane, "TMPDIR": str(place / "tmp"), "TORCHINDUCTOR_CACHE_DIR": str(place / name / "cache")})
        argv = (python, *command, "repro.py")
        return watch.run(argv, cwd=place / name, env=env, limit=measure.ALONE_LIMIT, log=place / f"{name}.txt", sample=False)

    with ThreadPoolExecutor(2) as executor:
        alone, control = executor.map(lambda words: run(*words), (("alone",), ("control", str(corpus.CONTROL))))
    wrong = []
    if alone.status in (0, None) or not re.search(scenario.says, alone.output):
        wrong.append(f"alone it does not fail like that (exit {alone.status})")
    if control.status != 0:
        wrong.append(f"with the compiler taken out it ends with {control.status}")
    reached = corpus.REACHED.findall(control.output)
    return wrong if reached and int(reached[-1]) else [*wrong, "it does not reach the compiler"]


def _record(place: Path, out: Path) -> None:
    place.mkdir(parents=True, exist_ok=True)
    for name in KEPT:
        if (out / name).exists():
            shutil.copy(out / name, place / name)
    log = out / "original" / "log.txt"
    if log.exists():
        (place / "log.txt").write_text(log.read_text(encoding="utf-8", errors="replace")[-LOG:], encoding="utf-8")


def _named(rows: Sequence[Row]) -> str:
    return ", ".join(f"{row.name} ({'; '.join(row.slow)})" for row in rows if row.slow)


def _line(row: Row) -> str:
    ops = f", {row.ops_before} -> {row.ops_after} ops" if row.ops_before is not None else ""
    facts = f"{row.status}, {row.stage or '-'}, {row.phase or '-'}{ops}, {row.lines} lines, {row.queries} queries"
    times = f"{row.capture:.0f} + {row.search:.0f} + {row.verification:.0f}, {row.wall:.0f} s in all"
    return f"{row.name}: {facts}, {times}{'; ' + '; '.join(row.wrong) if row.wrong else ''}{'; ' + row.reason if row.reason else ''}"


def table(rows: Sequence[Row]) -> str:
    """The table of docs/gpu.md."""
    titles = ("scenario", "result", "ops", "lines", "queries", "s a query", "capture s", "search s", "proof s", "all s")
    head = f"| {' | '.join(titles)} |\n|{'---|' * len(titles)}"
    lines = []
    for row in rows:
        ops = f"{row.ops_before} → {row.ops_after}" if row.ops_before is not None else ""
        times = " | ".join(f"{value:.0f}" for value in (row.capture, row.search, row.verification, row.wall))
        result = f"{row.status}{', ' + row.stage if row.stage else ''}"
        each = "" if row.query is None else f"{row.query:.1f}"
        lines.append(f"| {row.name} | {result} | {ops} | {row.lines or ''} | {row.queries} | {each} | {times} |")
    return "\n".join([head, *lines])


if __name__ == "__main__":
    sys.exit(main())
