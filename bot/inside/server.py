"""The warm parent: imports torch and the compiler once, runs nothing, and forks a child for each question.

If the parent had run one parallel kernel, a child would hang in its own first one, because the OpenMP threads do not survive the fork. So
the parent only imports. If importing started a device's runtime, which does not survive a fork either, each question has a new process
instead (`spare`).

The messages, one JSON object per line, are in `protocol`. In: `Question`, `Cancel` or `Ping`. Out: `Ready` once, then a `Reply` to each
question and a `Pong` to each ping.
"""

from __future__ import annotations

import contextlib
import gc
import json
import os
import resource
import select
import signal
import sys
import time
from dataclasses import replace

from .cache import link_headers
from .half_written import remove_half_written
from .kept_apart import close_to_children
from .orphans import adopt_orphans, offspring
from .own_time import OwnTime, Standstill, is_stopped
from .protocol import CUDA_ARCH, Facts, Pong, Question, Ready, Reply, StartFailed, decode
from .shortcuts import last_words, shortcut
from .spare import BEGUN, Spare, pipes
from .standby import Standby, gpus, suits

# Bytes kept of each end of a child's output, and the maximum size of its answer; a longer one is not accepted.
KEEP, LONGEST = 100_000, 32 << 20
# How often a child past its limit is asked for its stack, and the seconds it gets for each; then it is killed.
STACKS, LAST_WORDS = 3, 0.1
# Seconds between two checks of a child's memory.
LOOK = 0.05
# Seconds that a process which is not forked may take to warm up.
WARM = 180.0
# Maximum number of waiting forks with the GPU started, per GPU; in total at most one for every two CPUs.
STANDBYS = 6
# Reads of 64 KiB that empty a dead child's pipe, whatever its size.
LEFT = 32


class Child:
    """The process `pid` of one `question`, and what has come through the pipes `output` and `result`.

    `begun`: it is warm; one that is not forked reports that itself.
    """

    def __init__(self, question: Question, pid: int, output: int, result: int, *, begun: bool = True) -> None:
        self.question = question
        self.pid = pid
        self.output = output
        self.result = result
        self.begun = begun
        self._begin(question.limit if begun else WARM)
        self.standstill = Standstill(pid)
        self.head = b""
        self.tail = b""
        self.answer = b""
        self.status: int | None = None
        self.timed_out = False
        self.asked = 0
        self.cancelled = False
        self.over = False  # over its memory limit
        self.looked = 0.0

    def _begin(self, limit: float) -> None:
        """Start its time limit, in seconds of its own time."""
        self.own = OwnTime(self.pid)
        self.limit, self.deadline = limit, time.monotonic() + limit

    def is_late(self, now: float) -> bool:
        """Whether its time is over at the moment `now`; on a busy machine that is later than the original deadline."""
        self.own.look()
        if now >= self.deadline and not self.asked:
            self.deadline = max(self.deadline, now + self.limit - self.own.seconds())
        return now >= self.deadline

    def read(self, fd: int) -> bool:
        """Read what the pipe `fd` contains; False at its end."""
        try:
            data = os.read(fd, 65536)
        except OSError:
            data = b""
        if fd == self.result:
            if data and not self.begun:
                self.begun = True
                self._begin(self.question.limit)
                self.answer = data.removeprefix(BEGUN)
            elif len(self.answer) < LONGEST:
                self.answer += data
        else:
            room = KEEP - len(self.head)
            self.head += data[:room]
            self.tail = (self.tail + data[room:])[-KEEP:]
        return bool(data)

    def outcome(self) -> Facts:
        """The raw facts."""
        printed = (self.head + (b"\n[...]\n" if len(self.tail) == KEEP else b"") + self.tail).decode("utf-8", "replace")
        seconds = self.own.seconds()
        facts: Facts = {"status": "infra", "text": printed, "seconds": round(seconds, 4)}
        status = self.status or 0
        if not self.begun:
            return {**facts, "text": f"no process came up for this question: {printed[-1000:]}"}
        if self.cancelled:
            return {**facts, "text": "cancelled"}
        if self.timed_out:
            return {**facts, "status": "timeout"}
        if self.over:
            return {**facts, "status": "memory"}
        if os.WIFSIGNALED(status):
            number = os.WTERMSIG(status)
            # The kernel's out-of-memory killer uses SIGKILL; nothing else here does before the time limit.
            return {**facts, "status": "memory" if number == signal.SIGKILL else "signal", "signal": signal.Signals(number).name}
        if self.answer:
            try:
                answer = json.loads(self.answer)
            except (ValueError, RecursionError):  # the program wrote into our pipe
                return facts
            if isinstance(answer, dict):
                return {**facts, **answer, "printed": printed[-40000:]}
        code = os.WEXITSTATUS(status)
        return {**facts, "status": "exit" if code else "ok", "exit": code}


