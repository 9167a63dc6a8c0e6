"""The first control of what was dumped is asked of a process that has torch already; only that it passed is believed."""

from __future__ import annotations

from concurrent.futures import Future
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from bot.engine.options import Options
from bot.engine.target import Target
from bot.engine.warm_control import warm_control
from bot.failure.outcome import Outcome
from bot.inside.protocol import Question
from bot.models.result import InputTaken, TakenAs
from bot.oracle.budget import Budget
from bot.workers.pool import Pool, PoolError
from bot.workers.process import START

PASSED = Outcome(status="ok", calls=1, seconds=0.5)


def options(tmp_path: Path, taken_as: TakenAs | None) -> Options:
    script = tmp_path / "graph.py"
    script.write_text("pass\n")
    taken = InputTaken(taken_as=taken_as, detail="") if taken_as else None
    return Options(Target(script, None, ()), "python", tmp_path / "out", taken=taken)


def pool(answer: Outcome | PoolError, asked: list[Question]) -> Pool:
    def submit(question: Question) -> Any:
        asked.append(question)
        future: Future[Any] = Future()
        if isinstance(answer, PoolError):
            future.set_exception(answer)
        else:
            future.set_result((answer, {}))
        return SimpleNamespace(future=future)

    return cast("Pool", SimpleNamespace(submit=submit, cancel=lambda _: None))


def test_a_control_that_passes_takes_as_long_as_a_whole_process(tmp_path: Path) -> None:
    asked: list[Question] = []
    ask = warm_control(pool(PASSED, asked), options(tmp_path, "trace"))
    assert ask is not None
    found = ask(40.0, Budget(60.0))
    assert found == PASSED.model_copy(update={"seconds": 0.5 + START})
    assert [(one.text, one.task, one.limit) for one in asked] == [("pass\n", "control", 40.0)]


@pytest.mark.parametrize(
    "answer",
    [
        Outcome(status="raised", text="Traceback (most recent call last):\nKeyError: 1", calls=1),
        Outcome(status="timeout"),
        Outcome(status="infra"),
        Outcome(status="ok", calls=0),
        Outcome(status="ok", calls=1, raised=1),
        PoolError("no torch"),
    ],
)
def test_anything_else_is_not_believed(tmp_path: Path, answer: Outcome | PoolError) -> None:
    ask = warm_control(pool(answer, []), options(tmp_path, "launcher"))
    assert ask is not None
    assert ask(40.0, Budget(60.0)) is None


def test_nothing_is_asked_once_the_time_is_over(tmp_path: Path) -> None:
    budget = Budget(60.0)
    budget.cancel()
    unanswered = cast("Pool", SimpleNamespace(submit=lambda _: SimpleNamespace(future=Future()), cancel=lambda _: None))
    ask = warm_control(unanswered, options(tmp_path, "trace"))
    assert ask is not None
    assert ask(40.0, budget) is None


@pytest.mark.parametrize("taken_as", [None, "script", "command", "notebook"])
def test_what_people_wrote_is_run_as_they_run_it(tmp_path: Path, taken_as: TakenAs | None) -> None:
    assert warm_control(pool(PASSED, []), options(tmp_path, taken_as)) is None
