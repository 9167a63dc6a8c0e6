"""What a mode of the Action comes to, and where it is shown."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TextIO

from bot.workflow_commands import Annotation, outputs


class InputError(ValueError):
    """An input, an event or a file between jobs that cannot be used. The message is for people."""


@dataclass(frozen=True)
class JobOutcome:
    """What a job comes to: `summary` is Markdown for the job's page, `stdout` whole lines for its log."""

    exit_status: int = 0
    outputs: Mapping[str, str] = field(default_factory=dict)
    summary: str = ""
    annotations: tuple[Annotation, ...] = ()
    stdout: str = ""


@dataclass(frozen=True)
class Console:
    """The streams of a job, the runner's files for outputs and summary, and whether the runner of Actions reads them."""

    stdout: TextIO
    stderr: TextIO
    in_actions: bool = False
    output: Path | None = None
    summary: Path | None = None

    def publish(self, outcome: JobOutcome) -> int:
        """Write all that `outcome` holds to where it belongs, and return its exit status."""
        _append(self.output, outputs(outcome.outputs))
        _append(self.summary, outcome.summary)
        if self.in_actions:
            self.stdout.write("".join(f"{annotation.command()}\n" for annotation in outcome.annotations))
        self.stdout.write(outcome.stdout)
        return outcome.exit_status


def _append(path: Path | None, text: str) -> None:
    if path is not None and text:
        with path.open("a", encoding="utf-8") as file:
            file.write(text)
