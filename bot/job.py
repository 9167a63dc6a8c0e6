"""The main job on one machine: a failing program in, a verified minimal repro out."""

from __future__ import annotations

import errno
import os
import shutil
import signal
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType

from bot.capture.forms import Start, starts
from bot.capture.named import failing_line, named_nodes, script_lines
from bot.capture.region import Capture
from bot.capture.run import Target, capture
from bot.evidence import exported, fresh
from bot.evidence.ablation import Suspect, culprit
from bot.evidence.confirming import Confirmed, Confirmer
from bot.evidence.nearest import edit_between
from bot.models import (
    EndedBy,
    Evidence,
    ExportedProgram,
    Files,
    Kind,
    Phase,
    Reduction,
    Result,
    Signature,
    Stage,
    Status,
    Timing,
    Verdict,
    VerificationFacts,
)
from bot.oracle.deadline import Deadline
from bot.oracle.faults import fault_of
from bot.oracle.ledger import Ledger
from bot.oracle.localised import localise
from bot.oracle.pool import Pool, PoolError
from bot.oracle.process import Interrupted
from bot.oracle.script_oracle import ScriptOracle
from bot.oracle.signature import signature_of
from bot.progress import Progress
from bot.reduce.candidate import BudgetSpent, Candidate
from bot.reduce.graph import Program
from bot.reduce.passes.size import size_key
from bot.reduce.script import embed_blobs, lines, render
from bot.reduce.search import reduce_program
from bot.reduce.source.reduce import reduce_source
from bot.workspace import NotOurs, Workspace

# Of the budget, the share that is kept for verification and writing, and its bounds in seconds.
RESERVE_SHARE, RESERVE_LEAST, RESERVE_MOST = 0.15, 10.0, 120.0
# A run that did not fail alike every time is repeated this often before its rate is said.
FLAKY_RUNS = 10


@dataclass(frozen=True)
class Options:
    """The command line, read. Times in seconds."""

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


class Ended(Exception):
    """The job ends here, with this result."""

    def __init__(self, status: Status, reason: str, *, machine_fault: str | None = None) -> None:
        super().__init__(reason)
        self.status, self.reason, self.machine_fault = status, reason, machine_fault


@dataclass
class Found:
    """What the job knows so far; whatever ends it, this is what is written."""

    capture: Capture | None = None
    failure: Signature | None = None  # of the original program
    stage: Stage | None = None
    program: Program | None = None
    start: Program | None = None
    text: str | None = None  # the best script that the warm workers accepted
    reference: Signature | None = None  # its signature, in its own form
    verification: VerificationFacts = field(default_factory=VerificationFacts)
    fixed_point: bool = False
    passes_if: str | None = None
    culprit: str | None = None
    exported: ExportedProgram | None = None
    other: tuple[str, ...] = ()
    timing: dict[str, float] = field(default_factory=dict)
    history: list[tuple[Program | None, str]] = field(default_factory=list)


