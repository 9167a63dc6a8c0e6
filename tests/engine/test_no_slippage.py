"""Whole searches while things break: they end with the very text of a search in which nothing did.

Two kinds of fault. Those of the machine are put in where questions go to the pool: a worker killed, its parent killed, an answer
that is none. Those of a candidate are in the program: its backend comes to a trap where relu is left without sin, and what the
trap does is in a file, so that all searches are of one program and ask one sequence of candidates.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import re
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from bot.engine.job import PATIENCE, Job
from bot.engine.options import Options
from bot.engine.progress import Progress
from bot.engine.reproduce import Intake
from bot.engine.search import Search
from bot.engine.state import Reproduction
from bot.engine.target import Target
from bot.engine.trail import Trail
from bot.engine.workspace import Workspace
from bot.inside.protocol import Question
from bot.models.failure import Stage, Verdict
from bot.models.result import Result
from bot.oracle.budget import Budget
from bot.oracle.criterion import Criterion
from bot.oracle.judge import Judge
from bot.oracle.memo import Ledger
from bot.oracle.oracle import ScriptOracle
from bot.oracle.run_plan import Limits
from bot.workers.pool import Asked, Pool
from tests.probes import probed
from tests.processes import children_of

pytestmark = [pytest.mark.slow, pytest.mark.timeout(400)]

# Seconds for one run of a candidate, of which a healthy one takes some tenths.
LIMIT = 12.0
MESSAGE = "picky takes no relu beside a sin"
OTHER = "a relu alone is another matter"
PROGRAM = """
import torch


def trap():
    open({met!r}, "a").write("x")
    exec(open({trap!r}).read())


def picky(module, inputs):
    called = [node.target for node in module.graph.nodes]
    if torch.relu in called and (torch.sin in called or trap()):
        raise NotImplementedError("picky takes no relu beside a sin")
    return module.forward


@torch.compile(backend=picky)
def f(x):
    x = torch.sin(torch.cos(x))
    return torch.relu(x).exp()


f(torch.ones(4, 6))
"""

# It fails the first two times, which the capture and the start of the search are, and then each third.
SELDOM = """
import torch


def seldom(file):
    return file.write(b"x") and (file.tell() < 3 or file.tell() % 3 == 0)


def picky(module, inputs):
    called = [node.target for node in module.graph.nodes]
    if torch.relu in called and torch.sin not in called:
        raise TypeError({other!r})
    if torch.relu in called and seldom(open({turns!r}, "ab", 0)):
        raise NotImplementedError({message!r})
    return module.forward


@torch.compile(backend=picky)
def f(x):
    x = torch.sin(torch.cos(x))
    return torch.relu(x)


f(torch.ones(4, 6))
"""

# --- what a candidate may do

SPOILT = "torch spoilt, and left so"
# What a trap does, and the verdict on a candidate that comes to it; None: the one that it gets without a trap.
TRAPS: dict[str, tuple[Verdict | None, str]] = {
    "a second bug": (Verdict.DIFFERENT, f"raise TypeError({OTHER!r})"),
    "a hang in Python": (Verdict.TIMEOUT, "while True: pass"),
    "a hang in native code": (Verdict.TIMEOUT, "import re\nre.match('(a+)+$', 'a' * 90 + 'b')"),
    "a crash": (Verdict.DIFFERENT, "import ctypes\nctypes.string_at(0)"),
    "all the memory": (Verdict.DIFFERENT, "import torch\nheld = [torch.empty(1 << 30, dtype=torch.uint8) for _ in range(64)]"),
    SPOILT: (
        None,
        """
import torch, torch._dynamo
torch.relu = torch.sin = torch.Tensor.sum = torch.cos
torch.compile = lambda *_, **__: lambda function: function
torch._dynamo.config.disable = torch._dynamo.config.suppress_errors = True
torch.set_default_dtype(torch.float64)
torch.set_default_device("meta")
torch._dynamo.reset()
""",
    ),
    "litter": (
        None,
        """
