"""The warm parent process, seen from our side: questions in, outcomes out.

The parent imports the compiler once and forks a child for each question (`bot.inside.server`), so a crash, a hang or a
corrupted interpreter costs its own question only. The parent itself is replaced when it dies.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import subprocess
import tempfile
import threading
from collections.abc import Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from bot.oracle.outcome import Outcome

BOOT = Path(__file__).resolve().parent.parent / "inside" / "boot.py"

# Seconds within which the parent must have imported torch and the compiler.
START_LIMIT = 180.0
# Seconds that it gets to end by itself; its children die with it.
LAST_WAIT = 0.3


class PoolError(Exception):
    """The warm parent could not be started, or died more often than it was replaced."""


def environment(cache: Path, extra: Mapping[str, str] | None = None) -> dict[str, str]:
    """The environment of a compiling process: graph caches off, so that no hit hides a failure; one compile directory."""
    return {
        **os.environ,
        "TORCHINDUCTOR_CACHE_DIR": str(cache),
        "TORCHINDUCTOR_FX_GRAPH_CACHE": "0",
        "TORCHINDUCTOR_AUTOGRAD_CACHE": "0",
        "TORCHINDUCTOR_COMPILE_THREADS": "1",
        "TORCHDYNAMO_VERBOSE": "1",
        "PYTHONFAULTHANDLER": "1",
        "PYTHONHASHSEED": "0",
        "PYTHONDONTWRITEBYTECODE": "1",
        # a parent that asked the driver could not fork any more
        "PYTORCH_NVML_BASED_CUDA_CHECK": "1",
        **(extra or {}),
    }


@dataclass
class Question:
    """A script to run in a child.

    `task`: run, control, control_fp64, shapes or export. `limit` in seconds, `memory` in bytes beyond the parent's own.
    """

    text: str
    task: str = "run"
    limit: float = 60.0
    memory: int = 16 << 30
    stop_after: str | None = None
    argv: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()  # put on sys.path, for a script whose modules lie beside it
    strict: bool = False  # task localise: integral and boolean values count
    tolerance: tuple[float, ...] | None = None  # task localise: see Recipe.tolerance
    save: str | None = None  # task export: where the exported program goes


@dataclass
class Asked:
    """A question on its way."""

    future: Future[tuple[Outcome, dict[str, Any]]]
    number: int
    directory: tempfile.TemporaryDirectory[str]


@dataclass
class Pool:
    """One warm parent and the questions it is working on. Close it when done."""

    python: str
    cache: Path
    log: Path
    cwd: Path | None = None
    versions: dict[str, str] = field(default_factory=dict)
    restarts: int = 0

    def __post_init__(self) -> None:
        self._lock = threading.Lock()
        self._numbers = itertools.count(1)
        self._waiting: dict[int, Asked] = {}
        self._process: subprocess.Popen[bytes] | None = None
        self._ready = threading.Event()
        self._failure: str | None = None
        self._closed = False

    def start(self) -> None:
        """Start the parent in the background; the first question waits for it."""
        # The ISA probe of a cold cache costs a second in each child; the proof, in fresh processes, does probe.
        env = environment(self.cache, {"TORCHINDUCTOR_VEC_ISA_OK": "1"})
        with open(self.log, "ab") as log:
            self._process = subprocess.Popen(
                [self.python, str(BOOT), "server"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                env=env,
                cwd=self.cwd,
                start_new_session=True,
            )
        self._ready.clear()
        self._failure = None
        threading.Thread(target=self._listen, args=(self._process,), daemon=True).start()

    def _listen(self, process: subprocess.Popen[bytes]) -> None:
        assert process.stdout is not None
        for line in process.stdout:
            message = json.loads(line)
            if "ready" in message:
                self.versions = message["ready"]
                self._ready.set()
            elif "failed" in message:
                self._failure = message["failed"]
                self._ready.set()
            else:
                self._answered(message["id"], message["outcome"])
        process.wait()
        if self._failure is None and not self._ready.is_set():
            self._failure = f"the worker's parent ended with status {process.returncode} before it was ready"
            self._ready.set()
        with self._lock:
            lost = list(self._waiting)
        for number in lost:
            self._answered(number, {"status": "infra", "text": "the worker's parent died"})

    def _answered(self, number: int, facts: dict[str, Any]) -> None:
        with self._lock:
            asked = self._waiting.pop(number, None)
        if asked is None:
            return
        asked.directory.cleanup()
        known = {key: facts[key] for key in Outcome.model_fields if key in facts}
        asked.future.set_result((Outcome(**known), facts))

    def submit(self, question: Question) -> Asked:
        """Send a question; its future gives the outcome and the raw facts (`values` for the task shapes).

        Raises:
            PoolError: there is no torch in this interpreter, or the parent keeps dying.
        """
        if self._process is None:
            self.start()
        if not self._ready.wait(START_LIMIT):
            raise PoolError(f"{self.python} did not import torch within {START_LIMIT:.0f} s")
        if self._failure is not None:
            raise PoolError(self._failure)
        assert self._process is not None
        if self._process.poll() is not None:
            self.restarts += 1
            if self.restarts > 5:
                raise PoolError("the worker's parent keeps dying; see " + str(self.log))
            self.start()
            return self.submit(question)
        number = next(self._numbers)
        directory = tempfile.TemporaryDirectory(prefix="torch-minify-", ignore_cleanup_errors=True)
        asked = Asked(Future(), number, directory)
        with self._lock:
            self._waiting[number] = asked
        self._send(
            {
                "id": number,
                "task": question.task,
                "text": question.text,
                "limit": question.limit,
                "memory": question.memory,
                "stop_after": question.stop_after,
                "argv": list(question.argv),
                "paths": list(question.paths),
                "save": question.save,
                "strict": question.strict,
                "tolerance": question.tolerance,
                "dir": directory.name,
            }
        )
        return asked

    def ask(self, question: Question) -> tuple[Outcome, dict[str, Any]]:
        """Send a question and wait."""
        return self.submit(question).future.result()

    def cancel(self, asked: Asked) -> None:
        """Stop a question whose answer is no longer needed."""
        self._send({"cancel": asked.number})

    def _send(self, message: dict[str, Any]) -> None:
        assert self._process is not None
        stdin: IO[bytes] | None = self._process.stdin
        assert stdin is not None
        with self._lock:
            try:
                stdin.write(json.dumps(message).encode() + b"\n")
                stdin.flush()
            except (BrokenPipeError, ValueError):
                return  # the listener answers what was waiting

    def close(self) -> None:
        """End the parent and its children."""
        self._closed = True
        if self._process is not None:
            if self._process.stdin is not None:
                with contextlib.suppress(BrokenPipeError):
                    self._process.stdin.close()
            try:
                self._process.wait(LAST_WAIT)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()

    def __enter__(self) -> Pool:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
