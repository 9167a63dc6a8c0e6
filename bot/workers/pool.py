"""The warm parent process, seen from our side: questions in, outcomes out.

The parent imports the compiler once and forks a child for each question (`bot.inside.server`), so a crash, a hang or a corrupted
interpreter costs only its own question. The parent itself is replaced when it dies, or no longer answers.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import queue
import signal
import subprocess
import tempfile
import threading
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import cast

from pydantic import ValidationError

from bot.failure.outcome import Outcome
from bot.inside.own_time import Standstill, is_stopped
from bot.inside.protocol import Cancel, Facts, Ping, Pong, Question, Ready, Reply, StartFailed, command, encode
from bot.inside.variables import without_settings
from bot.sandbox.files import Scratch
from bot.sandbox.process import Process
from bot.sandbox.sandbox import NoSandbox, Sandbox
from bot.workers import environment
from bot.workers.declared import misfit
from bot.workers.libraries import imports_of, libraries_of
from bot.workers.process import LIMITS, has_raised
from bot.workers.toolchain import lent_headers

# How many questions about scripts with the same libraries it takes to start a parent for these, and the most such parents.
OFTEN, MOST_WITH_LIBRARIES = 2, 2
# Seconds within which the parent must have imported torch and the compiler. One that was late is replaced once: it may have been stopped,
# and a disk that was slow is quicker the second time.
START_LIMIT = 180.0
# Seconds that it gets to end by itself; its children die with it.
LAST_WAIT = 0.3
# Seconds within which a parent whose answers have ended is seen to be dead.
DEATH = 5.0
# Seconds between two pings of a parent that has questions, and after how many unanswered ones it is ended. What it does itself, such as a
# fork, takes milliseconds. Pings are counted, and not seconds: on a machine that stood still, neither side did anything.
PULSE, UNANSWERED = 5.0, 6
# How often in a row a parent that died without an answer is replaced.
RESTARTS = 5
# Bytes of one answer. The longest hold a traceback and the program's output.
LONGEST_ANSWER = 64 << 20
# Bytes that any program may take, however little the one that is being reduced takes.
LEAST_MEMORY = 16 << 30


def memory_for(largest: int) -> int:
    """Bytes for a worker, if the largest process of the program that is being reduced took `largest`.

    In float64 it takes twice as much. If a machine has less than that, its kernel kills the process that holds the most, with the same
    effect.
    """
    return LEAST_MEMORY + 2 * largest


class PoolError(Exception):
    """The warm parent could not be started, or died too often in a row."""


@dataclass
class Asked:
    """A question on its way. Its future raises `PoolError` if the parent never came up."""

    future: Future[tuple[Outcome, Facts]]
    number: int
    directory: tempfile.TemporaryDirectory[str]

    def answer(self, facts: Facts) -> None:
        """Settle it with the `facts` that a child sent."""
        self.directory.cleanup()
        try:
            outcome = Outcome.model_validate({key: value for key, value in facts.items() if key in Outcome.model_fields})
        except ValidationError as error:  # the program wrote into our pipe
            outcome = Outcome(status="infra", text=f"unreadable answer: {error}")
        if key := misfit(facts, Facts):
            outcome, facts = Outcome(status="infra", text=f"unreadable answer: {key}"), {"status": "infra"}
        printed = facts.get("printed") or outcome.text
        if outcome.status == "exit" and has_raised(outcome.exit or 0, printed):
            # it printed the traceback and exited: a fresh process is read in the same way
            outcome = outcome.model_copy(update={"status": "raised", "text": printed})
        self.future.set_result((outcome, facts))

    def fail(self, reason: str) -> None:
        """Settle it, for this `reason`, if there is nobody to answer."""
        self.directory.cleanup()
        self.future.set_exception(PoolError(reason))


class _Parent:
    """One process of the warm parent, and the questions that it has."""

    def __init__(self, process: Process, on_ready: Callable[[dict[str, str]], None], *, after_late: bool) -> None:
        self.process = process
        self.late = False  # it did not get ready in time
        self.end = ""  # how it ended, if that is known
        self._after_late = after_late
        self.failure: str | None = None  # why it never became ready
        self._on_ready = on_ready
        self._ready = False
        self._over = False
        self.answered = False
        self._waiting: dict[int, Asked] = {}
        self._state = threading.Lock()
        # Lines for it, None after the last. One thread writes and one reads, so that a full pipe cannot block both sides.
        self._lines: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._listens = threading.Event()
        self._ended = threading.Event()
        self._unanswered = 0  # pings
        self._alarm = threading.Timer(START_LIMIT, self._on_start_timeout)
        self._alarm.daemon = True
        self._alarm.start()
        for work in (self._reader_loop, self._writer_loop, self._pulse_loop):
            threading.Thread(target=work, daemon=True).start()

    def take(self, asked: Asked, question: Question) -> bool:
        """Send a question, as soon as the parent can read it; False if this parent has ended."""
        with self._state:
            if self._over:
                return False
            self._waiting[asked.number] = asked
        self._lines.put(encode(question).encode() + b"\n")
        return True

    @property
    def is_ready(self) -> bool:
        """Whether it takes questions right away."""
        return self._ready and not self._over

    def cancel(self, asked: Asked) -> None:
        """Stop a question."""
        with self._state:
            if asked.number not in self._waiting:
                return
        message: Cancel = {"cancel": asked.number}
        self._lines.put(json.dumps(message).encode() + b"\n")

    def close(self) -> None:
        """End it, and its children with it."""
        self.end = self.end or "it was no longer needed"
        self._lines.put(None)
        self._listens.set()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(LAST_WAIT)
        self.process.end()

    def _writer_loop(self) -> None:
        self._listens.wait()
        assert self.process.stdin is not None
        # a broken pipe: the reader answers what was waiting
        with contextlib.suppress(OSError), self.process.stdin as pipe:
            while (line := self._lines.get()) is not None:
                pipe.write(line)
                pipe.flush()

    def _pulse_loop(self) -> None:
        """End a parent that hangs: without one, each of its questions would wait for the end of the search. One that warms up waits for
        compilers, and cannot answer: it is ended if a signal has stopped it, or one of these."""
        standstill = Standstill(self.process.pid, stopped=is_stopped)
        while not self._ended.wait(PULSE):
            if not self._ready and standstill.lasts():
                self.end = "a signal had stopped it, or a compiler that it had started"
                self.process.end()
                return
            if not self._ready or not self._waiting:
                self._unanswered = 0
            elif self._unanswered >= UNANSWERED:
                self.end = "it no longer answered"
                self.process.end()
                return
            else:
                self._unanswered += 1
                message: Ping = {"ping": self._unanswered}
                self._lines.put(json.dumps(message).encode() + b"\n")

    def _reader_loop(self) -> None:
        assert self.process.stdout is not None
        with self.process.stdout as answers:
            for line in iter(lambda: answers.readline(LONGEST_ANSWER), b""):
                if not line.endswith(b"\n"):
                    break  # it was killed in the middle of a line, or this is not one of our answers
                try:
                    self._heard(json.loads(line))
                except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
                    break  # a library that it has imported for a program wrote into the pipe
            else:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    # the kernel kills the largest process: the next parent may come up
                    if self.process.wait(DEATH) == -signal.SIGKILL and not self.end:
                        self.end = "it was killed, as for its memory"
        self.process.end()
        if self.process.report.ended:
            self.end = LIMITS[self.process.report.ended]
        self._ended.set()
        self._alarm.cancel()
        self._lines.put(None)
        self._listens.set()
        with self._state:
            self._over = True
            lost, self._waiting = self._waiting, {}
            if self.failure is None and not self._ready and not self.end:
                self.failure = (
                    self.process.report.failed or f"the worker's parent ended with status {self.process.returncode} before it was ready"
                )
        for asked in lost.values():
            if self.failure is not None:
                asked.fail(self.failure)
            else:
                asked.answer({"status": "infra", "text": "the worker's parent died" + (f": {self.end}" if self.end else "")})

    def _heard(self, message: Ready | StartFailed | Reply | Pong) -> None:
        self._unanswered = 0
        if "pong" in message:
            return
        if "ready" in message:
            self._alarm.cancel()
            self._on_ready(message["ready"])
            self._ready = True
            self._listens.set()
        elif "failed" in message:
            self.failure = message["failed"]
        else:
            number, facts = message["id"], dict(message["outcome"])
            with self._state:
                asked = self._waiting.get(number)
            if asked is not None:
                asked.answer(cast("Facts", facts))
                # only now: an unreadable answer does not count
                with self._state:
                    del self._waiting[number]
                self.answered = True

    def _on_start_timeout(self) -> None:
        said = f"the interpreter did not import torch within {START_LIMIT:.0f} s"
        if self._after_late:
            self.failure = f"{said}, twice"
        self.late, self.end = True, said
        self.process.end()


@dataclass
class Pool:
    """One warm parent and the questions it is working on. Close it when done. It and its children run in the sandbox `box`, if any."""

    python: str
    cache: Path
    log: Path
    cwd: Path | None = None
    versions: dict[str, str] = field(default_factory=dict)
    restarts: int = 0
    memory: int = LEAST_MEMORY  # bytes for each question
    box: Sandbox | None = None

    def __post_init__(self) -> None:
        self._numbers = itertools.count(1)
        self._starting = threading.Lock()
        self._parent: _Parent | None = None
        self._others: dict[frozenset[str], _Parent] = {}  # parents by the libraries that they have imported
        self._wanted: Counter[frozenset[str]] = Counter()  # how often a script with such libraries was asked about
        self._closed = False

    def directory(self) -> tempfile.TemporaryDirectory[str]:
        """A new directory that the workers may write to."""
        made = Scratch(prefix="torch-minify-", dir=self._questions())
        if self.box is not None:
            self.box.lend(Path(made.name))
        return made

    def _questions(self) -> Path | None:
        """The directory that holds those of the questions; None for the system's default."""
        if self.box is None:
            return None
        place = self.box.scratch / "questions"
        if not place.is_dir():
            place.mkdir(exist_ok=True)
            self.box.share(place)
        return place

    def start(self) -> None:
        """Start the parent in the background, if there is none; questions wait until it is ready. Raises OSError if the interpreter cannot
        be run."""
        self._ensure_running()

    def submit(self, question: Question) -> Asked:
        """Send a `question`; its future gives the outcome and the raw facts (`values` for the task shapes). Raises PoolError if there is no
        torch in this interpreter, the parent keeps dying, or the pool is closed."""
        directory = self.directory()
        asked = Asked(Future(), next(self._numbers), directory)
        question = replace(question, memory=question.memory or self.memory, id=asked.number, dir=directory.name)
        ready = self._with_libraries(question.text)
        if ready is not None and ready.take(asked, question):
            return asked
        while not self._ensure_running().take(asked, question):
            pass
        return asked

    def ask(self, question: Question) -> tuple[Outcome, Facts]:
        """Send a question and wait."""
        return self.submit(question).future.result()

    def cancel(self, asked: Asked) -> None:
        """Stop a question that was `asked` and whose answer is no longer needed."""
        for parent in self._parents():
            parent.cancel(asked)

    def close(self) -> None:
        """End the parent and its children."""
        with self._starting:
            self._closed = True
            for parent in self._parents():
                parent.close()

    def _ensure_running(self) -> _Parent:
        """The parent, replaced if it has died."""
        with self._starting:
            if self._closed:
                raise PoolError("the pool is closed")
            if self._parent is not None:
                if self._parent.failure is not None:
                    raise PoolError(self._parent.failure)
                if self._parent.process.poll() is None:
                    return self._parent
                self.restarts = 1 if self._parent.answered else self.restarts + 1
                if self.restarts > RESTARTS:
                    last = f" (the last time, {self._parent.end})" if self._parent.end else ""
                    raise PoolError(f"the worker's parent keeps dying{last}; see {self.log}")
            self._parent = self._spawn()
            return self._parent

    def _parents(self) -> list[_Parent]:
        return [*([self._parent] if self._parent is not None else []), *self._others.values()]

    def _with_libraries(self, text: str) -> _Parent | None:
        """The parent that has imported exactly the libraries of the script `text`, if it is ready: an additional library could hide that a
        script lacks its import. It is started when such scripts are asked about for the second time."""
        libraries = libraries_of(text)
        if not libraries:
            return None
        with self._starting:
            self._wanted[libraries] += 1
            if self._closed or self._wanted[libraries] < OFTEN:
                return None
            if libraries not in self._others and len(self._others) < MOST_WITH_LIBRARIES:
                self._others[libraries] = self._spawn(imports_of(text))
            parent = self._others.get(libraries)
            return parent if parent is not None and parent.is_ready else None

    def _spawn(self, libraries: Sequence[str] = ()) -> _Parent:
        # A candidate carries its own settings. The ISA probe of a cold cache costs a second in each child, and optimizing the glue around
        # AOTInductor's kernels half of its time. The proof, in fresh processes, does both.
        faster = {"TORCHINDUCTOR_VEC_ISA_OK": "1", "AOT_INDUCTOR_COMPILE_WRAPPER_OPT_LEVEL": "O0"}
        env = {**without_settings(environment.of_workers(self.cache)), **faster}
        box = self.box or Sandbox(self.cache, on=False)
        write = [path for path in (box.share(self.cache), self._questions()) if path is not None] if self.box is not None else []
        with open(self.log, "ab") as log:
            try:
                process = box.start(
                    command(self.python, "server", lent_headers(box), *libraries),
                    cwd=self.cwd,
                    env=env,
                    write=write,
                    address_space=False,  # each question has a limit of its own
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    stderr=log,
                )
            except NoSandbox as error:
                raise PoolError(str(error)) from error
        return _Parent(process, self.versions.update, after_late=self._parent is not None and self._parent.late)

    def __enter__(self) -> Pool:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
