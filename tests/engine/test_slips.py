"""A warm worker that says SAME of what passes alone: the search goes back behind that step, and on."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from bot.engine import job
from bot.engine.capture.run import Target
from bot.engine.evidence.confirmer import Confirmer, Slipped
from bot.engine.job import Job
from bot.engine.options import Options
from bot.engine.progress import Progress
from bot.engine.search import Search, Step
from bot.engine.state import Findings
from bot.models.failure import Kind, Phase, Signature, Verdict
from bot.oracle.deadline import Deadline
from bot.oracle.memo import Ledger
from bot.reduce.candidate import Candidate
from bot.workers.pool import Pool

FAILURE = Signature(kind=Kind.EXCEPTION, phase=Phase.DYNAMO, exception=("NotImplementedError",), message="no")


@pytest.fixture
def search(tmp_path: Path) -> Search:
    found = Findings("", 1, failure=FAILURE)
    options = Options(Target(tmp_path / "fail.py", None, ()), sys.executable, tmp_path)
    pool = Pool(sys.executable, tmp_path, tmp_path / "log")
    return Search(options, None, found, Deadline(60.0), Progress(), pool, Ledger(tmp_path / "ledger", resume=False))


class Countdown:
    """Reduces "9" to "8", and so on, as far as nothing is rejected. That a step slipped is told two steps later."""

    def __init__(self, search: Search, slips: Sequence[int] = (5,)) -> None:
        self.search, self.slips = search, list(slips)
        self.begun: list[str] = []
        search.offer, search.latest = self.offer, self.latest

    def offer(self, text: str, position: int) -> None:
        if self.slips and int(text) == self.slips[0] - 2:
            self.slips.pop(0)
            raise Slipped(position - 2)

    def latest(self, texts: Sequence[str]) -> int | None:
        alone = [index for index, text in enumerate(texts) if int(text) > 5]
        return alone[-1] if alone else None

    def reduce(self, step: Step) -> str:
        self.begun.append(step[1])
        number = int(step[1])
        while number > 0 and str(number - 1) not in self.search.oracle._rejected:
            number -= 1
            self.search._accepted(None, str(number))
        return str(number)


def test_the_search_goes_on_from_before_the_step_that_slipped(search: Search) -> None:
    countdown = Countdown(search)
    search._accepted(None, "9")
    assert search._past_slips(countdown.reduce, (None, "9")) == "6"
    assert countdown.begun == ["9", "6"]
    assert search.oracle.ask(Candidate("5", "again", (1,))) is Verdict.DIFFERENT
    assert search.found.history[search.found.confirmed_at] == (None, "6")


def test_a_slip_that_is_told_after_the_reduction_is_the_proofs_to_find(search: Search) -> None:
    Countdown(search)
    search._accepted(None, "9")
    search._accepted(None, "3")  # is told of "5"
    assert search.found.text == "3"


def test_what_shows_now_and_then_slips_nowhere(search: Search) -> None:
    search.oracle.tries = 10
    countdown = Countdown(search)
    search._accepted(None, "9")
    assert search._past_slips(countdown.reduce, (None, "9")) == "0"
    assert countdown.begun == ["9"]


def test_where_no_fresh_run_confirms_the_proof_decides(search: Search) -> None:
    countdown = Countdown(search)
    search.latest = lambda _: None
    search._accepted(None, "9")
    assert search._past_slips(countdown.reduce, (None, "9")) == "0"
    assert countdown.begun == ["9", "3"]


class InStep(Confirmer):
    """Confirms each step before the search goes on."""

    def offer(self, text: str, position: int) -> None:
        super().offer(text, position)
        end = time.monotonic() + 120
        while self._slipped is None and (self.best is None or self.best.text != text) and time.monotonic() < end:
            time.sleep(0.05)


# A worker is a process of boot.py; the repro alone is not. There, a lone relu passes.
PROGRAM = """
import torch


def picky(module, inputs):
    called = [node.target for node in module.graph.nodes if node.op == "call_function"]
    warm = b"boot.py" in open("/proc/self/cmdline", "rb").read()
    if torch.relu in called and (len(called) > 1 or warm):
        raise NotImplementedError("picky takes no relu")
    return module.forward


@torch.compile(backend=picky)
def f(x):
    x = torch.sin(torch.cos(x))
    return torch.relu(x).exp()


f(torch.ones(4, 6))
"""


@pytest.mark.slow
@pytest.mark.all
@pytest.mark.timeout(600)
def test_a_job_ends_with_what_fails_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("torch")
    script = tmp_path / "fail.py"
    script.write_text(PROGRAM)
    monkeypatch.setattr(job, "Confirmer", lambda check, told: InStep(check, told, every=0.0, after=0.0))
    result = Job(Options(Target(script, None, ()), sys.executable, tmp_path / "out", verify_runs=1)).run()
    assert result is not None
    assert "going back" in capsys.readouterr().err
    assert (result.status, result.ended_by, result.reduction.ops_after) == ("minimized", "fixed_point", 2)
    assert "torch.relu(" in (tmp_path / "out" / "repro.py").read_text()
