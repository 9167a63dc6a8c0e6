"""What a job knows so far, and the result that follows from it: whatever ends the job, this is what is written."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field

from bot.engine.capture.region import Capture
from bot.engine.workspace import Workspace
from bot.models.failure import Kind, Signature, Stage
from bot.models.result import Elsewhere, EndedBy, Evidence, ExportedProgram, Files, Reduction, Result, Status, Timing, VerificationFacts
from bot.oracle.memo import Ledger
from bot.reduce.graph.form import Program
from bot.reduce.graph.printer.script import lines

# The packages whose versions a repro's header names.
_NAMED = ("torch", "triton", "python")


@dataclass
class Findings:
    """Filled in as the job goes on. Times in seconds."""

    original: str | None  # the user's script; None for a command
    verify_runs: int
    versions: dict[str, str] = field(default_factory=dict)  # of the user's interpreter
    capture: Capture | None = None
    failure: Signature | None = None  # of the original program
    stage: Stage | None = None
    start: Program | None = None  # what the search began with
    program: Program | None = None  # and what it has now; None for the stage source
    text: str | None = None  # the best script
    reference: Signature | None = None  # its signature, in its own form
    ledger: Ledger | None = None
    confirmed: tuple[Program | None, str] | None = None
    confirmed_at: int = 0  # the place in the history of the last program that a fresh process confirmed
    verification: VerificationFacts = field(default_factory=VerificationFacts)
    fixed_point: bool = False
    neighbours: tuple[str, str] | None = None  # what the search ended with, and the nearest program that passed there
    passes_if: str | None = None
    culprit: str | None = None
    exported: ExportedProgram | None = None
    other: tuple[str, ...] = ()
    elsewhere: tuple[Elsewhere, ...] = ()
    timing: dict[str, float] = field(default_factory=dict)
    history: list[tuple[Program | None, str]] = field(default_factory=list)  # every accepted step

    def limit(self) -> float:
        """Seconds for one query, from what the first failing run took."""
        return max(20.0, 3 * self.capture.outcome.seconds) if self.capture else 60.0

    def eager_error(self) -> str:
        """What eager raises, where the failure is that compiled code does not."""
        missing = self.failure is not None and self.failure.kind is Kind.NO_RAISE
        return self.capture.eager_error if missing and self.capture is not None else ""

    def back_to_confirmed(self) -> None:
        """Describe the last program that a fresh process confirmed: the one that stands on disk."""
        if self.confirmed is not None:
            program, self.text = self.confirmed
            self.program = program or self.program

    def status(self) -> Status:
        """What the fresh runs say."""
        proof = self.verification
        if not proof.runs or proof.eager == "fails":
            return "error"
        if 0 < proof.same < proof.runs:
            return "flaky"
        if proof.same < self.verify_runs:
            return "error"
        return "minimized" if self.smaller() else "reproduced"

    def smaller(self) -> bool:
        """Whether the repro is strictly smaller than what came in."""
        if self.text is None:
            return False
        if self.original is None:
            return True
        reduced = self.reduction()
        if reduced.ops_before is not None and reduced.ops_after is not None and reduced.ops_after < reduced.ops_before:
            return True
        if self.stage is Stage.SOURCE and reduced.lines_after == reduced.lines_before:
            return _characters(self.text) < _characters(self.original)
        return reduced.lines_after < reduced.lines_before

    def unproven(self, why: str) -> str | None:
        """`why` where the repro is not proven; None where it is."""
        return None if self.verification.same >= self.verify_runs and self.verification.eager != "fails" else why

    def reduction(self) -> Reduction:
        """How much smaller it became."""
        start, end = self.start, self.program
        return Reduction(
            ops_before=start.graph.ops if start else None,
            ops_after=end.graph.ops if start and end else None,
            lines_before=lines(self.original or ""),
            lines_after=lines(self.text or ""),
            input_elements_before=start.graph.input_elements if start else None,
            input_elements_after=end.graph.input_elements if start and end else None,
            queries=self.ledger.queries if self.ledger else 0,
            memo_hits=self.ledger.memo_hits if self.ledger else 0,
            seconds=round(self.timing.get("search", 0.0), 3),
        )

    def headed(self, text: str, proof: VerificationFacts) -> str:
        """The script with the comments that a repro begins with."""
        assert self.failure is not None
        versions = self.versions
        head = [
            self.failure.line(),
            ", ".join(f"{name} {versions[name]}" for name in _NAMED if versions.get(name)),
            f"failed in {proof.same} of {proof.runs} fresh processes",
        ]
        return "".join(f"# {line}\n" for line in head) + text

    def result(self, space: Workspace, status: Status, ended_by: EndedBy, reason: str | None = None, fault: str | None = None) -> Result:
        """`result.json`, with the files that are there."""
        return Result(
            status=status,
            ended_by=ended_by,
            stage=self.stage,
            machine_fault=fault,
            reason=reason,
            signature=self.failure,
            reduction=self.reduction(),
            timing=Timing(**{name: round(self.timing.get(name, 0.0), 3) for name in Timing.model_fields}),
            verification=self.verification,
            culprit=self.culprit,
            versions=self.versions,
            evidence=Evidence(
                passes_if=self.passes_if,
                other_failures=self.other,
                elsewhere=self.elsewhere,
                pytorch_dump=(space.original / "pytorch").is_dir(),
            ),
            exported_program=self.exported,
            files=Files(
                repro=space.repro.name if self.confirmed and space.repro.exists() else None,
                exported_program=space.exported.name if self.exported and space.exported.exists() else None,
                exported_text=space.exported_text.name if self.exported and space.exported_text.exists() else None,
            ),
        )


def _characters(text: str) -> int:
    """Of the code, without its comments and however it is laid out."""
    try:
        return len(ast.unparse(ast.parse(text)))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return len(text)
