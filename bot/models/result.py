"""The data that crosses the walls between rooms, and its JSON.

Nothing here imports torch or another room.
"""

from __future__ import annotations

import hashlib
from enum import Enum
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, computed_field, model_validator


class Kind(str, Enum):
    """What sort of failure it is."""

    EXCEPTION = "exception"
    ACCURACY = "accuracy"
    CRASH = "crash"
    HANG = "hang"
    NO_RAISE = "no_raise"


class Phase(str, Enum):
    """Where in the compiler it failed, in the order a program passes through."""

    DYNAMO = "dynamo"
    EXPORT = "export"
    PRE_GRAD = "pre_grad"
    AOT_AUTOGRAD = "aot_autograd"
    JOINT = "joint"
    POST_GRAD = "post_grad"
    INDUCTOR_LOWERING = "inductor_lowering"
    INDUCTOR_CODEGEN = "inductor_codegen"
    CPP_COMPILE = "cpp_compile"
    TRITON_COMPILE = "triton_compile"
    LOAD = "load"
    RUN = "run"


class Stage(str, Enum):
    """The form in which a program is minimized."""

    SOURCE = "source"
    DYNAMO = "dynamo"
    AOT = "aot"
    AOT_INDUCTOR = "aot_inductor"


# The message of a crash whose signal was raised by the allocator.
HEAP = "heap corruption"


class Verdict(str, Enum):
    """The oracle's answer about one candidate."""

    SAME = "SAME"
    DIFFERENT = "DIFFERENT"
    PASSES = "PASSES"
    TIMEOUT = "TIMEOUT"
    INVALID = "INVALID"
    INFRA = "INFRA"


