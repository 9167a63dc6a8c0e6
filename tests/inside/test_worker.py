"""What a worker says of a run beside how it ended."""

from __future__ import annotations

import contextlib
import json
import os
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

from bot.inside import worker  # noqa: E402
from bot.inside.protocol import Question  # noqa: E402


def test_numbers_of_a_gpu_count_and_its_start_does_not(monkeypatch: pytest.MonkeyPatch) -> None:
    class Generator:
        offset = 0

        def get_offset(self) -> int:
            return self.offset

    before = worker.generator_state()
    generator = Generator()
    monkeypatch.setattr(torch.cuda, "default_generators", (generator,))
    assert worker.generator_state() == before, "a GPU that nobody started is not asked"
    monkeypatch.setattr(torch.cuda, "is_initialized", lambda: True)
    assert worker.generator_state() == before
    generator.offset = 4
    assert worker.generator_state() != before


def test_a_worker_that_cannot_be_set_up_is_no_failure_of_the_program(tmp_path: Path) -> None:
    taken = tmp_path / "taken"
    taken.touch()
    reading, writing = os.pipe()
    forked = os.fork()
    if forked == 0:
        with contextlib.suppress(BaseException):
            worker.answer(Question("pass", dir=str(taken)), writing)
        os._exit(1)
    os.close(writing)
    with os.fdopen(reading) as answers:
        said = json.loads(answers.read())
    assert os.waitstatus_to_exitcode(os.waitpid(forked, 0)[1]) == 0
    assert said["status"] == "infra"
    assert said["text"].startswith("the worker could not be set up: ")
    assert "FileExistsError" in said["text"]
