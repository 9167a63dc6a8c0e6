"""Runs of the command line: undisturbed, to know how they go, and with a fault."""

from __future__ import annotations

import contextlib
import json
import os
import random
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from faultlib import processes
from faultlib.catalog import FAULTS
from faultlib.live import Live, Moment
from faultlib.processes import Role
from faultlib.programs import HANG, Program

ROOT = Path(__file__).resolve().parents[2]
OVER = 10.0  # seconds that a run may take beyond its budget
CUT = 20.0  # seconds after which it is cut off then
GONE = 10.0  # seconds that what it started may take to go
DISK = 1 << 30  # bytes of the disk that is filled
EARLIER = 3  # a moment that did not come is tried so often, each time half as late
TICK = 0.05  # seconds between two looks at an undisturbed run
ALONE_LIMIT = 240.0


@dataclass(frozen=True)
class Setting:
    """How to run: the interpreter, the directory `scratch` for everything, `budget` in seconds, `until` when all has to be over, by the
    monotonic clock, and the library that sets the clock (None: it cannot be had). `proven` are repros that are known to fail alone."""

    python: str
    scratch: Path
    budget: float
    until: float
    clock: Path | None = None
    proven: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Ran:
    """One run of the command line. `status` as Popen says it, None: it did not end in time. `own` are those of its `seconds` that its
    budget is about: from when it said something. `result` is `result.json`, or why it cannot be read; None where there is none.
    `fails_alone`: the repro does. `lost_repro`: one was there in the meantime, and is no more. `left` still ran afterwards, `hits` are what
    was done to it.
    """

    status: int | None
    seconds: float
    own: float
    out: str
    err: str
    result: Mapping[str, Any] | str | None
    repro: str | None
    fails_alone: bool
    lost_repro: bool
    left: tuple[str, ...]
    hits: tuple[str, ...] = ()


@dataclass(frozen=True)
class Seen:
    """All runs of one fault at one moment, the resumed ones too. `cut`: there was no time for all of it."""

    fault: str
    number: int
    program: Program
    moment: Moment
    runs: tuple[Ran, ...]
    cut: bool = False


