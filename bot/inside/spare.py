"""A warm process for one question that is not a fork: for parents that must not fork.

A plug-in that torch loads by itself (its entry points `torch.backends`), or a `sitecustomize`, may have started a device's
runtime in the warm parent. Such runtimes do not survive a fork: a child that then uses the device fails, whatever the program.
So each question gets an interpreter of its own. It has imported what the parent imports before the question comes: one such
process is made in advance, while the one before it works.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sys

from .protocol import Question, command, decode, encode

# The first byte of an answer: the process is warm and has begun.
BEGUN = b"\n"


class Spare:
    """A process that waits for its question, and our ends of its pipes.

    Raises:
        OSError: the system has no process or no pipe to give.
    """

    def __init__(self) -> None:
        self._open: list[int] = []
        try:
            theirs, self._question = self._pipe()
            self.output, output = self._pipe()
            self.result, result = self._pipe()
            for fd in (output, result):
                os.set_inheritable(fd, True)
            self.pid = os.posix_spawn(
                sys.executable,
                command(sys.executable, "spare", str(output), str(result)),
                os.environ,
                file_actions=[(os.POSIX_SPAWN_DUP2, theirs, 0)],
                setsid=True,  # its group is ended with it
            )
        except OSError:
            for fd in self._open:
                os.close(fd)
            raise
        for fd in (theirs, output, result):
            os.close(fd)

    def ask(self, question: Question) -> None:
        """Give it its `question`, by a file: a pipe that nobody reads yet holds 64 KiB."""
        path = os.path.join(question.dir, "question.json")
        os.makedirs(question.dir, exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(encode(question))
        with contextlib.suppress(BrokenPipeError):  # it has died: its status says so
            os.write(self._question, path.encode() + b"\n")
        os.close(self._question)

    def end(self) -> None:
        """End one that was never asked."""
        for fd in (self._question, self.output, self.result):
            os.close(fd)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)

    def _pipe(self) -> tuple[int, int]:
        ends = os.pipe()
        self._open += ends
        return ends


def main(arguments: list[str]) -> None:
    """Warm up, wait for the question, answer it; the `arguments` are two pipes, for output and result. Without one, when the
    parent has gone: end."""
    output, result = map(int, arguments)
    from . import warm, worker

    warm.warm_up()
    with os.fdopen(0, "r", encoding="utf-8", closefd=False) as questions:
        path = questions.readline().rstrip("\n")
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
