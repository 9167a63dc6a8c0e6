"""Child processes that run what is not ours: watched, relayed line by line, and ended as a group."""

from __future__ import annotations

import os
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

# Seconds that a child has to end after a signal: GitHub's own grace on cancel is about ten.
GRACE = 5.0
# Characters of one line that are passed on.
LONGEST_LINE = 4000


class Stopped(Exception):
    """We were told to end."""


def ignore_line(_: str) -> None:
    """Watch nothing: the default for who is told each line."""


@dataclass
class Children:
    """Runs one child at a time under `account`; `stop` ends it and lets none begin.

    What it prints goes to the streams of `console`, and each line to `watch`.
    """

    account: Account
    console: Console
    watch: Callable[[str], None] = ignore_line
    _stopped: threading.Event = field(default_factory=threading.Event)

    def run(
        self,
        command: Sequence[str],
        *,
        cwd: Path,
        env: Mapping[str, str],
        limit: float,
        tick: Callable[[], None] = lambda: None,
        every: float = 15.0,
    ) -> int:
        """Run `command` in the directory `cwd` with the environment `env`, and return its exit status: 124 past `limit` seconds.

        `tick` is called in a thread about `every` so many seconds while it runs, one call at a time.

        Raises:
            OSError: it cannot be started.
            Stopped: before it began.
        """
        if self._stopped.is_set():
            raise Stopped
        child = subprocess.Popen(  # type: ignore[call-overload]
            list(command),
            cwd=cwd,
            env=dict(env),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
            **self.account.popen(),
        )
        relays = [
            threading.Thread(target=self._relay, args=pair, daemon=True)
            for pair in ((child.stdout, self.console.stdout), (child.stderr, self.console.stderr))
        ]
        for relay in relays:
            relay.start()
        status = self._wait(child, limit, tick, every)
        for relay in relays:
            # a process that it left behind may hold the pipe open
            relay.join(timeout=1)
        return status

    def stop(self) -> None:
        """End the child that runs, and begin no other."""
        self._stopped.set()

    def _wait(self, child: subprocess.Popen[bytes], limit: float, tick: Callable[[], None], every: float) -> int:
        began = ticked = time.monotonic()
        # beside the watch: a save may take half a minute, and GitHub gives us ten seconds after a cancel
        ticking: threading.Thread | None = None
        try:
            while True:
                try:
                    return child.wait(timeout=0.2)
                except subprocess.TimeoutExpired:
                    now = time.monotonic()
                if self._stopped.is_set() or now - began > limit:
                    status = self._end(child)
                    return status if self._stopped.is_set() else 124
                if now - ticked > every and not (ticking and ticking.is_alive()):
                    ticked = now
                    ticking = threading.Thread(target=tick, daemon=True)
                    ticking.start()
        finally:
            if ticking is not None:
                # the last save comes after this one
                ticking.join()

    def _end(self, child: subprocess.Popen[bytes]) -> int:
        for number in (signal.SIGTERM, signal.SIGKILL):
            with suppress(ProcessLookupError):
                os.killpg(child.pid, number)
            try:
                return child.wait(timeout=GRACE)
            except subprocess.TimeoutExpired:
                continue
        return child.wait()

    def _relay(self, source: IO[bytes], target: TextIO) -> None:
        redact = LineRedactor()
        for line in _lines(source):
            text = redact(line)[:LONGEST_LINE]
            target.write(text + "\n")
            target.flush()
            self.watch(text)


def _lines(source: IO[bytes]) -> Iterator[str]:
    """The lines of `source`, of long ones the beginning: more than is shown, since a secret that is cut in two is not found."""
    whole = True
    for piece in iter(lambda: source.readline(2 * LONGEST_LINE), b""):
        if whole:
            yield piece.decode("utf-8", errors="replace").rstrip("\n")
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
