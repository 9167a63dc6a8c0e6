"""`scripts/bench truth`: programs with a planted error, and their healthy twins; see docs/truth.md.

A planted program has to end in a repro that holds the wrong operator and passes without the plant, or in a refusal. A healthy one has to
end in "not reproduced".
"""

from __future__ import annotations

import argparse
import collections
import json
import os
import queue
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from benchlib.cli import count, named, own_python, positive, save
from benchlib.lanes import Share, gpus, shared
from benchlib.planted import DEPTHS, Row, healed, holds, rows, sample

ROOT = Path(__file__).resolve().parents[2]
# Seconds for a repro run alone.
ALONE = 300.0
# Verdicts that must not be.
BAD = ("SLIP", "FALSE", "LOST")


class Lane(threading.local):
    """What the programs of this thread's lane are told beside the environment: its GPU, where there are several lanes."""

    def __init__(self) -> None:
        self.env: dict[str, str] = {}


LANE = Lane()


@dataclass(frozen=True)
class Ending:
    """How one program ended. `verdict` is found, refused, SLIP, quiet (a healthy one, not reproduced), FALSE, or LOST: no result came."""

    name: str
    verdict: str
    status: str
    stage: str | None
    ops_before: int | None
    ops_after: int | None
    lines: int
    queries: int
    seconds: float
    reason: str | None
    repro: str | None = None


def grammar() -> argparse.ArgumentParser:
    """The command line."""
    parser = argparse.ArgumentParser(prog="scripts/bench truth", description=__doc__, allow_abbrev=False)
    parser.add_argument("--python", default=None, help="the interpreter with torch and our dependencies (default: .venv, set up first)")
    parser.add_argument("--only", nargs="+", metavar="NAME", help="these programs; a name may have a *")
    parser.add_argument("--sample", type=count, metavar="N", help="N planted programs and half as many healthy ones")
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="of the sample (default 0)")
    parser.add_argument(
        "--depths",
        type=count,
        nargs="+",
        default=DEPTHS,
        metavar="N",
        help="blocks of the models, some 30 operations each (default 2 8 18)",
    )
    parser.add_argument("--list", action="store_true", help="print the names and end")
    parser.add_argument("--limit", type=positive, default=600.0, metavar="SECONDS", help="the budget of each program (default 600)")
    parser.add_argument("--device", default="cpu", choices=["cpu", "cuda"], help="where the programs run (default cpu)")
    parser.add_argument(
        "--lanes", type=count, default=1, metavar="N", help="so many programs at a time, each lane with its share of the CPUs and one GPU"
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="rewritten after every program")
    parser.add_argument("--read", type=Path, nargs="+", metavar="FILE", help="print the table of these --json files, and end")
    parser.add_argument("--keep", type=Path, metavar="DIR", help="leave programs, logs and results there")
    return parser


def main(argv: Sequence[str]) -> int:
    """Run the programs; 0 where nothing slipped and nothing healthy was called wrong, else 1."""
    parser = grammar()
    arguments = parser.parse_args(argv)
    if arguments.read:
        known = {one["name"]: Ending(**one) for file in arguments.read for one in json.loads(file.read_text(encoding="utf-8"))["endings"]}
        return _said(list(known.values()))
    chosen = rows(arguments.depths)
    if arguments.only:
        names = named(parser, [row.name for row in chosen], arguments.only)
        chosen = [row for row in chosen if row.name in names]
    if arguments.sample:
        chosen = sample(chosen, arguments.sample, arguments.seed)
    if not chosen:
        parser.error("there is no such program; --list prints the names")
    if arguments.list:
        print("\n".join(row.name for row in chosen))
        return 0
    python = own_python(arguments.python)
    with tempfile.TemporaryDirectory(prefix="truth-", ignore_cleanup_errors=True) as made:
        scratch = (arguments.keep or Path(made)).resolve()
        endings: list[Ending] = []
        shares: queue.SimpleQueue[Share] = queue.SimpleQueue()
        for share in shared(arguments.lanes, sorted(os.sched_getaffinity(0)), gpus()):
            shares.put(share)
        with ThreadPoolExecutor(arguments.lanes, initializer=_settle, initargs=(shares,)) as executor:
            asked = [executor.submit(ending, row, arguments.device, python, scratch / row.name, arguments.limit) for row in chosen]
            for future in as_completed(asked):
                endings.append(future.result())
                print(_line(endings[-1]), flush=True)
                save(arguments.json, {"endings": [asdict(one) for one in endings]})
    return _said(endings)


