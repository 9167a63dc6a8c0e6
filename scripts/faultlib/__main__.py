"""`scripts/faults`: the command line with faults at random moments; what comes of it is the same, or an honest error."""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import platform
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from benchlib.cli import count, named, own_python, positive, save
from benchlib.lanes import gpus, shared

from faultlib import processes, programs, report
from faultlib.catalog import FAULTS, Fault
from faultlib.judge import Judgment, Reference, judge
from faultlib.live import Moment
from faultlib.runs import Seen, Setting, Timeline, Undisturbed, bare, disturbed, mount, undisturbed

CHILD = "import json, sys, torch; print(json.dumps({'torch': torch.__version__, 'python': sys.version.split()[0]}))"
LEAST_BUDGET, TIMES_BUDGET = 90.0, 3.0
UNDISTURBED = 600.0  # of the first runs, in seconds
NEVER = 1e9
CLOCK = Path(__file__).with_name("clock.c")


def grammar() -> argparse.ArgumentParser:
    """The command line."""
    parser = argparse.ArgumentParser(prog="scripts/faults", description=__doc__, allow_abbrev=False)
    parser.add_argument("--python", help="the interpreter with torch and our dependencies (default: .venv, set up first)")
    parser.add_argument("--only", nargs="+", metavar="NAME", default=["*"], help="these faults; a name may have a *")
    parser.add_argument("--list", action="store_true", help="print the names and end")
    parser.add_argument("--moments", type=count, default=20, metavar="N", help="so many of each fault (default 20)")
    parser.add_argument("--first", type=int, default=0, metavar="N", help="the number of the first moment, to go on (default 0)")
    parser.add_argument("--lanes", type=count, default=1, metavar="N", help="so many runs at a time, each on its share of the CPUs")
    parser.add_argument("--within", type=positive, default=NEVER, metavar="SECONDS", help="be over by then, with as many as can be done")
    parser.add_argument("--budget", type=positive, metavar="SECONDS", help="of each run (default: three times an undisturbed one)")
    parser.add_argument(
        "--programs", nargs="+", choices=[each.name for each in programs.USUAL], help="on these alone (default: all, by turns)"
    )
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu", help="where the programs have their tensors (default cpu)")
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="of the moments (default 0)")
    parser.add_argument("--json", type=Path, metavar="FILE", help="rewritten after every run")
    parser.add_argument("--read", type=Path, nargs="+", metavar="FILE", help="print the table of these --json files together, and end")
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Try the faults; 0 where nothing that came of them is wrong, else 1."""
    parser = grammar()
    arguments = parser.parse_args(argv)
    faults = [FAULTS[name] for name in named(parser, list(FAULTS), arguments.only)]
    if arguments.list:
        print("\n".join(fault.name for fault in faults))
        return 0
    if arguments.read:
        return said([row for path in arguments.read for row in json.loads(path.read_text(encoding="utf-8"))["rows"]])
    if arguments.lanes > len(os.sched_getaffinity(0)):
        parser.error(f"--lanes {arguments.lanes}: there are fewer CPUs")
    python = own_python(arguments.python)
    until = time.monotonic() + arguments.within
    with tempfile.TemporaryDirectory(prefix="faults-", ignore_cleanup_errors=True) as made:
        os.chmod(made, 0o755)  # for the accounts that programs run as
        setting = Setting(python, Path(made), UNDISTURBED, until)
        facts = json.loads(subprocess.run([python, "-c", CHILD], check=True, capture_output=True, text=True).stdout)
        machine = {
            **facts,
            "cpus": len(os.sched_getaffinity(0)),
            "lanes": arguments.lanes,
            "device": arguments.device,
            "system": platform.platform(),
            "root": not os.geteuid(),
        }
        print(", ".join(f"{key} {value}" for key, value in machine.items()), flush=True)
        setting, faults, missing = had(setting, faults)
        with lanes_of(arguments.lanes) as pool:
            return Suite(setting, faults, missing, arguments, machine, pool).run()


def had(setting: Setting, faults: Sequence[Fault]) -> tuple[Setting, list[Fault], dict[str, str]]:
    """What of the `faults` can be had here, the `setting` that they need, and why the others cannot."""
    missing: dict[str, str] = {}
    if any(fault.disk for fault in faults):
        place = setting.scratch / "disk"
        place.mkdir()
        try:
            mount(place)
            subprocess.run(["umount", str(place)], check=True)
        except (OSError, subprocess.CalledProcessError) as error:
            missing |= {fault.name: f"no disk of its own: {error}" for fault in faults if fault.disk}
    if any(fault.clock for fault in faults):
        library = setting.scratch / "clock.so"
        compiler = shutil.which(os.environ.get("CC", "cc")) or shutil.which("gcc")
        words = [compiler or "cc", "-shared", "-fPIC", "-O1", "-o", str(library), str(CLOCK), "-ldl"]
        try:
            subprocess.run(words, check=True, capture_output=True, text=True)
            setting = replace(setting, clock=library)
        except (OSError, subprocess.CalledProcessError) as error:
            missing |= {fault.name: f"the clock cannot be set: {error}" for fault in faults if fault.clock}
    return setting, [fault for fault in faults if fault.name not in missing], missing


def lanes_of(number: int) -> ProcessPoolExecutor:
    """So many processes, each with CPUs and a GPU of its own share, and to each comes what its runs leave behind."""
    context = multiprocessing.get_context("fork")
    shares = context.SimpleQueue()
    for share in shared(number, sorted(os.sched_getaffinity(0)), gpus()):
        shares.put(share)
    return ProcessPoolExecutor(number, context, _settle, (shares,))


def _settle(shares: Any) -> None:
    cpus, env = shares.get()
    os.sched_setaffinity(0, cpus)
    os.environ.update(env)
    processes.adopt_orphans()


@dataclass(frozen=True)
class Todo:
    """A run that is to be made: the `fault`, its `number`, the `program`, and the `moments` at which it strikes."""

    fault: Fault
    number: int
    program: programs.Program
    moments: tuple[Moment, ...]


class Suite:
    """The `faults` in one `setting`, as `arguments` say, on a `machine`, run by a `pool`. `missing`: those that cannot be had, and why."""

    def __init__(
        self,
        setting: Setting,
        faults: Sequence[Fault],
        missing: dict[str, str],
        arguments: argparse.Namespace,
        machine: dict[str, Any],
        pool: ProcessPoolExecutor,
    ) -> None:
        self.setting, self.faults, self.missing = setting, faults, missing
        self.arguments, self.machine, self.pool = arguments, machine, pool
        self.usual = [each for each in programs.USUAL if arguments.programs is None or each.name in arguments.programs]
        self.device: str = arguments.device
        self.rows: list[dict[str, Any]] = []
        self._timelines: dict[str, Timeline] = {}
        self._references: dict[str, Reference] = {}

    def run(self) -> int:
        """Everything; the exit status."""
        for name, why in self.missing.items():
            print(f"cannot be had: {name}: {why}", flush=True)
        wrong = self._learn()
        if wrong:
            print(f"without a fault: {wrong}")
            return 1
        running: dict[Future[Seen], Todo] = {}
        for one in self._todo():
            seen = self.pool.submit(disturbed, self.setting, one.fault.name, one.number, one.program, one.moments, self.arguments.seed)
            running[seen] = one
            while len(running) >= self.arguments.lanes:
                self._settle(running)
            if time.monotonic() > self.setting.until - self._usual:
                break
        while running:
            self._settle(running)
        return said(self.rows, self.missing)

    def _settle(self, running: dict[Future[Seen], Todo]) -> None:
        """Wait for one of those that run, and judge what has ended."""
        for future in wait(running, return_when=FIRST_COMPLETED).done:
            one = running.pop(future)
            try:
                seen = future.result()
            except OSError as error:
                seen, judged = Seen(one.fault.name, one.number, one.program, one.moments[0], ()), Judgment("BROKEN", str(error))
            else:
                reference = self._references[self._kin(one.program).name]
                judged = judge(seen, one.fault, reference, self.setting.budget)
            self._note(seen, judged)

    def _learn(self) -> str:
        """Run each program undisturbed, on each lane one at least; what is wrong already."""
        tried = [self._program(fault, number) for fault in self.faults for number in range(len(self.usual))]
        wanted = list({(known := self._kin(program)).name: known for program in tried}.values())
        turns = [wanted[n % len(wanted)] for n in range(max(len(wanted), self.arguments.lanes))]
        # what a machine makes once is made by the first, on all CPUs: its times are no one else's
        with lanes_of(1) as alone:
            alone.submit(undisturbed, self.setting, programs.LOWERING.on(self.device), -1).result()
        seconds: list[float] = []
        for each in self.pool.map(undisturbed, [self.setting] * len(turns), turns, range(len(turns))):
            print(f"undisturbed {each.program.name}: {each.ran.status} in {each.ran.seconds:.0f} s", flush=True)
            if why := self._wrong(each):
                return why
            seconds.append(each.ran.seconds)
        self._usual = statistics.median(seconds)
        self.setting = replace(self.setting, budget=self.arguments.budget or max(LEAST_BUDGET, TIMES_BUDGET * max(seconds)))
        print(f"each run has {self.setting.budget:.0f} s", flush=True)
        return ""

    def _wrong(self, each: Undisturbed) -> str:
        program, ran = each.program, each.ran
        if ran.status != 0 or ran.repro is None or not isinstance(ran.result, dict):
            return f"{program.name} ended with {ran.status}\n{ran.err[-3000:]}"
        if not ran.fails_alone:
            return f"the repro of {program.name} does not fail alone:\n{ran.repro}"
        reference = Reference(program.key(ran.repro), ran.result["reduction"]["ops_after"])
        if self._references.setdefault(program.name, reference) != reference:
            return f"two repros of {program.name}:\n{self._references[program.name].key}\n{ran.repro}"
        self._timelines.setdefault(program.name, each.timeline)
        self.setting = replace(self.setting, proven=self.setting.proven | {bare(ran.repro)})
        return ""

    def _todo(self) -> Iterator[Todo]:
        """All that is to be run: of each fault one, then of each the next."""
        for number in range(self.arguments.first, self.arguments.first + self.arguments.moments):
            for fault in self.faults:
                rng = random.Random(f"{self.arguments.seed} {fault.name} {number} moment")
                program = self._program(fault, number)
                timeline = self._timelines[self._kin(program).name]
                moments = [timeline.draw(fault.roles, number, rng, fault.phases) for _ in range(fault.times)]
                drawn = tuple(moment for moment in moments if moment is not None)
                if drawn:
                    yield Todo(fault, number, program, drawn)
                else:
                    print(f"nothing to strike: {fault.name} {number}", flush=True)

    def _program(self, fault: Fault, number: int) -> programs.Program:
        return fault.program(number, self.usual).on(self.device)

    def _kin(self, program: programs.Program) -> programs.Program:
        """The program that goes, undisturbed, as this one does."""
        return programs.THREE.on(self.device) if program.name.startswith("spoil-") else program

    def _note(self, seen: Seen, judged: Judgment) -> None:
        runs = [
            {
                "status": ran.status, "seconds": ran.seconds, "hits": list(ran.hits), "left": list(ran.left), "repro": ran.repro,
                **({"result": ran.result, "said": (ran.out + ran.err)[-6000:]} if judged.outcome not in ("same", "resumed") else {}),
            }
            for ran in seen.runs
        ]  # fmt: skip
        row = {
            "fault": seen.fault, "number": seen.number, "program": seen.program.name, "moment": [seen.moment.phase, seen.moment.seconds],
            "outcome": judged.outcome, "why": judged.why, "runs": runs,
        }  # fmt: skip
        self.rows.append(row)
        print(report.line(row), flush=True)
        facts = {"machine": self.machine, "missing": self.missing, "budget": self.setting.budget}
        save(self.arguments.json, {**facts, "summary": report.summary(self.rows), "rows": self.rows})


def said(rows: Sequence[report.Row], missing: dict[str, str] | None = None) -> int:
    """Print the table of the `rows`, and those faults that are `missing`; the exit status."""
    print("\n" + report.table(rows))
    for name, why in (missing or {}).items():
        print(f"cannot be had: {name}: {why}")
    wrong = report.bad(rows)
    print(f"\n{len(rows)} runs, {len(wrong)} of them wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
