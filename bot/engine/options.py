"""The parsed command line, and how a job may end early."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path

from bot.engine.target import Target
from bot.models.failure import Stage
from bot.models.result import InputTaken, ReasonCode, Status


@dataclass(frozen=True)
class Options:
    """What the user asked for. Times are in seconds; `hang_after` is None if the budget decides (see `time_split`). `cuda_arch` is the
    compute capability (90 for 9.0) of a GPU that isn't there, to compile for. `jobs` is None for as many as there is room for."""

    target: Target
    python: str
    out: Path
    stage: Stage | None = None
    accuracy: str = "auto"
    device: str | None = None
    cuda_arch: int | None = None
    budget: float = 1800.0
    hang_after: float | None = None
    verify_runs: int = 3
    jobs: int | None = 1
    seed: int = 0
    resume: bool = False
    also_python: tuple[str, ...] = ()
    network: bool = False
    sandbox: bool = True  # False: for tests of other things
    require_sandbox: bool = False
    read: tuple[Path, ...] = ()  # what else the program may read
    taken: InputTaken | None = None  # what the input was taken for; None: the target tells
    unusable: str = ""  # why the input is not a program, for people
    wrong_numbers: bool = False  # the input was dumped for its numbers
    then: str = ""  # the script to take if the target passes
    otherwise: str = ""  # a script that compares the compiled code of a package with its program, if that passes

    def require_interpreter(self) -> None:
        """Raises `Ended` if there is no interpreter to run anything with."""
        if shutil.which(self.python) is None:
            said = f"there is no interpreter {self.python} that can be started: --python names another one"
            raise Ended("error", "machine_fault", said, machine_fault="no usable torch in this interpreter")


class Ended(Exception):
    """The job ends here, with this `status` and a `reason`, a sentence; `code` is the sort of reason. `machine_fault` is set if the machine
    is to blame."""

    def __init__(self, status: Status, code: ReasonCode, reason: str, *, machine_fault: str | None = None) -> None:
        super().__init__(reason)
        self.status, self.code, self.reason, self.machine_fault = status, code, reason, machine_fault