class Server:
    """Forks, watches and answers, through the pipes `requests` and `answers`; single-threaded, so that forking stays safe.

    `forks`: otherwise each question has its own process (`spare`). `resident`: a child's resident memory is watched; otherwise its address
    space is limited. A GPU driver reserves more addresses than the machine has memory, and maps what is allocated on the GPU. `headers`:
    the directory in which the job keeps precompiled headers, empty for none.
    """

    def __init__(self, requests: int, answers: int, *, resident: bool = False, forks: bool = True, headers: str = "") -> None:
        self.requests = requests
        self.answers = answers
        self.resident = resident
        self.forks = forks
        self.headers = headers
        self.spare: Spare | None = None
        self.standbys: list[Standby] = []
        self.most_standbys = 0  # until a program uses or names the GPU
        self.starts_gpu = True  # no waiting fork has failed to
        self.buffer = b""
        self.children: dict[int, Child] = {}
        self.addresses = resource.getrlimit(resource.RLIMIT_AS)
        self.killed = True  # a child, or the previous parent, was killed, and its compiler with it

    def send(self, message: Ready | StartFailed | Reply | Pong) -> None:
        """Write a `message` as one complete line."""
        data = json.dumps(message).encode() + b"\n"
        while data:
            data = data[os.write(self.answers, data) :]

    def start(self, question: Question) -> None:
        """Start a process for a `question`; if the system has no resources for it, that is the answer. Raises SystemExit if somebody has
        limited our memory meanwhile: the children would fail for it, and those of the next parent do not."""
        if resource.getrlimit(resource.RLIMIT_AS) != self.addresses:
            sys.exit("the warm parent's memory was limited while it ran")
        if self.killed and not self.children:
            self.killed = False
            remove_half_written(os.environ.get("TORCHINDUCTOR_CACHE_DIR", ""))
        if self.headers:
            link_headers(self.headers)
        try:
            child = self._waiting(question) or (self._fork(question) if self.forks else self._spawn(question))
        except OSError as error:
            self.send({"id": question.id, "outcome": {"status": "infra", "text": f"no process could be started: {error}", "seconds": 0.0}})
            return
        self.children[question.id] = child
        # a control may be asked while the program itself runs, which should have the GPU's memory
        if "cuda" in question.text and not question.task.startswith("control"):
            self._expect_gpu()
        self._stand_by()

    def _waiting(self, question: Question) -> Child | None:
        """A fork that has started the GPU, given its question; None if there is none, or if it would not do."""
        if not self.standbys or not suits(question):
            return None
        ready = self.standbys.pop(0)
        ready.ask(self._of_child(question))
        return Child(question, ready.pid, ready.output, ready.result, begun=False)

    def _stand_by(self) -> None:
        """Start as many waiting forks as allowed, if there are resources for them."""
        with contextlib.suppress(OSError):
            while len(self.standbys) < self.most_standbys:
                self.standbys.append(Standby(self._descriptors()))

    def _descriptors(self) -> list[int]:
        """Descriptors that a fork must not keep open."""
        of_children = [fd for child in self.children.values() for fd in (child.output, child.result)]
        return [self.requests, self.answers, *of_children, *(fd for one in self.standbys for fd in one.descriptors)]

    def _note_gpu(self, child: Child, facts: Facts) -> None:
        """Decide whether forks should wait with the GPU started: once a program has used it, until one could not be started."""
        if not child.begun and self.forks and self.resident:
            self.most_standbys = 0
            self.starts_gpu = False
        elif facts.get("device"):
            self._expect_gpu()
            self._stand_by()

    def _expect_gpu(self) -> None:
        """From now on expect programs to use the GPU, if there is one."""
        if self.forks and self.resident and self.starts_gpu and CUDA_ARCH not in os.environ:
            self.most_standbys = max(1, min(STANDBYS * max(1, len(gpus())), (os.cpu_count() or 1) // 2))

    def _fork(self, question: Question) -> Child:
        with pipes(2) as (output_read, output_write, result_read, result_write):
            pid = os.fork()
        if pid == 0:
            try:
                os.setsid()
                for fd in (*self._descriptors(), output_read, result_read):
                    os.close(fd)
                nothing = os.open(os.devnull, os.O_RDONLY)
                os.dup2(nothing, 0)
                os.dup2(output_write, 1)
                os.dup2(output_write, 2)
                from . import worker

                worker.answer(self._of_child(question), result_write)
            except BaseException:
                import traceback

                traceback.print_exc()
                os._exit(70)
            os._exit(0)
        os.close(output_write)
        os.close(result_write)
        return Child(question, pid, output_read, result_read)

    def _spawn(self, question: Question) -> Child:
        ready, self.spare = self.spare or Spare(), None
        ready.ask(self._of_child(question))
        # the next one warms up while this one works; if there are no resources for two, it starts with its question
        with contextlib.suppress(OSError):
            self.spare = Spare()
        return Child(question, ready.pid, ready.output, ready.result, begun=False)

    def _of_child(self, question: Question) -> Question:
        """The question as the child sees it: if its memory is watched from here, the child sets no limit itself."""
        return replace(question, memory=0) if self.resident else question

    def finish(self, child: Child) -> None:
        """Kill what is left of a child's process group, report, and forget it."""
        _kill(child.pid, signal.SIGKILL)
        self.killed |= os.WIFSIGNALED(child.status or 0)
        # what the pipes still contain, without waiting for a grandchild that keeps them open or keeps writing
        for fd in (child.output, child.result):
            for _ in range(LEFT):
                if not (select.select([fd], [], [], 0)[0] and child.read(fd)):
                    break
            os.close(fd)
        del self.children[child.question.id]
        self.end_orphans()
        facts = child.outcome()
        self.send({"id": child.question.id, "outcome": facts})
        self._note_gpu(child, facts)

    def end_orphans(self) -> None:
        """End what children left behind in process groups of their own; we adopted it when they died."""
        waiting = [*self.standbys, *([self.spare] if self.spare else [])]
        ours = {child.pid for child in self.children.values()} | {one.pid for one in waiting}
        for pid in offspring() - ours:
            _kill(pid, signal.SIGKILL, group=False)
            os.waitpid(pid, 0)

    def watch(self) -> None:
        """Reap the children that ended, and stop those past their limit."""
        now = time.monotonic()
        for child in list(self.children.values()):
            if child.status is None:
                pid, status = os.waitpid(child.pid, os.WNOHANG)
                if pid:
                    child.status = status
                    self.finish(child)
                    continue
            if self.resident and not child.over and now >= child.looked + LOOK:
                child.looked, most = now, child.question.memory or 0
                child.over = 0 < most < _held(child.pid)
            # no answer would come before its limit, which may be all the time that is left
            child.cancelled = child.cancelled or child.standstill.lasts()
            if child.cancelled or child.over:
                _kill(child.pid, signal.SIGKILL)
            elif child.is_late(now):
                if not child.begun or is_stopped(child.pid):
                    child.cancelled = True  # no answer would count: it begins too late, or a signal has stopped it
                elif child.asked < STACKS:
                    # faulthandler writes the Python stack even if native code hangs
                    child.asked, child.timed_out = child.asked + 1, True
                    child.deadline = now + LAST_WORDS
                    _kill(child.pid, signal.SIGUSR1, group=False)
                else:
                    _kill(child.pid, signal.SIGKILL)

    def accept(self) -> bool:
        """Read requests; False when the other side is gone."""
        data = os.read(self.requests, 1 << 20)
        if not data:
            return False
        self.buffer += data
        *lines, self.buffer = self.buffer.split(b"\n")
        for line in lines:
            message = json.loads(line)
            if "cancel" in message:
                if message["cancel"] in self.children:
                    self.children[message["cancel"]].cancelled = True
            elif "ping" in message:
                self.send({"pong": message["ping"]})
            else:
                self.start(decode(Question, message))
        return True

    def serve(self) -> None:
        """Serve until the other side closes the pipe."""
        # otherwise the first full collection in each child writes to every page shared with us, and so copies it
        gc.freeze()
        gc.enable()
        alive = True
        while alive:
            pipes = {fd: child for child in self.children.values() for fd in (child.output, child.result)}
            # children are polled, since pidfds do not exist on every supported system
            wait = 0.005 if self.children else None
            ready, _, _ = select.select([self.requests, *pipes], [], [], wait)
            for fd in ready:
                if fd == self.requests:
                    alive = self.accept()
                elif not pipes[fd].read(fd):
                    time.sleep(0.001)
            self.watch()
        for child in list(self.children.values()):
            _kill(child.pid, signal.SIGKILL)
            os.waitpid(child.pid, 0)
        self.children.clear()
        for waiting in (*self.standbys, *([self.spare] if self.spare else [])):
            waiting.end()
        self.standbys, self.spare = [], None
        self.end_orphans()


def _held(pid: int) -> int:
    """Bytes of a process's resident memory that are not shared with the parent it was forked from."""
    try:
        with open(f"/proc/{pid}/statm", encoding="ascii") as file:
            _, resident, shared = file.read().split()[:3]
    except OSError:
        return 0
    return (int(resident) - int(shared)) * resource.getpagesize()


def _kill(pid: int, number: int, *, group: bool = True) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        (os.killpg if group else os.kill)(pid, number)


def main(words: list[str]) -> None:
    """Serve on standard input and output; the program's own output goes to standard error. `words` are the directory of precompiled
    headers, which may be empty, and libraries to import in advance."""
    headers, *names = words
    requests, answers = os.dup(0), os.dup(1)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(2, 1)
    # Ctrl-C in the terminal reaches the whole group; the other side decides when we end
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    server = Server(requests, answers, headers=headers)
    adopt_orphans()
    close_to_children()
    try:
        from . import warm

        facts = warm.warm_up()
        from . import worker  # noqa: F401  each child has it then

        server.resident = warm.sees_gpu()
        server.forks = False
        with shortcut("forking"):
            server.forks = not warm.runs_device()
        if names:
            from . import libraries

            libraries.load(names)
    except BaseException as error:
        server.send({"failed": last_words(error)})
        raise
    server.send({"ready": facts})
    try:
        server.serve()
    except (BrokenPipeError, ConnectionResetError):
        sys.exit(0)
