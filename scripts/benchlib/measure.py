"""One program through one tool: what it cost and what is left."""

from __future__ import annotations

import getpass
import json
import re
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

from benchlib import plant, watch
from benchlib.programs import Program

ROOT = Path(__file__).resolve().parents[2]
ALONE_LIMIT = 300.0  # seconds for a repro by itself
GRACE = 60.0  # seconds that ours may go over its budget before it is killed


@dataclass(frozen=True)
class Measure:
    """`tool`: ours, or pytorch with its mode. Times in seconds, memory in MiB. None: not known.

    `search`: ours `reduction.seconds`; PyTorch's the whole `minify` command. `wall`: everything, for PyTorch's the dump as well.
    `cut`: ended by the limit, so its times are lower bounds. `same`: its repro, run alone, fails as the program does;
    `agrees`: it has the lines that ours says it has.
    """

    program: str
    seed: int
    tool: str
    status: str
    wall: float
    search: float | None = None
    cut: bool = False
    queries: int = 0
    duplicates: int = 0
    nodes: int | None = None
    ops_before: int | None = None
    ops_after: int | None = None
    optimum: int = 1
    elements: int | None = None
    lines: int | None = None
    peak: float = 0.0
    same: bool | None = None
    agrees: bool = True
    generated: bool = False
    isolated: bool = False
    timing: Mapping[str, float] = field(default_factory=dict)


# The command line, with no layer of the sandbox on.
UNCONFINED = """
import functools, sys
from bot import cli
from bot.engine import options
options.Options = functools.partial(options.Options, sandbox=False)
sys.exit(cli.main())
"""


@dataclass(frozen=True)
class Setting:
    """How to measure: the interpreter, seconds a program and tool may take, where files go, options of ours.

    `enough`: PyTorch's search is ended where it has taken so many times ours. `root`: the checkout of ours that is run, `confined`: with
    its sandbox. `kept`: what a machine makes once is kept there from one run to the next; without it each run makes it anew.
    """

    python: str
    limit: float
    scratch: Path
    verify_runs: int = 3
    jobs: int = 1
    enough: float | None = None
    root: Path = ROOT
    confined: bool = True
    kept: Path | None = None

    def limit_beside(self, own: Measure) -> float:
        """Seconds that PyTorch's search may take beside this run of ours."""
        if self.enough is None or not own.search or own.cut:
            return self.limit
        return min(self.limit, self.enough * own.search)


@dataclass(frozen=True)
class Minimized:
    """What a run of ours left: its process, `result.json` ({} where there is none), the repro's path, and its questions."""

    run: watch.Run
    result: Mapping[str, Any]
    repro: Path
    queries: int
    duplicates: int

    @property
    def status(self) -> str:
        """The status that `result.json` says; where it says none: killed, or the exit status."""
        return "killed" if self.run.status is None else str(self.result.get("status", f"exit {self.run.status}"))

    @property
    def reduction(self) -> Mapping[str, Any]:
        """`reduction` of `result.json`."""
        return self.result.get("reduction", {})

    @property
    def lines(self) -> int | None:
        """Code lines of the repro; None where there is none."""
        return code_lines(self.repro.read_text(encoding="utf-8")) if self.repro.exists() else None


def code_lines(text: str) -> int:
    """Lines that are neither blank nor a comment."""
    return sum(1 for line in text.splitlines() if line.strip() and not line.strip().startswith("#"))


def agrees(repro: Path, reduction: Mapping[str, Any]) -> bool:
    """Whether the repro is the script that `reduction` of result.json speaks of, as far as its lines show."""
    return not repro.exists() or code_lines(repro.read_text(encoding="utf-8")) == reduction.get("lines_after")


def entries(path: Path) -> list[dict[str, Any]]:
    """The objects of a file of JSON lines; a line that a kill cut off is left out."""
    found = []
    for line in path.read_text(encoding="utf-8").splitlines() if path.exists() else []:
        try:
            found.append(json.loads(line))
        except ValueError:
            continue
    return found