@dataclass(frozen=True)
class Timeline:
    """What lived when in an undisturbed run: at each tick the moment, and the roles."""

    ticks: tuple[tuple[Moment, frozenset[Role]], ...] = ()

    def draw(self, roles: Sequence[Role], number: int, rng: random.Random, only: Sequence[str] = ()) -> Moment | None:
        """A moment at which one of the `roles` lived (none: any moment), in these phases `only` (none: in all): for each second `number`
        from all of them, for the others from one phase by turns. None where there is none."""
        living = [moment for moment, roles_then in self.ticks if not roles or roles_then & set(roles)]
        moments = [moment for moment in living if not only or moment.phase in only]
        phases = list(dict.fromkeys(moment.phase for moment in moments))
        if number % 2 and phases:
            moments = [moment for moment in moments if moment.phase == phases[number // 2 % len(phases)]]
        if not moments:
            return None
        moment = rng.choice(moments)
        return Moment(moment.phase, moment.seconds + rng.uniform(0, TICK))


@dataclass(frozen=True)
class Undisturbed:
    """A run without a fault, and what lived when."""

    program: Program
    ran: Ran
    timeline: Timeline = field(default_factory=Timeline)


@contextmanager
def place_of(setting: Setting, name: str, *, disk: bool = False) -> Iterator[Path]:
    """A directory of the run `name`, with a `disk` of its own if that is wanted; removed afterwards.

    Raises:
        OSError: there can be no such disk.
    """
    place = setting.scratch / name
    (place / "work").mkdir(parents=True)
    (place / "disk").mkdir()
    (place / "clock").mkdir()
    if disk:
        mount(place / "disk")
    try:
        (place / "disk" / "tmp").mkdir()
        yield place
    finally:
        processes.end_all()
        if disk:
            subprocess.run(["umount", "--lazy", str(place / "disk")], check=False, capture_output=True)
        shutil.rmtree(place, ignore_errors=True)


def mount(path: Path) -> None:
    """Put a small disk at `path`.

    Raises:
        OSError: it cannot be had.
    """
    words = ["mount", "-t", "tmpfs", "-o", f"size={DISK},mode=755", "faults", str(path)]
    done = subprocess.run(words, check=False, capture_output=True, text=True)
    if done.returncode:
        raise OSError(done.returncode, done.stderr.strip() or "cannot mount")


def environment(setting: Setting, place: Path, program: Program, *, clock: bool) -> dict[str, str]:
    """What the command line is run with: this process's variables without what could color a run, files in `place`, and those of the
    `program`; `clock`: with the library that sets it."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("TORCH", "PYTHON", "DUMP_AOTI", "AOTINDUCTOR", "TRITON", "FAULT_"))}
    # our dependencies may be in a directory of their own, as on a machine whose torch is not in an environment
    path = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
    env = {**kept, **program.env, "PYTHONPATH": path, "TORCH_MINIFY_CACHE_DIR": str(setting.scratch / "kept")}
    env |= {"TMPDIR": str(place / "disk" / "tmp"), HANG: str(place / "work" / "hang")}
    if clock and setting.clock is not None:
        passed = {"LD_PRELOAD": str(setting.clock), "FAULT_CLOCK": str(place / "clock" / "now")}
        env |= {**passed, "TORCH_MINIFY_PASS": " ".join(passed)}
    return env


def run(
    setting: Setting, place: Path, program: Program, disturb: Callable[[Live], object], rng: random.Random, *, resume: bool, clock: bool
) -> Ran:
    """Run the command line on the `program` in `place`, from the beginning or with `--resume`, while `disturb` does what it does by `rng`;
    `clock`: with the library that sets it."""
    work, out = place / "work", place / "disk" / "out"
    (work / "program.py").write_text(program.text, encoding="utf-8")
    words = [setting.python, "-m", "bot", "run", "program.py", "--out", str(out), "--budget", f"{setting.budget:.0f}s"]
    if clock and setting.clock is not None:
        (place / "clock" / "now").write_bytes(bytes(24))
        words += ["--read", str(place / "clock"), "--read", str(setting.clock)]
    had = (out / "repro.py").exists()
    said = place / "err.txt"
    began = time.monotonic()
    with (place / "out.txt").open("wb") as stdout, said.open("wb") as stderr:
        engine = subprocess.Popen(
            [*words, *(["--resume"] if resume else [])],
            cwd=work, env=environment(setting, place, program, clock=clock), stdin=subprocess.DEVNULL, stdout=stdout, stderr=stderr,
            start_new_session=True,
        )  # fmt: skip
        live = Live(engine, said, place, out, min(began + setting.budget + CUT, setting.until), rng, had_repro=had)
        disturb(live)
        while live.goes_on():
            time.sleep(0.02)
        status, seconds = engine.poll(), time.monotonic() - began
        left = processes.left_after(GONE) if status is not None else []
        processes.end_all()
        engine.poll()
    repro = _text(out / "repro.py")
    return Ran(
        status, round(seconds, 2), round(seconds - live.begun, 2),
        _text(place / "out.txt") or "", _text(said) or "", _result(out / "result.json"), repro,
        repro is not None and fails_alone(setting, repro, program.message), live.had_repro and repro is None, tuple(left), tuple(live.hits),
    )  # fmt: skip


def _text(path: Path) -> str | None:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None


def _result(path: Path) -> Mapping[str, Any] | str | None:
    text = _text(path)
    if text is None:
        return None
    try:
        held = json.loads(text)
    except ValueError as error:
        return f"{error}: {text[:200]}"
    return held if isinstance(held, dict) else "it holds no object"


def undisturbed(setting: Setting, program: Program, number: int) -> Undisturbed:
    """Run the `program` without a fault, as the run of this `number`, and see what lives when."""
    ticks: list[tuple[Moment, frozenset[Role]]] = []

    def look(live: Live) -> None:
        while live.goes_on():
            ticks.append((live.now, frozenset(process.role for process in processes.below(live.engine.pid))))
            live.wait(TICK)

    with place_of(setting, f"undisturbed-{number}") as place:
        return Undisturbed(program, run(setting, place, program, look, random.Random(0), resume=False, clock=False), Timeline(tuple(ticks)))


def disturbed(setting: Setting, name: str, number: int, program: Program, moments: Sequence[Moment], seed: int) -> Seen:
    """Run the `program` with the fault of this `name` at each of these `moments`, and resume until that is done. The `number` of the run,
    and `seed`, decide what is left to chance."""
    for earlier in range(EARLIER):
        at = [Moment(moment.phase, moment.seconds / 2**earlier) for moment in moments]
        seen = _disturbed(setting, name, number, program, at, seed)
        if seen.cut or seen.runs[0].hits:
            break
    return seen


def _disturbed(setting: Setting, name: str, number: int, program: Program, moments: Sequence[Moment], seed: int) -> Seen:
    fault, rng = FAULTS[name], random.Random(f"{seed} {name} {number}")
    ran: list[Ran] = []
    with place_of(setting, f"{name}-{number}", disk=fault.disk) as place:

        def again(disturb: Callable[[Live], object]) -> Ran:
            ran.append(run(setting, place, program, disturb, rng, resume=bool(ran), clock=fault.clock))
            return ran[-1]

        def over() -> bool:
            return ran[-1].status is None and time.monotonic() >= setting.until

        for moment in moments:

            def strike(live: Live, moment: Moment = moment) -> None:
                live.wait_for(moment)
                fault.do(live)

            again(strike)
            if over() or not ran[-1].hits:
                break
        # what ended without its answer goes on from there
        if not over() and ran[-1].status != 0 and ran[-1].hits:
            again(lambda _: None)
        return Seen(name, number, program, moments[0], tuple(ran), cut=over())


_known: dict[str, bool] = {}  # what this process has found out


def bare(repro: str) -> str:
    """A `repro` without its comments, which say how often it failed."""
    return "\n".join(line for line in repro.splitlines() if not line.startswith("#"))


def fails_alone(setting: Setting, repro: str, message: str) -> bool:
    """Whether a `repro` fails alone with this `message`, as is known by the `setting` or was found out before, or is now."""
    key = bare(repro)
    if key in setting.proven:
        return True
    if key not in _known:
        _known[key] = _alone(setting, repro, message)
    return _known[key]


def _alone(setting: Setting, repro: str, message: str) -> bool:
    """Whether it does, in a process without anything of ours, in an empty directory, its caches cold."""
    place = Path(tempfile.mkdtemp(prefix="alone-", dir=setting.scratch))
    (place / "repro.py").write_text(repro, encoding="utf-8")
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("TORCH", "PYTHON"))}
    env = {**kept, "TORCHINDUCTOR_CACHE_DIR": str(place / "cache"), "TORCHINDUCTOR_COMPILE_THREADS": "1"}
    try:
        done = subprocess.run(
            [setting.python, "repro.py"], cwd=place, env=env, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace",
            timeout=ALONE_LIMIT, check=False,
        )  # fmt: skip
        return done.returncode != 0 and message in done.stderr
    except subprocess.TimeoutExpired:
        return False
    finally:
        with contextlib.suppress(OSError):
            shutil.rmtree(place)
