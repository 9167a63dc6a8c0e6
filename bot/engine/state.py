"""What a job knows, part by part: each part is frozen, and made when the step that yields it is done."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from bot.engine.capture.region import Capture, nearness
from bot.engine.capture.source import Source
from bot.failure.device_errors import allowed_memory
from bot.models.failure import Kind, Signature, Stage
from bot.models.result import (
    Elsewhere,
    EndedBy,
    Evidence,
    ExportedProgram,
    Files,
    InputTaken,
    ReasonCode,
    Reduction,
    Result,
    Rule,
    Status,
    Timing,
    VerificationFacts,
)
from bot.reduce.graph.form import Program
from bot.reduce.graph.printer.script import lines, render
from bot.reduce.graph.printer.tensors import embed_blobs

# A repro with this many lines is not long.
FEW_LINES = 20
# An error this many times as large as eager's leaves no doubt.
_DOUBTFUL = 10
# A query may take this many times as long as the program; more if that compiled kernels in a pool of processes, as queries do not.
_TIMES, _TIMES_POOLED = 3, 6


@dataclass(frozen=True)
class Reproduction:
    """The program fails here. `failure` is what is minimized, `source` is the program as one text, if it has one.

    `original` is the text that a repro is compared with, including the modules of its project. `hang_after` is in seconds: longer than the
    user said if eager is slow. `seconds` is the time of all runs. `own_end` is the program's own end, if the failure is wrong numbers and
    the program says so in another way. `right_numbers`: with right numbers in place of compiled results, it ends differently.
    """

    capture: Capture
    failure: Signature
    source: Source | None
    original: str | None
    hang_after: float
    seconds: float = 0.0
    own_end: Signature | None = None
    right_numbers: bool = False

    @property
    def limit(self) -> float:
        """Seconds for one query, from the time of the first failing run; more if that compiled kernels in parallel, which queries do
        not."""
        return max(20.0, (_TIMES_POOLED if self.capture.pooled else _TIMES) * self.capture.outcome.seconds)

    @property
    def allowed_memory(self) -> int | None:
        """Bytes of GPU memory that the program was allowed, if it fails because it has no more."""
        return allowed_memory(self.failure, self.capture.outcome.text)

    @property
    def nearness(self) -> str:
        """How close compiled results are to float64, compared with eager's, if only the program's own check calls them wrong; else empty.

        The results are those of the program as given: the repro may compute less.
        """
        errors = self.capture.errors
        # if code does not raise where eager does, numbers say nothing
        judged = self.failure.kind is Kind.ACCURACY or (self.right_numbers and not self.capture.own_code)
        if errors is None or self.failure.kind is Kind.NO_RAISE or not judged:
            return ""
        wrong = [region for region in self.capture.regions if region.failed == "accuracy"]
        if any(region.rule.tolerance is None for region in wrong) or (wrong and errors[0] > _DOUBTFUL * errors[1]):
            return ""
        said = nearness(*errors, wrong=bool(wrong))
        if wrong:
            return f"in the program as given, by its own check alone: in the calls that were compared {said}"
        # a graph that Dynamo or AOTAutograd got wrong is just as wrong in eager, and a layout is not a number
        sees = "rounding, an error in tracing, outside of the graphs or in another call, or something other than numbers"
        each = "in the program as given, each compiled graph computes what it says in the calls that were compared"
        return f"{each}: {said}; what its own check rejects may be {sees}"

    @property
    def eager_error(self) -> str:
        """What eager raises, if the failure is that compiled code does not; the program may report that by an error or a status of its own.

        Empty if no such error is missing.
        """
        capture = self.capture
        # a failed control reports another error than the missing one
        own = capture.own_verdict and self.failure.kind is Kind.EXCEPTION and not (capture.partial or capture.wrong)
        return capture.eager_error if own or self.failure.kind is Kind.NO_RAISE else ""


@dataclass(frozen=True)
class SearchResult:
    """The best program of a search, at its end or at one of its steps.

    `start` and `program` are graphs, None for the stage source; `text` is the script. `reference` is the failure that it shows in its own
    form, None if no worker showed it. A fresh run is compared under `rule`. `neighbors`: this script, and the nearest one that passes.
    `fault`: what of ours failed, and so ended the search here (empty: nothing).
    """

    stage: Stage
    text: str
    rule: Rule
    start: Program | None = None
    program: Program | None = None
    reference: Signature | None = None
    fixed_point: bool = False
    neighbors: tuple[str, str] | None = None
    fault: str = ""

    def step(self, text: str, program: Program | None = None) -> SearchResult:
        """The same search one step further: `text`, rendered from `program` if it is a graph."""
        return replace(self, text=text, program=program)

    def final(self) -> str:
        """The script as it would be posted: with its recorded inputs embedded."""
        return render(embed_blobs(self.program)) if self.program is not None else self.text

    def confirmation(self) -> Proof:
        """What a confirmation of this step is worth: one run."""
        return Proof(self.final(), VerificationFacts(runs=1, same=1, eager="passes", rule=self.rule))


@dataclass(frozen=True)
class Proof:
    """What fresh processes showed about `text`. `differences`: a line for each run that was not the same. `seconds` is the time they took.
    `shown`: the failure of the first run that was the same; None if it is not known. `instead`: the other failure that all showed."""

    text: str
    facts: VerificationFacts
    differences: tuple[str, ...] = ()
    seconds: float = 0.0
    shown: Signature | None = None
    instead: Signature | None = None

    @property
    def rate(self) -> float:
        """The share of the runs in which the failure showed; 0 if the eager control did not pass."""
        return self.facts.same / self.facts.runs if self.facts.runs and self.facts.eager == "passes" else 0.0

    @property
    def holds(self) -> bool:
        """Whether the failure showed at least once, and only with the compiler."""
        return self.rate > 0


@dataclass(frozen=True)
class Explanation:
    """What is said in addition to the repro. `seconds` is the time it took to find."""

    passes_if: str | None = None
    culprit: str | None = None
    exported: ExportedProgram | None = None
    kernel: str | None = None
    other_failures: tuple[str, ...] = ()
    elsewhere: tuple[Elsewhere, ...] = ()
    seconds: float = 0.0


@dataclass(frozen=True)
class Findings:
    """All parts, each None until the job has come that far.

    `original` is the user's script; None for a command. `capture_seconds` is the time of the first runs, and `search_seconds` that of the
    search, whatever they showed.
    """

    original: str | None
    reproduction: Reproduction | None = None
    search: SearchResult | None = None
    proof: Proof | None = None
    explanation: Explanation = Explanation()
    capture_seconds: float = 0.0
    search_seconds: float = 0.0

    @property
    def verification(self) -> VerificationFacts:
        """What the fresh runs showed; zero runs if there were none."""
        return self.proof.facts if self.proof else VerificationFacts()

    def reduction(self, queries: int = 0, memo_hits: int = 0) -> Reduction:
        """How much smaller the program became, and at what cost: `queries` to workers, and `memo_hits` that needed none."""
        start, end = (self.search.start, self.search.program) if self.search else (None, None)
        return Reduction(
            ops_before=start.graph.ops if start else None,
            ops_after=end.graph.ops if start and end else None,
            lines_before=lines(self.original or ""),
            lines_after=lines(self._text or ""),
            input_elements_before=start.graph.input_elements if start else None,
            input_elements_after=end.graph.input_elements if start and end else None,
            queries=queries,
            memo_hits=memo_hits,
            seconds=round(self.search_seconds, 3),
        )

    def is_smaller(self) -> bool:
        """Whether the repro is strictly smaller than the input: its lines or, in a graph form, its operations or lines became fewer, and
        nothing else grew. A graph form of up to `FEW_LINES` lines is read at a glance, however short the program was. If the program's text
        is not known, its graph tells: fewer operations, or as many with smaller inputs."""
        if self.search is None or self._text is None:
            return False
        if self.original is None:
            graphs = [program.graph for program in (self.search.program, self.search.start) if program is not None]
            after, *before = [(graph.ops, graph.input_elements) for graph in graphs] or [(0, 0)]
            return before > [after]
        reduced = self.reduction()
        shorter = reduced.lines_after < reduced.lines_before
        if reduced.ops_before is None or reduced.ops_after is None:
            return shorter
        fewer = reduced.ops_after < reduced.ops_before
        return shorter or (fewer and reduced.lines_after <= max(reduced.lines_before, FEW_LINES))

    @property
    def _text(self) -> str | None:
        return self.proof.text if self.proof else self.search.text if self.search else None

    def status(self, runs: int) -> Status:
        """The status by the fresh runs, of which `runs` have to fail alike."""
        proof = self.verification
        if not proof.runs or proof.eager != "passes":
            return "error"
        if 0 < proof.same < proof.runs:
            return "flaky"
        if proof.same < runs:
            return "error"
        return "minimized" if self.is_smaller() else "reproduced"

    def shown(self) -> Signature:
        """The program's failure in the words of the repro: what fails in a backward may fail alone, as a graph that is called, and sizes,
        or what is compared, differ there."""
        assert self.reproduction is not None
        failure, reference = self.reproduction.failure, self.search.reference if self.search else None
        own = failure.backward if reference is None else reference.backward
        heard = (self.proof.shown if self.proof else None) or reference
        # if the program itself exits and its graph is compared, the program's words remain
        said = heard.said if heard is not None and heard.exception[-1:] == failure.exception[-1:] else failure.said
        return failure.model_copy(update={"backward": failure.backward and own, "said": said})

    @property
    def never_began(self) -> bool:
        """Whether the time was over before any form of the program was seen to fail alone: what fresh runs had then was its script as it
        is, which may need more than that, like a file."""
        search = self.search
        return search is not None and search.reference is None and not (search.fixed_point or search.fault or self.verification.same)

    @property
    def lets_nothing_through(self) -> bool:
        """Whether the program does not end with its failure, and each form of it was seen not to fail that way either."""
        search, given = self.search, self.reproduction
        if search is None or given is None or self.verification.same:
            return False
        if given.capture.ended is None and given.capture.outcome.status != "ok":
            return False
        return search.reference is None and search.fixed_point and not search.fault

    def unreduced(self, status: Status) -> str | None:
        """Why nothing of a script was tried to be removed, if fresh runs left it with this `status`; None if something was."""
        search = self.search
        if status not in ("reproduced", "flaky") or search is None or search.reference is not None or not search.fixed_point:
            return None
        return "it failed in fresh processes, but in none of those that would have reduced it, so nothing was tried to be removed"

    def code(self, status: Status) -> ReasonCode | None:
        """The reason code for what the proof left with this `status`; None if that needs none."""
        if status == "error":
            return "budget" if self.never_began else "not_understood" if self.lets_nothing_through else "internal"
        return "flaky" if status == "flaky" else None

    def unlike(self, *, by_command: bool) -> str:
        """How the fresh runs, or their control, differed from the failure of the program, which is run `by_command` or not."""
        seen, instead = self.verification, self.proof.instead if self.proof else None
        if self.never_began:
            said = (
                "out of time before a form of the program was found that fails alone (a longer --budget gives it more); its script, alone"
            )
        elif seen.same:
            said = f"{seen.same} of {seen.runs} fresh processes failed in the same way, but the compiler is not shown to be the cause"
        elif self.lets_nothing_through:
            caught = self.reproduction is not None and self.reproduction.capture.ended is not None
            why = (
                "it catches the exception, or loses only a thread or a process to it" if caught else "a compiled graph's numbers are wrong"
            )
            said = f"the program does not end with its failure ({why}), and no form of it that does was found; its script, alone"
        elif by_command and (self.search is None or self.search.reference is None):
            said = "the command fails here, but not the script that calls its test alone"
        elif instead is not None:
            said = f"{seen.runs} of {seen.runs} fresh processes failed, but each in one other way ({instead.line()})"
        else:
            said = "fresh processes did not show the same failure"
        return f"{said}: {self.proof.differences[-1] if self.proof and self.proof.differences else ''}"

    def reason_if_unverified(self, reason: str, runs: int) -> str | None:
        """`reason`, unless at least `runs` fresh runs failed alike and the eager control passed."""
        return None if self.verification.same >= runs and self.verification.eager == "passes" else reason

    def ended_by(self, clock: EndedBy, *, proven: bool = True) -> EndedBy:
        """What ended the search, or kept its result from being `proven`; the `clock` says "fixed_point", or what cut it off."""
        if self.search is not None and self.search.fault:
            return "interrupted"
        return "fixed_point" if self.search is not None and self.search.fixed_point and proven else clock

    def timing(self) -> Timing:
        """Seconds spent in each part."""
        return Timing(
            capture=round(max(self.capture_seconds, self.reproduction.seconds if self.reproduction else 0.0), 3),
            search=round(self.search_seconds, 3),
            verification=round(self.proof.seconds, 3) if self.proof else 0.0,
            evidence=round(self.explanation.seconds, 3),
        )


@dataclass(frozen=True)
class Ending:
    """How a job ended: `reason` is for people, `code` is the sort of reason."""

    status: Status
    ended_by: EndedBy = "fixed_point"
    reason: str | None = None
    machine_fault: str | None = None
    code: ReasonCode | None = None


def result_of(
    found: Findings,
    ending: Ending,
    reduction: Reduction,
    files: Files,
    versions: Mapping[str, str],
    sandbox: tuple[str, ...],
    *,
    pytorch_dump: bool = False,
    taken: InputTaken | None = None,
) -> Result:
    """The content of `result.json`.

    Args:
        found: What the job knows.
        ending: How it ended.
        reduction: How much smaller the program became.
        files: Which files are in the result directory.
        versions: Of the user's interpreter and its packages.
        sandbox: The layers around every process that ran the program.
        pytorch_dump: Whether PyTorch's own minifier dumped anything.
        taken: What the input was taken for.
    """
    explanation = found.explanation
    return Result(
        status=ending.status,
        ended_by=ending.ended_by,
        stage=found.search.stage if found.search else None,
        machine_fault=ending.machine_fault,
        reason=ending.reason,
        signature=found.reproduction.failure if found.reproduction else None,
        reduction=reduction,
        timing=found.timing(),
        verification=found.verification,
        culprit=explanation.culprit,
        sandbox=sandbox,
        versions=dict(versions),
        evidence=Evidence(
            passes_if=explanation.passes_if,
            nearness=(found.reproduction.nearness or None) if found.reproduction else None,
            other_failures=explanation.other_failures,
            elsewhere=explanation.elsewhere,
            pytorch_dump=pytorch_dump,
        ),
        exported_program=explanation.exported,
        files=files,
        input=taken,
        reason_code=None if ending.status == "minimized" else ending.code,
    )


def resumed(earlier: Result | None, result: Result) -> Result:
    """The result of a resumed run: `earlier`'s if this run's `result` verified nothing, since the earlier repro is still on disk."""
    if earlier is None or earlier.signature is None or result.status != "error" or result.verification.runs:
        return result
    if result.signature is not None and not earlier.signature.same_across_forms(result.signature):
        return result
    if earlier.verification.runs and earlier.status != "error":
        return earlier  # that one was complete
    changed = {name: getattr(result, name) for name in ("status", "ended_by", "reason", "machine_fault", "reason_code")}
    return earlier.model_copy(update=changed)