def questions(path: Path) -> tuple[int, int]:
    """How many questions of ours a ledger holds, and how many of them were asked again.

    A question is its script alone (`text`, a hash of it), and how often it has to pass where it fails only now and then. That a form of
    the program can be the start is found out before the search, and with the compiler left early first.
    """
    asked = [entry for entry in entries(path) if "key" in entry]
    seen, again = set(), 0
    for entry in asked:
        question = (entry.get("text", entry["key"]), entry.get("tries", 1))
        again += question in seen and not entry.get("pass", "").startswith("start:")
        seen.add(question)
    return len(asked), again


def seconds_per_query(path: Path) -> float | None:
    """The median of the seconds from a query to its answer, according to the ledger `path`, with the wait for a free worker; None without
    one. Answers from the memo have no time."""
    each = [entry["ms"] / 1000 for entry in entries(path) if "ms" in entry]
    return round(median(each), 3) if each else None


def _place(program: Program, setting: Setting, tool: str, site: str) -> tuple[Path, dict[str, str]]:
    """A directory with the program in it, and the environment of its runs."""
    place = setting.scratch / f"{program.name}-{program.seed}" / tool
    shutil.rmtree(place, ignore_errors=True)
    for name in ("tmp", "site", "work"):
        (place / name).mkdir(parents=True)
    (place / "work" / "program.py").write_text(program.text, encoding="utf-8")
    path = []
    if site:
        (place / "site" / "sitecustomize.py").write_text(site, encoding="utf-8")
        path = [str(place / "site")]
    kept = setting.kept or place / "tmp" / "kept"
    if setting.kept is not None:
        # without a sandbox a machine keeps the header of C++ where Inductor puts it
        headers = place / "tmp" / f"torchinductor_{getpass.getuser()}" / "precompiled_headers"
        (kept / "own").mkdir(parents=True, exist_ok=True)
        headers.parent.mkdir()
        headers.symlink_to(kept / "own")
    env = {"TMPDIR": str(place / "tmp"), "PYTHONPATH": ":".join(path), "TORCH_MINIFY_CACHE_DIR": str(kept)}
    return place, watch.environment(env)


def fails_alone(repro: Path, program: Program, setting: Setting) -> bool:
    """Whether the file, in an empty directory with cold caches, fails as the program does. The planted fault is there."""
    place, env = _place(program, setting, f"alone-{repro.parent.parent.name}", program.fault)
    shutil.copy(repro, place / "work" / "repro.py")
    env["TORCHINDUCTOR_CACHE_DIR"] = str(place / "tmp" / "cache")
    run = watch.run(
        [setting.python, "repro.py"], cwd=place / "work", env=env, limit=ALONE_LIMIT, log=place / "log.txt", sample=False
    )  # fmt: skip
    return run.status not in (0, None) and re.search(program.says, run.output) is not None


def minimize(script: Path, env: Mapping[str, str], setting: Setting, hang_after: float | None) -> Minimized:
    """`python -m bot run SCRIPT` in the script's directory, with the limit as its budget; the result goes to `../out`.

    `env` is the environment of the run; the root of `setting` comes first on its PYTHONPATH. `hang_after` in
    seconds; None leaves it to the budget.
    """
    place = script.parent.parent
    out = place / "out"
    env = {**env, "PYTHONPATH": ":".join(filter(None, [str(setting.root), env.get("PYTHONPATH")]))}
    ours = ["-m", "bot"] if setting.confined else ["-c", UNCONFINED]
    command = [setting.python, *ours, "run", script.name, "--out", str(out), "--verify-runs", str(setting.verify_runs)]
    command += ["--jobs", str(setting.jobs), "--budget", f"{setting.limit:g}s"]
    command += ["--hang-after", f"{hang_after:g}s"] if hang_after is not None else []
    run = watch.run(command, cwd=script.parent, env=env, limit=setting.limit + GRACE, log=place / "log.txt")
    result = json.loads((out / "result.json").read_text(encoding="utf-8")) if (out / "result.json").exists() else {}
    return Minimized(run, result, out / "repro.py", *questions(out / "reduction.jsonl"))


