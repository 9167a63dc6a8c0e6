"""What a person sees on standard error while the job runs: a live line on a terminal, plain lines elsewhere."""

from __future__ import annotations

import os
import sys
import time
from typing import TextIO

from rich.console import Console
from rich.status import Status
from rich.text import Text

from bot.workflow_commands import END_GROUP, begin_group, harmless, visible

# Seconds. In a log, nobody wants a line for every query.
PLAIN_EVERY = 5.0


class Progress:
    """One job's progress, written to `stream` (standard error). `step` starts a part of the job, `update` shows how far it is (`text`)."""

    def __init__(self, stream: TextIO | None = None) -> None:
        self._console = Console(file=stream or sys.stderr, highlight=False, soft_wrap=True)
        self._actions = os.environ.get("GITHUB_ACTIONS") == "true"
        self._status: Status | None = None
        self._grouped = False
        self._started = time.monotonic()
        self._last = 0.0

    def step(self, text: str) -> None:
        """Start a part of the job."""
        self.close()
        text = visible(text)
        if self._actions:
            self._console.print(begin_group(text), markup=False)
            self._grouped = True
        elif self._console.is_terminal:
            self._status = self._console.status(Text(text))  # not markup, even if it looks like it
            self._status.start()
        else:
            self.say(text)

    def update(self, text: str) -> None:
        """Show how far the part is."""
        if self._status is not None:
            self._status.update(Text(visible(text)))
        elif time.monotonic() - self._last > PLAIN_EVERY:
            self.say(text)

    def close(self) -> None:
        """End the part."""
        if self._status is not None:
            self._status.stop()
            self._status = None
        if self._grouped:
            self._console.print(END_GROUP, markup=False)
            self._grouped = False

    def say(self, text: str) -> None:
        """Write `text` as a line that stays."""
        self._last = time.monotonic()
        # A separate line might begin with ::, and so be a command to the Actions runner.
        words = harmless(" | ".join(visible(text).splitlines()))
        self._console.print(f"[{self._last - self._started:6.1f} s] {words}", markup=False)