class Job:
    """One request, from the script to `result.json`."""

    def __init__(self, options: Options) -> None:
        self.options = options
        self.space = Workspace(options.out)
        reserve = min(RESERVE_MOST, max(RESERVE_LEAST, options.budget * RESERVE_SHARE))
        self.deadline = Deadline(options.budget, min(reserve, options.budget / 2))
        self.progress = Progress()
        self.found = Found()
        self.original_text = options.target.script.read_text(encoding="utf-8", errors="replace") if options.target.script else None
        self._scratch = tempfile.TemporaryDirectory(prefix="torch-minify-job-", ignore_cleanup_errors=True)
        self._saving = threading.Lock()

    def run(self) -> Result | None:
        """Do the job and write the result directory; None where the directory cannot be used (said on standard error)."""
        try:
            self.space.prepare(resume=self.options.resume)
            self.space.save(self._result("error", "interrupted", "the job was ended before it found anything"))
        except (NotOurs, OSError) as error:
            sys.stderr.write(f"torch-minify: {error}\n")
            return None
        with self._signals():
            result = self._guarded()
        self.progress.close()
        self._show(result)
        return result

    def _guarded(self) -> Result:
        status: Status
        try:
            with Pool(self.options.python, self._cache("search"), self.space.original / "workers.log", versions={}) as pool:
                self._work(pool)
            status, reason, fault = self._status(), None, None
        except Ended as end:
            status, reason, fault = end.status, end.reason, end.machine_fault
        except (BudgetSpent, Interrupted):
            status, reason, fault = self._status(), self._why_not(), None
        except PoolError as error:
            status, reason, fault = "error", str(error), str(error)
        except OSError as error:
            full = error.errno == errno.ENOSPC
            status, reason, fault = "error", str(error), "the disk is full" if full else None
        except Exception as error:  # noqa: BLE001 - our own fault: the traceback belongs into the log, one sentence to the user
            status, reason, fault = "error", f"torch-minify itself failed: {type(error).__name__}: {error}", None
            self._log(traceback.format_exc())
        ended: EndedBy = self.deadline.ended_by if self._stopped() and not self.found.fixed_point else "fixed_point"
        result = self._result(status, ended, reason, fault)
        try:
            self.space.save(result)
            if status in ("minimized", "reproduced", "not_reproduced"):
                self.space.clean()
        except OSError as error:
            sys.stderr.write(f"torch-minify: cannot write {self.space.result}: {error}\n")
        self._scratch.cleanup()
        return result

    # --- the parts of the job, in order

    def _work(self, pool: Pool) -> None:
        pool.start()
        failure = self._captured()
        self.found.failure = failure
        self.progress.say(failure.line())
        self._original_control(failure)
        ledger = Ledger(self.space.ledger, resume=self.options.resume)
        self.ledger = ledger
        oracle = ScriptOracle(
            pool,
            ledger,
            self.deadline,
            failure,
            limit=self._limit(),
            hang_after=self.options.hang_after,
            form="start",
            across_forms=True,
            whole_way=True,
        )
        start = self._started(oracle)
        started = time.monotonic()
        try:
            with self._confirming(pool) as confirmer:
                if start is not None:
                    self._reduce_graph(oracle, start, confirmer)
                else:
                    self._reduce_source(oracle, confirmer)
        except BudgetSpent:
            if self.deadline.interrupted.is_set():
                raise
        finally:
            self.found.timing["search"] = time.monotonic() - started
            self.found.other = tuple(s.line() for s, _ in oracle.by_products.values())
        self._prove(oracle)
        self._explain(oracle, pool, start)

    def _captured(self) -> Signature:
        """Run the program; its failure."""
        self.progress.step(f"running {self.options.target.name} with the capture in place")
        started = time.monotonic()
        found = self._capture("capture", check=self.options.accuracy in ("on", "strict"))
        outcome = found.outcome
        fault = fault_of(outcome) if outcome.status != "ok" else None
        if fault:
            raise Ended("error", f"the machine is at fault: {fault}", machine_fault=fault)
        flagged = [r for r in found.regions if r.failed == "accuracy"]
        if found.signature is None and outcome.status == "ok" and not flagged and self.options.accuracy == "auto":
            self.progress.step("the program ends well: comparing every compiled region with eager and float64")
            found = self._capture("accuracy", check=True)
            flagged = [r for r in found.regions if r.failed == "accuracy"]
        elif found.signature is not None and found.signature.kind is Kind.ACCURACY and not flagged and self.options.accuracy != "off":
            self.progress.step("the program's own comparison fails: looking for the compiled region that is wrong")
            checked = self._capture("accuracy", check=True)
            flagged = [r for r in checked.regions if r.failed == "accuracy"]
            found = found.model_copy(update={"regions": tuple(flagged)})
        if found.signature is not None and found.signature.kind in (Kind.CRASH, Kind.HANG) and not found.regions:
            self.progress.step("the program dies in the compiler: once more, writing each graph beforehand")
            again = self._capture("beforehand", beforehand=True)
            found = found.model_copy(update={"regions": again.regions})
        self.found.capture = found
        self.found.timing["capture"] = time.monotonic() - started
        self._keep_original(found)
        if found.signature is not None:
            return found.signature
        if flagged:
            return Signature(kind=Kind.ACCURACY, phase=Phase.RUN, message="compiled results differ from eager")
        if outcome.status == "ok":
            raise Ended("not_reproduced", "the program passes here")
        words = f"the program ended with exit status {outcome.exit} and no Python error, so there is no failure to compare"
        raise Ended("not_reproduced", words + (f": {outcome.text.strip()[:200]}" if outcome.text.strip() else ""))

    def _capture(self, name: str, *, check: bool = False, beforehand: bool = False) -> Capture:
        return capture(
            self.options.target,
            python=self.options.python,
            cwd=Path.cwd(),
            out=self._emptied(self.space.work / name),
            cache=self._cache("capture"),
            timeout=min(self.options.hang_after + 15, max(self.deadline.left(), 1)),
            check=check,
            strict=self.options.accuracy == "strict",
            beforehand=beforehand,
            wanted=self._wanted,
        )

    def _keep_original(self, found: Capture) -> None:
        if self.options.target.script:
            shutil.copyfile(self.options.target.script, self.space.original / self.options.target.script.name)
        text = found.outcome.text if found.outcome.status == "raised" else ""
        self.space.write(self.space.original / "log.txt", found.log.read_text(encoding="utf-8") + "\n" + text)
        dumped = self.space.work / "capture" / "pytorch"
        if dumped.is_dir():
            shutil.copytree(dumped, self.space.original / "pytorch", dirs_exist_ok=True)

    def _original_control(self, failure: Signature) -> None:
        """The program must pass with the compiler taken out."""
        script = self.options.target.script
        if script is None:
            return
        self.progress.step("the same with the compiler taken out")
        control = fresh.run_control_fresh(
            self.options.python,
            script,
            argv=self.options.target.argv,
            cwd=Path.cwd(),
            env=os.environ,
            timeout=self._limit(),
            wanted=self._wanted,
        )
        if control.status == "ok":
            if not control.calls:
                raise Ended("not_reproduced", "the program never reaches torch.compile, torch.export or AOTInductor")
            return
        last = control.text.strip().splitlines()[-1:] or [control.status]
        raise Ended("not_reproduced", f"the program fails in eager as well: {last[0]}")

    def _started(self, oracle: ScriptOracle) -> Start | None:
        """The first form of the program, smallest first, that fails as the original did."""
        found = self.found.capture
        failure = self.found.failure
        assert found is not None
        assert failure is not None
        self.progress.step("looking for the smallest form that fails in the same way")
        started = time.monotonic()
        name = self.options.target.name
        line = failing_line(found.outcome.text, name)
        for start in starts(found.regions, failure, self.original_text, line, seed=self.options.seed):
            if self.options.stage not in (None, start.stage):
                continue
            text = render(start.program)
            if oracle.ask(Candidate(text, f"start:{start.stage.value}", size_key(start.program, text)[0])) is Verdict.SAME:
                self.found.stage, self.found.program, self.found.start, self.found.text = start.stage, start.program, start.program, text
                self.found.reference = oracle.shown(text)
                self.found.timing["start"] = time.monotonic() - started
                return start
        return None

    def _reduce_graph(self, oracle: ScriptOracle, start: Start, confirmer: Confirmer) -> None:
        assert self.found.reference is not None
        assert self.found.capture is not None
        self._narrow(oracle, f"graph:{start.stage.value}")
        self._accepted(start.program, render(start.program), confirmer)
        self.progress.step(f"reducing the {start.stage.value} graph: {start.program.graph.ops} ops")
        accuracy = self.found.reference.kind is Kind.ACCURACY
        guesses, exposable = named_nodes(self.found.capture.outcome.text, start), None
        if accuracy:
            found = localise(oracle.pool, render(start.program), start.program.graph, self._limit())
            strict = self.options.accuracy == "strict"
            guesses, exposable = found.guesses(strict), None if strict else found.exposable
        reduced = reduce_program(
            start.program,
            oracle,
            render,
            guesses=guesses,
            exposable=exposable,
            keep_seed=accuracy,
            on_accept=lambda program, candidate: self._accepted(program, candidate.text, confirmer),
        )
        self.found.program, self.found.text = reduced.program, reduced.candidate.text
        self.found.fixed_point = reduced.fixed_point
        self.found.passes_if = edit_between(reduced.candidate.text, reduced.nearest_passing.text) if reduced.nearest_passing else None

    def _reduce_source(self, oracle: ScriptOracle, confirmer: Confirmer) -> None:
        if self.original_text is None:
            raise Ended("error", "no graph of this command fails alone, and only a script can be reduced as source")
        if self.options.stage not in (None, Stage.SOURCE):
            raise Ended("error", f"no program of the stage {self.options.stage.value} fails in the same way here")
        self.found.stage = Stage.SOURCE
        text = self.original_text
        if oracle.ask(Candidate(text, "start:source", (lines(text), len(text)))) is not Verdict.SAME:
            raise Ended("error", "the script fails, but not when it is run again in a warm process")
        self.found.reference = oracle.shown(text)
        self._narrow(oracle, "source")
        self._accepted(None, text, confirmer)
        self.progress.step(f"reducing the script: {lines(text)} lines")
        assert self.found.capture is not None
        reduced = reduce_source(
            text,
            oracle,
            failing_lines=script_lines(self.found.capture.outcome.text, self.options.target.name),
            on_accept=lambda smaller: self._accepted(None, smaller, confirmer),
        )
        self.found.text, self.found.fixed_point = reduced.text, reduced.fixed_point

    def _narrow(self, oracle: ScriptOracle, form: str) -> None:
        """From here on scripts of one form are compared, and phases that the signature does not need are skipped."""
        assert self.found.reference is not None
        oracle.reference, oracle.form, oracle.across_forms, oracle.whole_way = self.found.reference, form, False, False
        oracle.jobs = self.options.jobs
        self.ledger.queries = self.ledger.memo_hits = 0
        oracle.on_answer = lambda candidate, verdict: self.progress.update(
            f"{candidate.origin}: {verdict.value}; {self.ledger.queries} queries, {lines(self.found.text or '')} lines"
        )

    def _accepted(self, program: Program | None, text: str, confirmer: Confirmer) -> None:
        self.found.program, self.found.text = program or self.found.program, text
        self.found.history.append((program, text))
        confirmer.offer(self._final(program, text), len(self.found.history) - 1)

    @contextmanager
    def _confirming(self, pool: Pool) -> Iterator[Confirmer]:
        confirmer = Confirmer(self._confirm, self._on_confirmed)
        try:
            yield confirmer
        finally:
            confirmer.stop()

    def _confirm(self, text: str) -> bool:
        assert self.found.failure is not None
        path = self._scratch_file(text)
        try:
            outcome = fresh.run_fresh(
                self.options.python,
                path,
                cwd=path.parent,
                env=os.environ,
                timeout=self._limit() * 2,
                cache_dir=self._cache("confirm"),
                wanted=self._wanted,
            )
        except Interrupted:
            return False
        return not fresh.difference(self.found.failure, signature_of(outcome, script=path.name))

    def _on_confirmed(self, confirmed: Confirmed) -> None:
        with self._saving:
            self.found.verification = VerificationFacts(runs=1, same=1, eager="passes")
            self.space.write(self.space.repro, self._headed(confirmed.text, self.found.verification))
            self.space.save(self._result("error", "interrupted", self._why_not()))

    def _prove(self, oracle: ScriptOracle) -> None:
        """Fresh processes, without anything of ours, decide."""
        assert self.found.failure is not None
        assert self.found.text is not None
        self.progress.step(f"verifying in {self.options.verify_runs} fresh processes")
        started = time.monotonic()
        text = self._final(self.found.program, self.found.text)
        proof = self._verified(text)
        if proof.same == 0 and len(self.found.history) > 1:
            self.progress.say("the warm workers slipped: going back to the last program that fails alone")
            self.found.fixed_point = False
            text, proof = self._backtracked()
        if 0 < proof.same < proof.runs:
            more = self._verified(text, FLAKY_RUNS - proof.runs) if proof.runs < FLAKY_RUNS else proof
            proof = VerificationFacts(runs=proof.runs + more.runs, same=proof.same + more.same, eager=proof.eager)
        self.found.verification, self.found.text = proof, text
        if proof.same:
            self.space.write(self.space.repro, self._headed(text, proof))
        self.found.timing["verification"] = time.monotonic() - started

    def _backtracked(self) -> tuple[str, VerificationFacts]:
        """The latest accepted program that a fresh process confirms: halving, since slips come late."""
        low, high = 0, len(self.found.history) - 1
        best: tuple[str, VerificationFacts] | None = None
        while low < high:
            middle = (low + high) // 2
            program, text = self.found.history[middle]
            final = self._final(program, text)
            if self._confirm(final):
                low, best = middle + 1, (final, self._verified(final))
                self.found.program = program or self.found.program
            else:
                high = middle
        if best is None:
            program, text = self.found.history[0]
            final = self._final(program, text)
            best = final, self._verified(final)
            self.found.program = program or self.found.program
        return best

    def _verified(self, text: str, runs: int | None = None) -> VerificationFacts:
        assert self.found.failure is not None
        path = self._scratch_file(text)
        proof = fresh.verify(
            self.options.python,
            path,
            self.found.failure,
            runs or self.options.verify_runs,
            timeout=max(60.0, self._limit() * 2),
            hang_after=self.options.hang_after,
            cwd=path.parent,
            env=os.environ,
            wanted=self._wanted,
        )
        for line in proof.differences:
            self.progress.say(line)
        return VerificationFacts(runs=proof.runs, same=proof.same, eager=proof.eager)

    def _explain(self, oracle: ScriptOracle, pool: Pool, start: Start | None) -> None:
        """What is said beside the repro; nothing here can change the status."""
        if start is None or self.found.program is None or self.found.text is None or not self.found.verification.same:
            return
        self.progress.step("the exported program, and what is to blame")
        started = time.monotonic()
        oracle.deadline = Deadline(self.options.budget - (time.monotonic() - self.deadline.started))
        oracle.deadline.interrupted = self.deadline.interrupted
        try:
            self.found.culprit = culprit(self.found.program, self._suspects(), oracle.ask, render)
            reference = oracle.reference
            self.found.exported = exported.write(
                self.found.text, self.space.exported, pool, self._limit(), lambda shown: shown.same_across_forms(reference), oracle.observe
            )
        except BudgetSpent:
            pass
        self.found.timing["evidence"] = time.monotonic() - started

    def _suspects(self) -> list[Suspect]:
        assert self.found.capture is not None
        found: dict[Suspect, None] = {}
        for region in self.found.capture.regions:
            for name, held in region.recipe.config.items():
                if held.text is None:
                    found[Suspect(name, held.name)] = None
            for name, held in region.recipe.options.items():
                if held.text is None:
                    found[Suspect(f"torch._inductor.config.{name}", held.name)] = None
            for device, held in region.recipe.custom_backend_passes.items():
                found[Suspect("", held.name, device)] = None
        return list(found)

    # --- what is written

    def _final(self, program: Program | None, text: str) -> str:
        """The script as it would be posted: with its recorded inputs inside."""
        return render(embed_blobs(program)) if program is not None else text

    def _headed(self, text: str, proof: VerificationFacts) -> str:
        assert self.found.capture is not None
        assert self.found.failure is not None
        versions = self.found.capture.versions
        head = [
            self.found.failure.line(),
            ", ".join(f"{name} {versions[name]}" for name in ("torch", "triton", "python") if versions.get(name)),
            f"failed in {proof.same} of {proof.runs} fresh processes",
        ]
        return "".join(f"# {line}\n" for line in head) + text

    def _status(self) -> Status:
        proof = self.found.verification
        if not proof.runs or proof.eager == "fails":
            return "error"
        if 0 < proof.same < proof.runs:
            return "flaky"
        if proof.same < self.options.verify_runs:
            return "error"
        return "minimized" if self._smaller() else "reproduced"

    def _smaller(self) -> bool:
        if self.found.text is None:
            return False
        if self.original_text is None:
            return True
        reduced = self._reduction()
        fewer = reduced.ops_before is not None and reduced.ops_after is not None and reduced.ops_after < reduced.ops_before
        return (
            fewer
            or reduced.lines_after < reduced.lines_before
            or (self.found.stage is Stage.SOURCE and len(self.found.text) < len(self.original_text))
        )

    def _why_not(self) -> str | None:
        proof = self.found.verification
        if proof.same >= self.options.verify_runs:
            return None
        ended = "interrupted" if self.deadline.interrupted.is_set() else "out of time"
        return f"{ended} after {proof.same} of {self.options.verify_runs} fresh runs; --resume goes on from here"

    def _reduction(self) -> Reduction:
        start, end = self.found.start, self.found.program
        ledger = getattr(self, "ledger", None)
        return Reduction(
            ops_before=start.graph.ops if start else None,
            ops_after=end.graph.ops if start and end else None,
            lines_before=lines(self.original_text or ""),
            lines_after=lines(self.found.text or ""),
            input_elements_before=start.graph.input_elements if start else None,
            input_elements_after=end.graph.input_elements if start and end else None,
            queries=ledger.queries if ledger else 0,
            memo_hits=ledger.memo_hits if ledger else 0,
            seconds=round(self.found.timing.get("search", 0.0), 3),
        )

    def _result(self, status: Status, ended_by: EndedBy, reason: str | None = None, fault: str | None = None) -> Result:
        found = self.found
        timing = {name: round(found.timing.get(name, 0.0), 3) for name in Timing.model_fields}
        return Result(
            status=status,
            ended_by=ended_by,
            stage=found.stage,
            machine_fault=fault,
            reason=reason,
            signature=found.failure,
            reduction=self._reduction(),
            timing=Timing(**timing),
            verification=found.verification,
            culprit=found.culprit,
            versions=found.capture.versions if found.capture else {},
            evidence=Evidence(
                passes_if=found.passes_if, other_failures=found.other, pytorch_dump=(self.space.original / "pytorch").is_dir()
            ),
            exported_program=found.exported,
            files=Files(
                repro="repro.py" if self.space.repro.exists() else None,
                exported_program="exported_program.pt2" if self.space.exported.exists() else None,
            ),
        )

    def _show(self, result: Result) -> None:
        say = sys.stdout.write
        if result.files.repro and self.space.repro.exists():
            say(self.space.repro.read_text(encoding="utf-8") + "\n")
        say(f"{result.status} (ended by: {result.ended_by})" + (f": {result.reason}" if result.reason else "") + "\n")
        if result.culprit:
            say(f"to blame: {result.culprit}\n")
        say(f"files: {self.space.root}\n")
        sys.stdout.flush()

    # --- small things

    def _limit(self) -> float:
        """Seconds for one query, from what the first failing run took."""
        found = self.found.capture
        return max(20.0, 3 * found.outcome.seconds) if found else 60.0

    def _wanted(self) -> bool:
        return not self.deadline.interrupted.is_set()

    def _stopped(self) -> bool:
        return self.deadline.interrupted.is_set() or self.deadline.left() <= 0

    def _cache(self, name: str) -> Path:
        path = Path(self._scratch.name) / f"cache-{'shared' if name in ('search', 'capture', 'confirm') else name}"
        path.mkdir(parents=True, exist_ok=True)
        return path

    def _scratch_file(self, text: str) -> Path:
        path = Path(tempfile.mkdtemp(dir=self._scratch.name)) / "repro.py"
        path.write_text(text, encoding="utf-8")
        return path

    def _emptied(self, path: Path) -> Path:
        shutil.rmtree(path, ignore_errors=True)
        return path

    def _log(self, text: str) -> None:
        with open(self.space.original / "torch-minify.log", "a", encoding="utf-8") as file:
            file.write(text)

    @contextmanager
    def _signals(self) -> Iterator[None]:
        """Ctrl-C and SIGTERM end the search; what was verified is on disk already."""

        def stop(_: int, __: FrameType | None) -> None:
            self.deadline.interrupted.set()

        saved = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM)}
        try:
            yield
        finally:
            for number, handler in saved.items():
                signal.signal(number, handler)
