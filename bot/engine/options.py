"""The command line, read; and how a job may end before its end."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from bot.engine.target import Target
from bot.models.failure import Stage
from bot.models.result import Status


@dataclass(frozen=True)
class Options:
    """What the user asked for. Times in seconds."""

    target: Target
    python: str
    out: Path
    stage: Stage | None = None
    accuracy: str = "auto"
    device: str | None = None
    budget: float = 1800.0
    hang_after: float = 60.0
    verify_runs: int = 3
    jobs: int = 1
    seed: int = 0
    resume: bool = False
    also_python: tuple[str, ...] = ()
    network: bool = False
    sandbox: bool = True  # False: for tests of other things
    require_sandbox: bool = False
    read: tuple[Path, ...] = ()  # what the program may read besides


class Ended(Exception):
    """The job ends here, with this status and a `reason`, a sentence. `machine_fault` says so where the machine is to blame."""

    def __init__(self, status: Status, reason: str, *, machine_fault: str | None = None) -> None:
        super().__init__(reason)
        self.status, self.reason, self.machine_fault = status, reason, machine_fault