import os, subprocess, sys, threading, time
threading.Thread(target=time.sleep, args=(600,)).start()
subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], start_new_session=True)
os.chdir("/")
os.environ["PYTHONPATH"] = os.environ["TMPDIR"] = "/nowhere"
for _ in range(30): os.write(1, b"x" * (1 << 20))
""",
    ),
}

# --- what a machine may do

Submit = Callable[[Pool, Question], Asked]


@dataclass
class Faults:
    """Stands where `Pool.submit` does; `hits` is how often it struck."""

    submit: Submit
    strike: Callable[[Faults, Pool, Question], Asked | None]
    when: Callable[[int], bool]
    hits: int = 0

    def __post_init__(self) -> None:
        self._numbers = itertools.count(1)

    def __call__(self, pool: Pool, question: Question) -> Asked:
        if self.when(next(self._numbers)) and (asked := self.strike(self, pool, question)) is not None:
            return asked
        return self.submit(pool, question)


def _struck(faults: Faults, pool: Pool, question: Question, *, parent: bool) -> Asked:
    """Send the question, and kill its worker, or the worker's parent, as soon as the worker is in its directory."""
    asked = faults.submit(pool, question)
    while not asked.future.done():
        for above in children_of(os.getpid()):
            for pid in children_of(above):
                with contextlib.suppress(FileNotFoundError, ProcessLookupError):
                    if os.path.samefile(f"/proc/{pid}/cwd", asked.directory.name):
                        os.kill(above if parent else pid, signal.SIGKILL)
                        faults.hits += 1
                        return asked
        time.sleep(0.001)
    return asked


def kill_worker(faults: Faults, pool: Pool, question: Question) -> Asked:
    return _struck(faults, pool, question, parent=False)


def kill_parent(faults: Faults, pool: Pool, question: Question) -> Asked | None:
    """Once: where a worker has ended before it was seen, the next question is struck."""
    return None if faults.hits else _struck(faults, pool, question, parent=True)


FULL = "Traceback (most recent call last):\n  File \"repro.py\", line 1, in <module>\nOSError: [Errno 28] No space left on device: '/x'\n"
ANSWERS: tuple[dict[str, Any], ...] = (
    {"status": "infra", "text": "OSError: [Errno 5] Input/output error"},
    {"status": "memory", "signal": "SIGKILL"},
    {"status": "raised", "text": FULL},
    {"status": "exit", "exit": 70, "text": FULL},
    {"status": 5},
)


def answered(facts: dict[str, Any]) -> Asked:
    asked = Asked(Future(), 0, tempfile.TemporaryDirectory())
    asked.answer(facts)
    return asked


def break_answer(faults: Faults, pool: Pool, question: Question) -> Asked:
    faults.hits += 1
    return answered(ANSWERS[faults.hits % len(ANSWERS)])


def hang_by_chance(faults: Faults, pool: Pool, question: Question) -> Asked:
    faults.hits += 1
    return answered({"status": "timeout", "text": "Timeout (0:00:12)!\n"})


def hide(faults: Faults, pool: Pool, question: Question) -> Asked | None:
    """The failure shows in the first run, which the start of the search is, and then in each third."""
    if question.task != "run":
        return None
    faults.hits += 1
    return None if faults.hits == 1 or faults.hits % 3 == 0 else answered({"status": "ok"})


STRIKES: dict[str, tuple[Callable[[Faults, Pool, Question], Asked | None], Callable[[int], bool], int]] = {
    "every third worker killed": (kill_worker, lambda number: number % 3 == 0, 5),
    "the parent killed": (kill_parent, lambda number: number >= 6, 1),
    "every fifth answer a fault": (break_answer, lambda number: number % 5 == 0, 4),
    "every third process hangs": (hang_by_chance, lambda number: number % 3 == 0, 5),
}


@pytest.fixture
def strike(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Faults]:
    def start(name: str) -> Faults:
        how, when, _ = STRIKES[name]
        faults = Faults(Pool.submit, how, when)
        monkeypatch.setattr(Pool, "submit", lambda pool, question: faults(pool, question))
        return faults

    return start


# --- the searches


@dataclass(frozen=True)
class Answer:
    key: str
    verdict: Verdict
    trapped: bool  # whether the candidate came to the trap


