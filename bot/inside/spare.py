"""A warm process for one question that is not a fork: for parents that must not fork.

A plug-in that torch loads by itself (its entry points `torch.backends`), or a `sitecustomize`, may have started a device's runtime in the
warm parent. Such runtimes do not survive a fork: a child that then uses the device fails, whatever the program. So each question gets its
own interpreter. It has imported what the parent imports before the question comes: one such process is started in advance, while the
previous one works.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sys
from collections.abc import Iterator

from .protocol import Question, command, decode, encode

# The first byte of an answer: the process is warm and has begun.
BEGUN = b"\n"


@contextlib.contextmanager
def pipes(count: int) -> Iterator[list[int]]:
    """The ends of `count` new pipes, the read end of each first. They are closed if the body raises OSError. Raises OSError if the system
    has no more pipes, or if the body does."""
    ends: list[int] = []
    try:
        for _ in range(count):
            ends += os.pipe()
        yield ends
    except OSError:
        for end in ends:
            os.close(end)
        raise


class InWaiting:
    """The process `pid` that waits for a question, with our ends of the pipes `question`, `output` and `result`."""

    def __init__(self, pid: int, question: int, output: int, result: int) -> None:
        self.pid = pid
        self.output = output
        self.result = result
        self._question = question

    @property
    def descriptors(self) -> tuple[int, int, int]:
        """Our ends of its pipes."""
        return self._question, self.output, self.result

    def ask(self, question: Question) -> None:
        """Give it its `question` in a file: a pipe that nobody reads yet holds only 64 KiB."""
        path = os.path.join(question.dir, "question.json")
        os.makedirs(question.dir, exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(encode(question))
        with contextlib.suppress(BrokenPipeError):  # it has died, as its status will show
            os.write(self._question, path.encode() + b"\n")
        os.close(self._question)

    def end(self) -> None:
        """End one that was never given a question."""
        for fd in self.descriptors:
            os.close(fd)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)


class Spare(InWaiting):
    """An interpreter that waits for its question. Raises OSError if the system has no more processes or pipes."""

    def __init__(self) -> None:
        with pipes(3) as (theirs, question, output, outputs, result, results):
            for fd in (outputs, results):
                os.set_inheritable(fd, True)
            pid = os.posix_spawn(
                sys.executable,
                command(sys.executable, "spare", str(outputs), str(results)),
                os.environ,
                file_actions=[(os.POSIX_SPAWN_DUP2, theirs, 0)],
                setsid=True,  # so that its group can be killed with it
            )
        for fd in (theirs, outputs, results):
            os.close(fd)
        super().__init__(pid, question, output, result)


def answer_one(questions: int, output: int, result: int) -> None:
    """In a warm process: wait for the question at the descriptor `questions` and answer it through `output` and `result`. Returns if none
    comes because the parent is gone."""
    from . import worker

    with os.fdopen(questions, "r", encoding="utf-8", closefd=False) as lines:
        path = lines.readline().rstrip("\n")
    if not path:
        return
    with open(path, encoding="utf-8") as file:
        question = decode(Question, json.load(file))
    os.unlink(path)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(output, 1)
    os.dup2(output, 2)
    os.close(output)
    os.write(result, BEGUN)
    worker.answer(question, result)


def main(arguments: list[str]) -> None:
    """Warm up, then answer one question; the `arguments` are two pipes, for output and result."""
    output, result = map(int, arguments)
    from . import program, warm, worker  # noqa: F401  worker: what it imports is part of being warm

    warm.warm_up()
    program.collect()
    answer_one(0, output, result)
