"""Child processes that run foreign code: watched, relayed line by line, and ended as a group."""

from __future__ import annotations

import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, TextIO

from bot.action.console import Console
from bot.action.minify.isolation import Account
from bot.action.redaction import LineRedactor
from bot.sandbox.process import Process

# Seconds that a child has to exit after a signal: GitHub's own grace period on cancel is about ten.
GRACE = 5.0
# Maximum characters of one line that are relayed.
LONGEST_LINE = 4000
# Characters at the end of a truncated line that are not relayed: half a secret would not be recognized.
_CUT = 200
# Maximum characters of each stream of a child that are relayed.
LONGEST_LOG = 16 << 20


class Stopped(Exception):
    """We were told to end."""


def ignore_line(_: str) -> None:
    """Ignore the line: the default watcher."""


@dataclass
class Children:
    """Runs one child at a time, under `account` unless another one is given; `stop` ends it and lets no other begin, as does setting
    `stopped`.

    Its output goes to the streams of `console`, and each line to `watch`.
    """

    account: Account
    console: Console
    watch: Callable[[str], None] = ignore_line
    stopped: threading.Event = field(default_factory=threading.Event)
    _speaking: threading.Lock = field(default_factory=threading.Lock)

    def run(
        self,
        command: Sequence[str],
        *,
        cwd: Path,
        env: Mapping[str, str],
        limit: float,
        account: Account | None = None,
        tick: Callable[[], None] = lambda: None,
        every: float = 15.0,
    ) -> int:
        """Run `command` in the directory `cwd` with the environment `env`, and return its exit status: 124 after `limit` seconds.
        Everything that it started has ended by then. `account` replaces the usual account.

        `tick` is called in a thread about every `every` seconds while it runs, one call at a time.

        Raises:
            OSError: it cannot be started.
            Stopped: before it began.
        """
        if self.stopped.is_set():
            raise Stopped
        child = (account or self.account).start(
            command, cwd=cwd, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        # the runner reads its two streams at once: the order of lines is only kept within one of them
        errors = self.console.stdout if self.console.in_actions else self.console.stderr
        relays = [
            threading.Thread(target=self._relay, args=pair, daemon=True)
            for pair in ((child.stdout, self.console.stdout), (child.stderr, errors))
        ]
        for relay in relays:
            relay.start()
        try:
            status = self._wait(child, limit, tick, every)
        finally:
            # nothing that it left behind writes any more when this returns: what comes next in the log are our own words
            child.end()
            for relay in relays:
                relay.join(timeout=GRACE)
        if child.report.failed:
            raise OSError(8, child.report.failed)
        return status

    def stop(self) -> None:
        """End the running child, and start no other."""
        self.stopped.set()

    def _wait(self, child: Process, limit: float, tick: Callable[[], None], every: float) -> int:
        began = ticked = time.monotonic()
        # in parallel with watching: a save may take half a minute, and GitHub gives us ten seconds after a cancel
        ticking: threading.Thread | None = None
        try:
            while True:
                try:
                    return child.wait(timeout=0.2)
                except subprocess.TimeoutExpired:
                    now = time.monotonic()
                if self.stopped.is_set() or now - began > limit:
                    status = self._end(child)
                    return status if self.stopped.is_set() else 124
                if now - ticked > every and not (ticking and ticking.is_alive()):
                    ticked = now
                    ticking = threading.Thread(target=tick, daemon=True)
                    ticking.start()
        finally:
            if ticking is not None:
                # the last save comes after this one
                ticking.join()

    def _end(self, child: Process) -> int:
        with suppress(ProcessLookupError):
            child.send_signal(signal.SIGTERM)
        with suppress(subprocess.TimeoutExpired):
            return child.wait(timeout=GRACE)
        child.end()
        return child.wait()

    def _relay(self, source: IO[bytes], target: TextIO) -> None:
        redact = LineRedactor()
        written = 0
        # read to the end in any case, so that no writer blocks
        for line, cut in _lines(source):
            text = redact(line)
            text = (text[:-_CUT] if cut else text)[:LONGEST_LINE]
            self.watch(text)
            if written <= LONGEST_LOG:
                written += len(text) + 1
                with self._speaking:
                    target.write((text if written <= LONGEST_LOG else "[the log ends here: it is too long]") + "\n")
                    target.flush()


def _lines(source: IO[bytes]) -> Iterator[tuple[str, bool]]:
    """The lines of `source`, and whether a line was truncated because of its length."""
    whole = True
    for piece in iter(lambda: source.readline(2 * LONGEST_LINE), b""):
        if whole:
            yield piece.decode("utf-8", errors="replace").rstrip("\n"), len(piece) >= 2 * LONGEST_LINE and not piece.endswith(b"\n")
        whole = piece.endswith(b"\n")


@contextmanager
def stop_on_signals(stop: Callable[[], None]) -> Iterator[None]:
    """SIGINT and SIGTERM call `stop` instead of ending this process."""
    saved = {number: signal.signal(number, lambda *_: stop()) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in saved.items():
            signal.signal(number, handler)