class Watched(Ledger):
    """Keeps the answers in their order; `met` grows by each candidate that comes to the trap."""

    def __init__(self, path: Path, met: Path) -> None:
        super().__init__(path, resume=False)
        self.answers: list[Answer] = []
        self._met, self._seen = met, 0

    def record(self, key: str, verdict: Verdict, **facts: Any) -> None:
        super().record(key, verdict, **facts)
        before, self._seen = self._seen, self._met.stat().st_size
        self.answers.append(Answer(key, verdict, self._seen > before))


@dataclass(frozen=True)
class End:
    text: str
    fixed_point: bool
    signature: str
    answers: tuple[Answer, ...]
    other: tuple[str, ...]


@dataclass
class World:
    """One captured program, and searches of it."""

    place: Path
    pool: Pool

    def __post_init__(self) -> None:
        self.trap, self.met, self.script = self.place / "trap.py", self.place / "met", self.place / "fail.py"
        self.trap.write_text("")
        self.script.write_text(PROGRAM.format(trap=str(self.trap), met=str(self.met)))
        options = self.options(Stage.DYNAMO, "captured")
        space = Workspace(options.out)
        space.prepare(resume=False)
        cache = self.place / "cache"
        self.reproduction = Intake(options, space, Progress(), cache, Budget(300.0)).run()
        self._healthy: dict[Stage, End] = {}

    def options(self, stage: Stage, out: str) -> Options:
        return Options(Target(self.script, None, ()), sys.executable, self.place / out, stage=stage, verify_runs=1)

    def search(self, stage: Stage, trap: str = "") -> End:
        self.trap.write_text(trap)
        self.met.write_text("")
        ledger, failure = Watched(self.place / "reduction.jsonl", self.met), self.reproduction.failure

        def oracle() -> ScriptOracle:
            judge = Judge(self.pool, Budget(300.0), Limits(LIMIT, patience=PATIENCE))
            return ScriptOracle(judge, ledger, Criterion(failure, across_forms=True))

        search = Search(self.options(stage, "out"), self.reproduction, Trail(), oracle, Progress())
        search.begin()
        found = search.run()
        assert found.reference is not None
        other = tuple(signature.line() for signature in search.oracle.other_failures())
        return End(found.text, found.fixed_point, found.reference.line(), tuple(ledger.answers), other)

    def healthy(self, stage: Stage) -> End:
        """How the search ends when nothing breaks."""
        if stage not in self._healthy:
            self._healthy[stage] = self.search(stage)
        return self._healthy[stage]


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    pytest.importorskip("torch")
    place = tmp_path_factory.mktemp("world")
    with Pool(sys.executable, probed(place / "cache"), place / "workers.log") as pool:
        pool.start()
        yield World(place, pool)


@pytest.fixture(autouse=True)
def limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Reproduction, "limit", LIMIT)


def same(end: End, healthy: End) -> None:
    """One end, and it is the end of a whole search."""
    assert end.text == healthy.text
    assert (end.signature, end.fixed_point) == (healthy.signature, True)


def under(names: Iterable[str], quick: Mapping[str, Stage]) -> list[object]:
    """For `pytest.mark.parametrize`: each fault in both forms; by default in the one that `quick` names."""
    return [
        pytest.param(name, stage, id=f"{name}, {stage.value}", marks=[] if quick.get(name) is stage else [pytest.mark.all])
        for name in names
        for stage in (Stage.DYNAMO, Stage.SOURCE)
    ]


@pytest.mark.parametrize(
    ("stage", "needed"), [pytest.param(Stage.DYNAMO, ("torch.sin(", "torch.relu("), marks=pytest.mark.all), (Stage.SOURCE, ())]
)
def test_what_the_searches_are_compared_with(world: World, stage: Stage, needed: tuple[str, ...]) -> None:
    healthy = world.healthy(stage)
    assert healthy.fixed_point
    assert MESSAGE in healthy.signature
    assert all(part in healthy.text for part in needed)
    assert not any(part in healthy.text for part in ("cos", "exp", "def trap"))
    assert any(answer.trapped for answer in healthy.answers), "a trap that nobody comes to shows nothing"


