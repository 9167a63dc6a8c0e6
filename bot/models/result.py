"""`result.json`: everything that is known at the end of a run."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field, model_validator

from bot.models.failure import Model, Signature, Stage

EagerControl = Literal["passes", "fails", "not_applicable"]


Status = Literal["minimized", "reproduced", "not_reproduced", "flaky", "error"]
EndedBy = Literal["fixed_point", "budget", "interrupted"]

# Why a program was not minimized. Each is said only after a check that can fail; docs/refusals.md names it.
ReasonCode = Literal[
    "passes",
    "fails_in_eager",
    "compiler_never_reached",
    "not_understood",
    "needs_hardware",
    "needs_file",
    "needs_package",
    "fails_before_compile",
    "flaky",
    "machine_fault",
    "budget",
    "internal",
]
# What the input was taken for.
TakenAs = Literal["script", "command", "runnable", "launcher", "debug_dir", "trace", "exported_program", "package", "notebook"]

# The exit status of `torch-minify run` for each status.
EXIT_STATUS: dict[Status, int] = {"minimized": 0, "reproduced": 3, "not_reproduced": 4, "flaky": 5, "error": 1}
# The title of a comment for each status.
TITLE: dict[Status, str] = {
    "minimized": "Minimized",
    "reproduced": "Reproduced, not smaller",
    "not_reproduced": "Did not reproduce here",
    "flaky": "Flaky",
    "error": "Could not be minimized",
}


# What a result directory holds. When one is used again, these are removed, and anything else in it stays.
CONTENTS = ("result.json", "repro.py", "exported_program.pt2", "exported_program.txt", "kernel.py", "reduction.jsonl", "original")
# The exit status for an input that cannot be used.
UNUSABLE = 2


class InputTaken(Model):
    """What the input was taken for. `detail` is a phrase for people."""

    taken_as: TakenAs
    detail: str


class Reduction(Model):
    """How much smaller the program became. `ops_before` and `ops_after` are null in the stage `source`."""

    ops_before: int | None = Field(default=None, description="operations that compute something, of the graph that failed")
    ops_after: int | None = Field(default=None, description="the same, of the repro's graph")
    lines_before: int = Field(
        default=0, description="of the program and the modules of its project, without comments and empty ones; 0 if they are not known"
    )
    lines_after: int = Field(default=0, description="the same, of the repro")
    input_elements_before: int | None = Field(default=None, description="of all inputs and constants of the graph that failed")
    input_elements_after: int | None = Field(default=None, description="the same, of the repro's graph")
    queries: int = Field(
        default=0, description="programs that were tried to find a start, to reduce it, and for the evidence; lines of `reduction.jsonl`"
    )
    memo_hits: int = Field(default=0, description="questions whose answer was known from before, so that nothing was run")
    seconds: float = Field(default=0.0, description="of the search alone, as in `timing`")


class Timing(Model):
    """Seconds spent in each part of the job."""

    capture: float = 0.0
    search: float = 0.0
    verification: float = 0.0
    evidence: float = 0.0
    total: float = Field(default=0.0, description="from start to end, including what belongs to none of the parts")


class Rule(Model):
    """What a fresh run has to show in addition to the signature. Whoever verifies a repro checks the same."""

    hang_after: float = Field(default=60.0, description="seconds after which a run counts as hanging")
    numbers: Literal["fp64", "spread", "eager"] = Field(
        default="fp64",
        description="accuracy: what has to pass the script's comparison in place of compiled results. fp64: float64; spread: float64, even"
        " if moved as far from eager as rounding explains, and farther; eager: nothing, since the program's settings say eager is right",
    )
    own_verdict: bool = Field(
        default=False,
        description="exception, crash: the program itself ends this way if a result is wrong, so it has to pass with correct numbers",
    )
    partial: bool = Field(default=False, description="the control may end after the failing statement, as the program's own control does")
    error: str = Field(default="", description="what eager raises and compiled code does not; empty: anything for no_raise, else nothing")

    @model_validator(mode="before")
    @classmethod
    def _as_written_before(cls, given: Any) -> Any:
        # results of earlier versions say that float64 was dropped if eager missed the tolerance: it no longer is
        return {key: value for key, value in given.items() if key != "precise"} if isinstance(given, dict) else given


class VerificationFacts(Model):
    """The runs in fresh processes: how many there were, how many failed the same way, and how the eager control ended."""

    runs: int = 0
    same: int = 0
    eager: EagerControl = "not_applicable"
    instead_of_float64: str | None = Field(
        default=None, description="accuracy: why eager, with each result moved by a unit in its last place, stood in for float64"
    )
    rule: Rule = Rule()


class ExportedProgram(Model):
    """Whether the exported program, loaded and compiled again, fails the same way; if not, the reason."""

    same_signature: bool
    reason: str | None = None


class Files(Model):
    """File names relative to the result directory."""

    repro: str | None = None
    exported_program: str | None = None
    exported_text: str | None = Field(default=None, description="the exported program as `print` shows it")
    kernel: str | None = None
    sha256: dict[str, str] | None = Field(
        default=None, description="hash of each of these files, by name; a file with another hash was replaced or changed; null: not known"
    )


class Elsewhere(Model):
    """What the repro does under another interpreter."""

    python: str = Field(description="the interpreter, as given")
    versions: dict[str, str] = Field(default_factory=dict)
    same: bool
    said: str | None = Field(default=None, description="what it did instead of failing the same way")


class Evidence(Model):
    """What explains the failure in addition to the repro."""

    passes_if: str | None = Field(default=None, description="the edit that leads to the most similar program that passes")
    nearness: str | None = Field(
        default=None,
        description="if only the program's own check calls results wrong: how close to float64 they are, compared with eager's",
    )
    other_failures: tuple[str, ...] = Field(default=(), description="signatures of other failures that the search came across")
    elsewhere: tuple[Elsewhere, ...] = Field(default=(), description="one for each `--also-python`")
    pytorch_dump: bool = Field(default=False, description="whether PyTorch's own minifier dumped anything")


class Result(Model):
    """`result.json`: everything that is known at the end of a job."""

    schema_: int = Field(default=1, alias="schema", serialization_alias="schema")
    status: Status
    ended_by: EndedBy = Field(default="fixed_point", description="fixed_point: neither the budget nor an interruption cut it off")
    stage: Stage | None = None
    compile_only: bool = False
    machine_fault: str | None = None
    reason: str | None = Field(default=None, description="for people: why it is not minimized, or what was not found out about a repro")
    signature: Signature | None = None
    reduction: Reduction = Reduction()
    timing: Timing = Timing()
    verification: VerificationFacts = VerificationFacts()
    culprit: str | None = None
    sandbox: tuple[str, ...] = ()
    versions: dict[str, str] = Field(default_factory=dict, description="of the interpreter and its packages; the machine that it ran on")
    evidence: Evidence = Evidence()
    exported_program: ExportedProgram | None = None
    files: Files = Files()
    input: InputTaken | None = None
    reason_code: ReasonCode | None = Field(
        default=None,
        description="why it is not minimized; null if it is, if a search that ended left nothing smaller, and after an interruption",
    )

    @property
    def exit_status(self) -> int:
        """The exit status of `torch-minify run`."""
        return UNUSABLE if self.reason_code == "not_understood" else EXIT_STATUS[self.status]

    def to_json(self) -> str:
        """The text of `result.json`."""
        return self.model_dump_json(by_alias=True, indent=2) + "\n"
