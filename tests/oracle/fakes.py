"""A pool without processes: what each question shows is a table of the test."""

from __future__ import annotations

import tempfile
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any

from bot.failure.outcome import Outcome
from bot.inside.protocol import Question
from bot.workers.pool import Asked

Answer = Callable[[Question], "dict[str, Any]"]

FAILS = {
    "status": "raised",
    "text": 'Traceback (most recent call last):\n  File "repro.py", line 1, in <module>\n'
    '  File "/x/site-packages/torch/_inductor/graph.py", line 9, in call_function\n    out = lower()\nAssertionError: no 7\n',
}
OTHER = {**FAILS, "text": FAILS["text"].replace("AssertionError", "ValueError")}
PASSES = {"status": "ok", "exit": 0}
CONTROL = {"status": "ok", "calls": 1}


@dataclass
class FakePool:
    """Answers after `wait(question)` seconds, or when cancelled; remembers what it was asked."""

    answer: Answer
    wait: Callable[[Question], float] = lambda _: 0.0
    asked: list[Question] = field(default_factory=list)
    cancelled: int = 0
    _waiting: dict[int, threading.Event] = field(default_factory=dict)

    def submit(self, question: Question) -> Asked:
        self.asked.append(question)
        number = len(self.asked)
        asked = Asked(Future(), number, tempfile.TemporaryDirectory())
        gone = self._waiting[number] = threading.Event()
        seconds = self.wait(question)
        if seconds:
            threading.Thread(target=self._later, args=(asked, question, gone, seconds), daemon=True).start()
        else:
            asked.answer(self.answer(question))
        return asked

    def ask(self, question: Question) -> tuple[Outcome, dict[str, Any]]:
        return self.submit(question).future.result()

    def cancel(self, asked: Asked) -> None:
        self.cancelled += 1
        self._waiting[asked.number].set()

    def _later(self, asked: Asked, question: Question, gone: threading.Event, seconds: float) -> None:
        asked.answer({"status": "infra", "text": "cancelled"} if gone.wait(seconds) else self.answer(question))

    @property
    def tasks(self) -> list[str]:
        """The tasks of all questions, in order."""
        return [question.task for question in self.asked]


def sleep_until(true: Callable[[], bool], limit: float = 5.0) -> None:
    """Wait for something that another thread does."""
    end = time.monotonic() + limit
    while not true():
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.005)