class Model(BaseModel):
    """Base of every model here: immutable, unknown keys refused."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Signature(Model):
    """What makes two failures the same."""

    kind: Kind
    phase: Phase
    backward: bool = False
    exception: tuple[str, ...] = Field(default=(), description="class names, outermost first, root cause last")
    message: str = Field(default="", description="normalised message of the root cause")
    frame: str | None = Field(default=None, description="innermost torch frame, as torch/path.py:function")
    signal: str | None = Field(default=None, description="for a crash: SIGSEGV, SIGABRT, ...")

    @model_validator(mode="before")
    @classmethod
    def _without_fingerprint(cls, given: Any) -> Any:
        # it is written for readers and follows from the rest
        return {key: value for key, value in given.items() if key != "fingerprint"} if isinstance(given, dict) else given

    @computed_field  # type: ignore[prop-decorator]
    @property
    def fingerprint(self) -> str:
        """Sixteen hex digits: of two signatures of one kind, equal exactly where `same_across_forms` is true."""
        parts = (self.kind.value, *self._essence())
        return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]

    def _essence(self) -> tuple[str, ...]:
        if self.kind in (Kind.ACCURACY, Kind.NO_RAISE):
            return ()
        if self.kind is Kind.CRASH:
            # memory that was written over shows in one run as this signal, in the next as another
            memory = self.signal in ("SIGSEGV", "SIGBUS") or self.message == HEAP
            return ("memory" if memory else self.signal or "", self.phase.value)
        if self.kind is Kind.HANG:
            return (self.phase.value,)
        root = self.exception[-1] if self.exception else ""
        return (self.phase.value, root, self.message)

    def same_across_forms(self, other: Signature) -> bool:
        """Whether two failures are the same although the scripts differ in form (the outer wrappers differ then).

        A missing error shows as the failed assertion of the script that expected it; that eager raises, its control says.
        """
        if self.kind is Kind.NO_RAISE:
            return other.kind in (Kind.NO_RAISE, Kind.ACCURACY)
        return self.kind is other.kind and self._essence() == other._essence()

    def same(self, other: Signature) -> bool:
        """Whether two failures of scripts of one form are the same."""
        if not self.same_across_forms(other):
            return False
        if self.kind is Kind.EXCEPTION:
            return (self.exception, self.backward) == (other.exception, other.backward) and (
                self.frame == other.frame or self.frame is None or other.frame is None
            )
        if self.kind is Kind.CRASH:
            return self.frame == other.frame or self.frame is None or other.frame is None
        return True

    def line(self) -> str:
        """One line for people."""
        what = self.signal or (": ".join(self.exception) if self.exception else self.kind.value)
        where = self.phase.value + (" (backward)" if self.backward else "")
        first = self.message.splitlines()[0][:160] if self.message else ""
        return f"{self.kind.value} in {where}: {what}" + (f": {first}" if first and self.kind is Kind.EXCEPTION else "")


EagerControl = Literal["passes", "fails", "not_applicable"]


Status = Literal["minimized", "reproduced", "not_reproduced", "flaky", "error"]
EndedBy = Literal["fixed_point", "budget", "interrupted"]

# The exit status of `torch-minify run` for each.
EXIT_STATUS: dict[Status, int] = {"minimized": 0, "reproduced": 3, "not_reproduced": 4, "flaky": 5, "error": 1}
# What a comment is called.
TITLE: dict[Status, str] = {
    "minimized": "Minimized",
    "reproduced": "Reproduced, not smaller",
    "not_reproduced": "Did not reproduce here",
    "flaky": "Flaky",
    "error": "Could not be minimized",
}


class Reduction(Model):
    """How much smaller it became. `ops` are null for the stage source."""

    ops_before: int | None = None
    ops_after: int | None = None
    lines_before: int = 0
    lines_after: int = 0
    input_elements_before: int | None = None
    input_elements_after: int | None = None
    queries: int = 0
    memo_hits: int = 0
    seconds: float = 0.0


class Timing(Model):
    """Seconds spent in each part of the job."""

    capture: float = 0.0
    search: float = 0.0
    verification: float = 0.0
    evidence: float = 0.0


class Rule(Model):
    """What a fresh run is held against beside the signature: whoever verifies a repro asks the same of it."""

    hang_after: float = Field(default=60.0, description="seconds after which a run hangs")
    precise: bool = Field(default=True, description="accuracy: eager has to be right against float64 as well")
    partial: bool = Field(default=False, description="the control may end behind the statement that fails, as the program's own does")
    error: str = Field(default="", description="no_raise: what eager has to raise; empty: anything")


class VerificationFacts(Model):
    """Runs in fresh processes: how many, how many failed the same way, and the eager control."""

    runs: int = 0
    same: int = 0
    eager: EagerControl = "not_applicable"
    rule: Rule = Rule()


class ExportedProgram(Model):
    """Whether the exported program, loaded and compiled again, fails the same way; else why not."""

    same_signature: bool
    reason: str | None = None


class Files(Model):
    """File names relative to the result directory."""

    repro: str | None = None
    exported_program: str | None = None
    exported_text: str | None = Field(default=None, description="the exported program as `print` shows it")
    kernel: str | None = None


class Elsewhere(Model):
    """What the repro does under another interpreter."""

    python: str = Field(description="the interpreter, as it was given")
    versions: dict[str, str] = Field(default_factory=dict)
    same: bool
    said: str | None = Field(default=None, description="what it did instead of failing alike")


class Evidence(Model):
    """What explains the failure beyond the repro."""

    passes_if: str | None = Field(default=None, description="the nearest program that passes: the edit that leads to it")
    other_failures: tuple[str, ...] = Field(default=(), description="signatures of other failures that the search met")
    elsewhere: tuple[Elsewhere, ...] = Field(default=(), description="one for each --also-python")
    pytorch_dump: bool = Field(default=False, description="whether PyTorch's own minifier dumped anything")


class Result(Model):
    """`result.json`: all that is known at the end of a job."""

    schema_: int = Field(default=1, alias="schema", serialization_alias="schema")
    status: Status
    ended_by: EndedBy = "fixed_point"
    stage: Stage | None = None
    compile_only: bool = False
    machine_fault: str | None = None
    reason: str | None = Field(default=None, description="for people: why it is not minimized")
    signature: Signature | None = None
    reduction: Reduction = Reduction()
    timing: Timing = Timing()
    verification: VerificationFacts = VerificationFacts()
    culprit: str | None = None
    sandbox: tuple[str, ...] = ()
    versions: dict[str, str] = Field(default_factory=dict)
    evidence: Evidence = Evidence()
    exported_program: ExportedProgram | None = None
    files: Files = Files()

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)

    def to_json(self) -> str:
        """As `result.json` holds it."""
        return self.model_dump_json(by_alias=True, indent=2) + "\n"


class Code(Model):
    """Whose program it is, and where it was found. It is run, so the answer says it."""

    where: Literal["comment", "issue", "pull_request", "push"]
    author: str = Field(description="login of who wrote it")
    trusted: bool = Field(description="whether the author has write permission")
    url: str | None = None
    note: str | None = Field(default=None, description="which of several blocks was taken, for people")


class Answer(Model):
    """Where the answer goes: one comment for each event, found again by its marker."""

    repository: str = Field(description="owner/name")
    issue: int | None = Field(default=None, description="issue or pull request; null: one is opened for the signature")
    marker: str = Field(description="hidden in the comment, the same for all requests of an event")
    comment: int | None = Field(default=None, description="the comment that says queued")
    trigger: int | None = Field(default=None, description="the comment that asked: reactions go there")


class RequestOptions(Model):
    """What `run` is told. Null: its own default."""

    stage: Stage | None = None
    accuracy: Literal["off", "auto", "on", "strict"] | None = None
    device: Literal["cpu", "cuda"] | None = None
    budget: float | None = Field(default=None, description="seconds", gt=0)
    python_version: str | None = None
    torch_version: str | None = None


class Request(Model):
    """What to minimize, with what options, and where the answer goes. Exactly one of `script` and `command` is set."""

    schema_: int = Field(default=1, alias="schema", serialization_alias="schema")
    id: str = Field(description="unique in the repository: letters, digits and dashes")
    script: str | None = Field(default=None, description="text of a Python program")
    command: str | None = Field(default=None, description="what `run --command` takes")
    repository: str = Field(description="owner/name of what is checked out")
    commit: str | None = Field(default=None, description="its full hash, resolved once")
    code: Code
    asked_by: str = Field(description="login; for red CI the workflow's name")
    options: RequestOptions = RequestOptions()
    answer: Answer
    expected: str | None = Field(default=None, description="one line: the failure that CI showed")
    tests: tuple[str, ...] = Field(default=(), description="all tests that fail in this way")

    model_config = ConfigDict(frozen=True, extra="forbid", populate_by_name=True)

    @model_validator(mode="after")
    def _one_program(self) -> Request:
        if (self.script is None) == (self.command is None):
            raise ValueError("a request has either a script or a command")
        return self


class Stored(Model):
    """A file that a result came with, and where people find it."""

    name: str
    size: int = Field(description="bytes")
    sha256: str
    kept: str | None = Field(default=None, description="URL of a copy that does not expire")


class Download(Model):
    """An artifact of the run. GitHub deletes it after a while, and asks for a login."""

    url: str
    expires: str | None = Field(default=None, description="a date, for people")


class Section(Model):
    """The answer to one request. The texts are what its program wrote: hostile."""

    request: Request
    result: Result | None = None
    problem: str | None = Field(default=None, description="for people: what was wrong with what came back")
    repro: str | None = None
    exported_text: str | None = Field(default=None, description="the exported program as `print` shows it")
    kernel: str | None = None
    files: tuple[Stored, ...] = ()
    download: Download | None = None
    altered: bool = Field(default=False, description="whether secrets or personal paths were taken out of the texts")


class Report(Model):
    """All that is posted for one event."""

    marker: str = Field(description="the first line of the comment, as in Answer")
    sections: tuple[Section, ...]
    run_url: str | None = None