def minimized(program: Program, setting: Setting, tool: str) -> Minimized:
    """`program` through ours, in a directory that is named for `tool`, with its planted fault."""
    place, env = _place(program, setting, tool, program.fault)
    # none of the programs hangs, but on a busy machine the large ones compile for longer than a minute
    return minimize(place / "work" / "program.py", env, setting, program.hang_after or setting.limit / 2)


def ours(program: Program, setting: Setting) -> Measure:
    """What ours made of a program, and whether its repro fails alone."""
    found = minimized(program, setting, "ours")
    run, reduction = found.run, found.reduction
    return Measure(
        program.name,
        program.seed,
        "ours",
        found.status,
        run.seconds,
        search=reduction.get("seconds"),
        cut=run.status is None or found.result.get("ended_by", "fixed_point") != "fixed_point",
        queries=found.queries,
        duplicates=found.duplicates,
        ops_before=reduction.get("ops_before"),
        ops_after=reduction.get("ops_after"),
        optimum=program.optimum,
        elements=reduction.get("input_elements_after"),
        lines=found.lines,
        peak=run.peak,
        same=fails_alone(found.repro, program, setting) if found.repro.exists() else None,
        agrees=agrees(found.repro, reduction),
        generated=program.generated,
        timing=found.result.get("timing", {}),
    )


def theirs(program: Program, setting: Setting, mode: str, limit: float) -> Measure:
    """PyTorch's: run the program with its dump on, then `minifier_launcher.py minify`, `limit` seconds at most."""
    tool = f"pytorch {mode}"
    place, env = _place(program, setting, f"pytorch-{mode}", plant.counter(program.fault))
    log = place / "queries.jsonl"
    dumps = {**env, **program.env, "TORCH_COMPILE_DEBUG_DIR": str(place), "TORCHINDUCTOR_CACHE_DIR": str(place / "tmp" / "cache")}
    dump = watch.run(
        [setting.python, "program.py"], cwd=place / "work", env=dumps, limit=setting.limit, log=place / "dump.txt"
    )  # fmt: skip
    facts = Measure(
        program.name, program.seed, tool, "nothing dumped", dump.seconds, peak=dump.peak, optimum=program.optimum,
        generated=program.generated, isolated=mode == "isolate", timing={"dump": dump.seconds},
    )  # fmt: skip
    launchers = sorted(place.glob("torch_compile_debug/*/minifier/minifier_launcher.py"))
    if not launchers:
        return facts
    work = place / "minify"
    work.mkdir()
    minify = watch.run(
        [setting.python, str(launchers[-1]), "minify", *(["--no-isolate"] if mode == "no-isolate" else [])],
        cwd=work,
        env={**dumps, "BENCH_QUERIES": str(log)},
        limit=limit,
        log=place / "minify.txt",
    )
    entered = entries(log)
    queries = [entry for entry in entered if entry["what"] == "query"]
    accepted = [entry for entry in entered if entry["what"] == "accepted"]
    # where the limit ended it, the smallest graph that failed is what it had
    failing = [entry for entry in queries if entry["fails"]] + accepted
    left = min(failing, key=lambda entry: int(entry["ops"])) if minify.status is None and failing else (failing or [{}])[-1]
    repro = work / "repro.py"
    status = {None: "limit", 0: "minified"}.get(minify.status, f"exit {minify.status}")
    return Measure(
        **{
            **facts.__dict__,
            "status": status,
            "wall": dump.seconds + minify.seconds,
            "search": minify.seconds,
            "cut": minify.status is None,
            "queries": len(queries),
            "duplicates": len(queries) - len({entry["key"] for entry in queries}),
            "nodes": queries[0]["nodes"] if queries else None,
            "ops_before": queries[0]["ops"] if queries else None,
            "ops_after": left.get("ops"),
            "elements": left.get("elements"),
            "lines": code_lines(repro.read_text(encoding="utf-8")) if repro.exists() else None,
            "peak": max(dump.peak, minify.peak),
            "same": fails_alone(repro, program, setting) if repro.exists() else None,
            "timing": {"dump": dump.seconds, "minify": minify.seconds},
        }
    )