def _settle(shares: queue.SimpleQueue[Share]) -> None:
    """Take one of the `shares` for this thread, and for what it starts."""
    cpus, LANE.env = shares.get()
    os.sched_setaffinity(0, cpus)


def ending(row: Row, device: str, python: str, place: Path, limit: float) -> Ending:
    """Run one program on this device through ours, in the directory `place` with a budget of `limit` seconds, and judge what came of it
    from outside."""
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(parents=True)
    script, out = place / "program.py", place / "minified"
    script.write_text(row.text(device), encoding="utf-8")
    started = time.monotonic()
    words = [python, "-m", "bot", "run", str(script), "--out", str(out), "--budget", f"{limit:.0f}s", "--hang-after", f"{limit / 2:.0f}s"]
    env = {**os.environ, **LANE.env, "PYTHONPATH": os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])}
    with open(place / "log.txt", "w", encoding="utf-8") as log:
        subprocess.run(words, stdout=log, stderr=subprocess.STDOUT, cwd=place, env=env, check=False, timeout=limit * 2 + 600)
    seconds = time.monotonic() - started
    file, repro = out / "result.json", out / "repro.py"
    result: dict[str, Any] = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {"status": "nothing", "reduction": {}}
    status, said = str(result["status"]), result.get("reason")
    if not file.exists():
        said = "".join((place / "log.txt").read_text(encoding="utf-8").splitlines()[-1:])
    text = repro.read_text(encoding="utf-8") if status in ("minimized", "reproduced", "flaky") and repro.exists() else None
    if not file.exists():
        verdict = "LOST"
    elif not row.percent:
        verdict = "quiet" if status == "not_reproduced" else "FALSE" if text is not None else "refused"
    elif text is None:
        verdict = "refused"
    else:
        verdict = "found" if holds(text, row.operator) and _passes(healed(text), python, place) else "SLIP"
    found = result["reduction"]
    return Ending(
        name=row.name,
        verdict=verdict,
        status=status,
        stage=result.get("stage"),
        ops_before=found.get("ops_before"),
        ops_after=found.get("ops_after"),
        lines=found.get("lines_after", 0),
        queries=found.get("queries", 0),
        seconds=round(seconds, 1),
        reason=said,
        repro=text,
    )


def _passes(text: str, python: str, place: Path) -> bool:
    """Whether a script passes alone, with a compile directory of its own."""
    alone = place / "healed"
    alone.mkdir(exist_ok=True)
    (alone / "healed.py").write_text(text, encoding="utf-8")
    env = {**os.environ, **LANE.env, "TORCHINDUCTOR_CACHE_DIR": str(alone / "cache"), "TORCHINDUCTOR_FORCE_DISABLE_CACHES": "1"}
    ran = subprocess.run([python, "healed.py"], cwd=alone, env=env, capture_output=True, text=True, check=False, timeout=ALONE)
    (alone / "log.txt").write_text(ran.stdout + ran.stderr, encoding="utf-8")
    return ran.returncode == 0


def _line(one: Ending) -> str:
    ops = f"{one.ops_before} -> {one.ops_after} ops" if one.ops_before is not None else "-"
    tail = f"; {one.reason}" if one.reason else ""
    facts = (one.status, one.stage or "-", ops, f"{one.lines} lines", f"{one.queries} queries", f"{one.seconds:.0f} s")
    return f"{one.name}: {one.verdict} ({', '.join(facts)}){tail}"


def _said(endings: Iterable[Ending]) -> int:
    """Print the table."""
    known = list(endings)
    print("\n| operator | programs | found | refused | not as it has to be | most operations left |\n|---|---|---|---|---|---|")
    for name in dict.fromkeys(one.name.split("-")[0] for one in known):
        own = [one for one in known if one.name.split("-")[0] == name]
        verdicts = collections.Counter(one.verdict for one in own)
        most = max((one.ops_after for one in own if one.ops_after is not None and one.verdict == "found"), default="-")
        found, refused = str(verdicts["found"]), str(verdicts["refused"])
        wrong = sum(verdicts[one] for one in BAD)
        if name == "none":
            name, found, refused = "healthy twins", "", f"{verdicts['quiet']} not reproduced, {refused} refused"
        print(f"| {name} | {len(own)} | {found} | {refused} | {wrong} | {most} |")
    bad = [one.name for one in known if one.verdict in BAD]
    print(f"\n{len(known)} programs; not as they have to be: {', '.join(bad) or 'none'}")
    return int(bool(bad))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
