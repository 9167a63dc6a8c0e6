"""The outcome of a mode of the Action, and where it is shown."""

from __future__ import annotations

import io
import logging
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TextIO, cast

from bot.workflow_commands import Annotation, harmless, outputs

log = logging.getLogger(__name__)

# For the log.
FAULT = "torch-minify: this is a fault of ours; please report it with the lines below"


class InputError(ValueError):
    """An input, an event or a file between jobs that cannot be used. The message is for people."""


@dataclass(frozen=True)
class JobOutcome:
    """The outcome of a job: `summary` is Markdown for the job's page, `stdout` whole lines for its log."""

    exit_status: int = 0
    outputs: Mapping[str, str] = field(default_factory=dict)
    summary: str = ""
    annotations: tuple[Annotation, ...] = ()
    stdout: str = ""


class UnbrokenStream(io.TextIOBase):
    """A `stream` that accepts all output, even if nobody reads it any more.

    After a cancel, the runner's client of a job container is gone. Then the result must still be handed on, without a broken-pipe error.
    """

    @classmethod
    def over(cls, stream: TextIO) -> TextIO:
        """A wrapper of `stream`, typed as the text stream that we use it as."""
        return cast(TextIO, cls(stream))

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        """Write `text`, or lose it."""
        with suppress(OSError, ValueError):
            self._stream.write(text)
        return len(text)

    def flush(self) -> None:
        """Flush what was written, or lose it."""
        with suppress(OSError, ValueError):
            self._stream.flush()


@dataclass(frozen=True)
class Console:
    """The streams of a job, the runner's files for outputs and summary, and whether the Actions runner reads them."""

    stdout: TextIO
    stderr: TextIO
    in_actions: bool = False
    output: Path | None = None
    summary: Path | None = None

    def publish(self, outcome: JobOutcome) -> int:
        """Write everything in `outcome` to where it belongs, and return its exit status. A summary that cannot be written is logged.
        Raises InputError if the outputs cannot be written, since no other job knows what to do without them."""
        try:
            _append(self.output, outputs(outcome.outputs))
        except OSError as error:
            raise InputError(f"the outputs of this job cannot be written: {error.strerror}") from error
        try:
            _append(self.summary, outcome.summary)
        except OSError as error:
            # for example because of a full disk: the comment can still be written, and is what people wait for
            log.warning("the summary of this job cannot be written: %s", error.strerror)
        if self.in_actions:
            self.stdout.write("".join(f"{annotation.command()}\n" for annotation in outcome.annotations))
        # it may contain foreign text, and a command of the old form may be anywhere in a line
        self.stdout.write(harmless(outcome.stdout) if self.in_actions else outcome.stdout)
        return outcome.exit_status


def _append(path: Path | None, text: str) -> None:
    if path is not None and text:
        with path.open("a", encoding="utf-8") as file:
            file.write(text)