@pytest.mark.parametrize(
    ("name", "stage"),
    under(
        STRIKES,
        {
            "every third worker killed": Stage.DYNAMO,
            "the parent killed": Stage.SOURCE,
            "every fifth answer a fault": Stage.SOURCE,
            "every third process hangs": Stage.DYNAMO,
        },
    ),
)
def test_faults_of_the_machine(world: World, strike: Callable[[str], Faults], name: str, stage: Stage) -> None:
    healthy = world.healthy(stage)
    faults = strike(name)
    end = world.search(stage)
    same(end, healthy)
    assert end.answers == healthy.answers
    assert faults.hits >= STRIKES[name][2]


@pytest.mark.parametrize(
    ("name", "stage"),
    under(
        TRAPS,
        {
            "a second bug": Stage.DYNAMO,
            "a hang in Python": Stage.SOURCE,
            "a hang in native code": Stage.DYNAMO,
            "a crash": Stage.DYNAMO,
            SPOILT: Stage.DYNAMO,
            "litter": Stage.SOURCE,
        },
    ),
)
def test_faults_of_a_candidate(world: World, name: str, stage: Stage) -> None:
    healthy = world.healthy(stage)
    verdict, trap = TRAPS[name]
    end = world.search(stage, trap)
    same(end, healthy)
    expected = [replace(a, verdict=verdict) if a.trapped and verdict else a for a in healthy.answers]
    if name == SPOILT:
        # a candidate goes on in the torch that it spoilt, and may end otherwise; the next ones may not
        expected = [replace(a, verdict=found.verdict) if a.trapped else a for a, found in zip(expected, end.answers, strict=True)]
    assert end.answers == tuple(expected)
    assert any(OTHER in line for line in end.other) is (name == "a second bug"), "another failure is told beside the first, as another"


@pytest.mark.parametrize("stage", [Stage.DYNAMO, pytest.param(Stage.SOURCE, marks=pytest.mark.all)])
def test_a_failure_that_shows_in_one_of_three_runs(world: World, monkeypatch: pytest.MonkeyPatch, stage: Stage) -> None:
    healthy = world.healthy(stage)
    faults = Faults(Pool.submit, hide, lambda _: True)
    monkeypatch.setattr(Pool, "submit", lambda pool, question: faults(pool, question))
    end = world.search(stage)
    same(end, healthy)
    assert faults.hits > 2 * len(healthy.answers)


# --- the whole job: fresh processes have the last word


def job(options: Options, monkeypatch: pytest.MonkeyPatch) -> tuple[Result, str]:
    """The result, and the repro without the comments at its head."""
    monkeypatch.chdir(options.out.parent)
    result = Job(options).run()
    assert result is not None
    return result, re.sub(r"\A(#.*\n)+", "", (options.out / "repro.py").read_text())


@pytest.mark.all
@pytest.mark.parametrize("name", ["every third worker killed", "the parent killed"])
def test_a_job_on_a_machine_with_faults(
    world: World, strike: Callable[[str], Faults], monkeypatch: pytest.MonkeyPatch, tmp_path: Path, name: str
) -> None:
    healthy = world.healthy(Stage.DYNAMO)
    world.trap.write_text("")
    faults = strike(name)
    # whom to kill is looked for below the parent of the workers, where the sandbox has a process of its own
    result, repro = job(replace(world.options(Stage.DYNAMO, "job"), out=tmp_path / "minified", sandbox=False), monkeypatch)
    assert faults.hits >= STRIKES[name][2]
    assert (result.status, repro) == ("minimized", healthy.text)


@pytest.mark.all
def test_a_job_whose_failure_shows_in_one_of_three_runs(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """It hides from two of three questions, while another shows each time that something is missing."""
    pytest.importorskip("torch")
    script = tmp_path / "fail.py"
    script.write_text(SELDOM.format(turns=str(tmp_path / "turns"), other=OTHER, message=MESSAGE))
    # it counts its runs in a file beside it
    options = Options(Target(script, None, ()), sys.executable, tmp_path / "minified", stage=Stage.DYNAMO, sandbox=False)
    result, repro = job(options, monkeypatch)
    assert result.status == "flaky", result.reason
    assert 0 < result.verification.same < result.verification.runs
    assert result.signature is not None
    assert MESSAGE in result.signature.message
    assert result.reduction.ops_after == 2
    assert any(OTHER in line for line in result.evidence.other_failures)
    assert "torch.sin(" in repro
    assert "torch.relu(" in repro
