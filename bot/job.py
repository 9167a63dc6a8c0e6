"""The main job on one machine: a failing program in, a verified minimal repro out."""

from __future__ import annotations

import contextlib
import errno
import signal
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import FrameType

from bot.capture.forms import Start, starts
from bot.capture.modules import local_modules, module_lines
from bot.capture.named import failing_line, named_nodes, script_lines
from bot.capture.source import source_of
from bot.evidence import exported
from bot.evidence.ablation import Suspect, culprit
from bot.evidence.confirming import Confirmed, Confirmer
from bot.evidence.nearest import edit_between
from bot.findings import Findings
from bot.intake import Intake
from bot.models import (
    EndedBy,
    Kind,
    Phase,
    Result,
    Stage,
    Status,
    Verdict,
    VerificationFacts,
)
from bot.options import Ended, Options
from bot.oracle.deadline import Deadline
from bot.oracle.ledger import Ledger
from bot.oracle.localised import blamed, localise
from bot.oracle.pool import Pool, PoolError
from bot.oracle.process import Interrupted
from bot.oracle.script_oracle import ScriptOracle
from bot.progress import Progress
from bot.proof import Prover
from bot.reduce.candidate import BudgetSpent, Candidate
from bot.reduce.graph import Program
from bot.reduce.passes.size import size_key
from bot.reduce.script import embed_blobs, lines, render
from bot.reduce.search import reduce_program
from bot.reduce.source.modules import joined
from bot.reduce.source.reduce import reduce_source
from bot.reduce.source.slice import drop_statements
from bot.workspace import NotOurs, Workspace

# Of the budget, the share that is kept for verification and writing, and its bounds in seconds.
RESERVE_SHARE, RESERVE_LEAST, RESERVE_MOST = 0.15, 10.0, 120.0

# A hang costs its time in every accepted step: the search waits for this share of --hang-after, the proof for all of it.
PATIENCE = 1 / 3
# A graph of so few operations is the form that a maintainer wants, however short the script was.
FEW_OPS = 3
# Candidates for leaving out statements of the user's own definitions: most of them were sliced away before.
MOST_LEFTOVERS = 40


class Job:
    """One request, from the script to `result.json`."""

    def __init__(self, options: Options) -> None:
        self.options = options
        self.space = Workspace(options.out)
        reserve = min(RESERVE_MOST, max(RESERVE_LEAST, options.budget * RESERVE_SHARE))
        self.deadline = Deadline(options.budget, min(reserve, options.budget / 2))
        self.progress = Progress()
        self.source = source_of(options.target, Path.cwd())
        self.found = Findings(self.source.text if self.source else None, options.verify_runs)
        self._scratch = tempfile.TemporaryDirectory(prefix="torch-minify-job-", ignore_cleanup_errors=True)
        self._saving = threading.Lock()
        self._last_difference = ""

    def run(self) -> Result | None:
        """Do the job and write the result directory; None where the directory cannot be used (said on standard error)."""
        try:
            self.space.prepare(resume=self.options.resume)
            self.space.save(self.found.result(self.space, "error", "interrupted", "the job was ended before it found anything"))
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
            with Pool(self.options.python, self._cache(), self.space.original / "workers.log", versions=self.found.versions) as pool:
                self._work(pool)
            status, fault = self.found.status(), None
            reason = (
                self.found.unproven("fresh processes did not show the same failure: " + self._last_difference)
                if status == "error"
                else None
            )
        except Ended as end:
            status, reason, fault = end.status, end.reason, end.machine_fault
        except (BudgetSpent, Interrupted):
            self.found.back_to_confirmed()
            status, reason, fault = (
                self.found.status(),
                self._cut_short(),
                None,
            )
        except PoolError as error:
            status, reason, fault = "error", str(error), str(error)
        except OSError as error:
            full = error.errno == errno.ENOSPC
            status, reason, fault = "error", str(error), "the disk is full" if full else None
        except Exception as error:  # noqa: BLE001 - our own fault: the traceback belongs into the log, one sentence to the user
            status, reason, fault = "error", f"torch-minify itself failed: {type(error).__name__}: {error}", None
            self._log(traceback.format_exc())
        with contextlib.suppress(OSError):
            self.space.keep_dump()
        ended: EndedBy = self.deadline.ended_by if self._stopped() and not self.found.fixed_point else "fixed_point"
        result = self.found.result(self.space, status, ended, reason, fault)
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
        started = time.monotonic()
        self.found.capture, failure = Intake(self.options, self.space, self.progress, self._cache(), self._wanted).run()
        self.found.timing["capture"] = time.monotonic() - started
        self.found.failure = failure
        self.progress.say(failure.line())
        ledger = self.found.ledger = Ledger(self.space.ledger, resume=self.options.resume)
        oracle = self._oracle(pool, ledger)
        start = self._started(oracle)
        started = time.monotonic()
        try:
            with self._confirming() as confirmer:
                if start is None:
                    self._reduce_source(oracle, confirmer)
                else:
                    self._reduce_graph(oracle, start, confirmer)
                    if self._wordy():
                        oracle = self._reduce_source_instead(oracle, confirmer)
        except BudgetSpent:
            if self.deadline.interrupted.is_set():
                raise
        finally:
            self.found.timing["search"] = time.monotonic() - started
        self._prove(oracle.precise)
        self._explain(oracle, pool, start if self.found.stage is not Stage.SOURCE else None)

    def _oracle(self, pool: Pool, ledger: Ledger) -> ScriptOracle:
        """One that compares with the original program's failure, whatever the form of a script."""
        assert self.found.failure is not None
        return ScriptOracle(
            pool,
            ledger,
            self.deadline,
            self.found.failure,
            limit=self._limit(),
            hang_after=self.options.hang_after,
            patience=PATIENCE,
            form="start",
            across_forms=True,
            whole_way=True,
            error=self._eager_error(),
        )

    def _started(self, oracle: ScriptOracle) -> Start | None:
        """The first form of the program, smallest first, that fails as the original did."""
        found = self.found.capture
        failure = self.found.failure
        assert found is not None
        assert failure is not None
        self.progress.step("looking for the smallest form that fails in the same way")
        started = time.monotonic()
        line = failing_line(found.outcome.text, self.source.name) if self.source else None
        for start in starts(found.regions, failure, self.source.text if self.source else None, line, seed=self.options.seed):
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
        self._accepted(start.program, render(start.program), confirmer)
        self._narrow(oracle, f"graph:{start.stage.value}", render(start.program))
        self.progress.step(f"reducing the {start.stage.value} graph: {start.program.graph.ops} ops")
        accuracy = self.found.reference.kind is Kind.ACCURACY
        guesses, exposable = named_nodes(self.found.capture.outcome.text, start), None
        if not guesses and self.found.reference.phase in (Phase.CPP_COMPILE, Phase.TRITON_COMPILE, Phase.LOAD):
            guesses = blamed(oracle.pool, render(start.program), start.program, self._limit())
        if accuracy:
            found = localise(oracle.pool, render(start.program), start.program, self._limit())
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
        self.found.fixed_point = reduced.fixed_point
        program = self._without_leftovers(reduced.program, oracle, confirmer)
        self.found.program, self.found.text = program, render(program)
        nearest = reduced.nearest_passing
        if nearest is not None and oracle.passes(nearest.text):
            self.found.passes_if = edit_between(reduced.candidate.text, nearest.text)

    def _without_leftovers(self, program: Program, oracle: ScriptOracle, confirmer: Confirmer) -> Program:
        """The program with only those of the user's own statements that the failure needs."""
        if not program.preamble:
            return program

        asked = 0

        def ask(preambles: Sequence[str]) -> int | None:
            nonlocal asked
            asked += len(preambles)
            if asked > MOST_LEFTOVERS:
                return None
            programs = [replace(program, preamble=preamble) for preamble in preambles]
            texts = [render(smaller) for smaller in programs]
            sizes = [size_key(smaller, text)[0] for smaller, text in zip(programs, texts, strict=True)]
            index = oracle.first([Candidate(text, "preamble", size) for text, size in zip(texts, sizes, strict=True)])
            if index is not None:
                self._accepted(programs[index], texts[index], confirmer)
            return index

        try:
            return replace(program, preamble=drop_statements(program.preamble, ask))
        except BudgetSpent:
            self.found.fixed_point = False
            return self.found.program or program

    def _reduce_source(self, oracle: ScriptOracle, confirmer: Confirmer) -> None:
        if self.source is None:
            raise Ended(
                "error", "no graph of this command fails alone, and only a script, or a test without fixtures, can be reduced as source"
            )
        if self.options.stage not in (None, Stage.SOURCE):
            raise Ended("error", f"no program of the stage {self.options.stage.value} fails in the same way here")
        self.found.stage = Stage.SOURCE
        assert self.found.capture is not None
        said = self.found.capture.outcome.text
        modules = local_modules(self.source.file)
        text, failing = joined(self.source.text, script_lines(said, self.source.name), modules, module_lines(said, modules))
        if oracle.ask(Candidate(text, "start:source", (lines(text), len(text)))) is not Verdict.SAME:
            if modules and text == self.source.text:
                names = ", ".join(sorted(modules))
                raise Ended("error", f"a repro stands alone, but these modules beside the script cannot be written into it: {names}")
            # it may fail only now and then, or need what a worker does not have: fresh runs of the script itself say
            self.found.text, self.found.fixed_point = text, True
            return
        self.found.reference = oracle.shown(text)
        self._accepted(None, text, confirmer)
        self._narrow(oracle, "source", text)
        self.progress.step(f"reducing the script: {lines(text)} lines")
        reduced = reduce_source(
            text,
            oracle,
            failing_lines=failing,
            on_accept=lambda smaller: self._accepted(None, smaller, confirmer),
        )
        self.found.text, self.found.fixed_point = reduced.text, reduced.fixed_point

    def _wordy(self) -> bool:
        """Whether the graph did not become small, and the user's script is shorter than the repro that came of it."""
        program = self.found.program
        if self.options.stage is not None or self.source is None or program is None or not self.found.fixed_point:
            return False
        large = program.graph.ops > FEW_OPS or bool(program.graph.bodies) or not self.found.smaller()
        return large and lines(self.found.text or "") > lines(self.source.text)

    def _reduce_source_instead(self, oracle: ScriptOracle, confirmer: Confirmer) -> ScriptOracle:
        """Reduce the script as well and keep the shorter of both; the oracle that knows the one that is kept."""
        self.progress.step("the script is shorter than what came of its graph: reducing it as well")
        of_graph, asked = replace(self.found), oracle.ledger.queries
        other = self._oracle(oracle.pool, oracle.ledger)
        self.found.start = self.found.program = None
        try:
            self._reduce_source(other, confirmer)
        finally:
            oracle.ledger.queries += asked
            shorter = self.found.reference is not of_graph.reference and lines(self.found.text or "") < lines(of_graph.text or "")
            if not shorter:
                for name in ("start", "program", "text", "stage", "reference", "fixed_point", "passes_if"):
                    setattr(self.found, name, getattr(of_graph, name))
                self._accepted(of_graph.program, of_graph.text or "", confirmer)
        return other if shorter else oracle

    def _narrow(self, oracle: ScriptOracle, form: str, text: str) -> None:
        """From here on scripts of one form are compared, that of `text`, and phases that the signature does not need are skipped."""
        assert self.found.reference is not None
        assert self.found.failure is not None
        if self.found.failure.kind is Kind.NO_RAISE:
            self.found.reference = self.found.failure  # what is shown is an assertion; that eager raises is not in its text
        oracle.reference, oracle.form, oracle.across_forms = self.found.reference, form, False
        oracle.settle(text)
        oracle.leave_early(text)
        oracle.jobs = self.options.jobs
        ledger = oracle.ledger
        ledger.queries = ledger.memo_hits = 0
        oracle.on_answer = lambda candidate, verdict: self.progress.update(
            f"{candidate.origin}: {verdict.value}; {ledger.queries} queries, {lines(self.found.text or '')} lines"
        )

    def _accepted(self, program: Program | None, text: str, confirmer: Confirmer) -> None:
        self.found.program, self.found.text = program or self.found.program, text
        self.found.history.append((program, text))
        confirmer.offer(self._final(program, text), len(self.found.history) - 1)

    @contextmanager
    def _confirming(self) -> Iterator[Confirmer]:
        prover = self._prover()
        confirmer = Confirmer(lambda text: prover.confirms(text, self._cache()), self._on_confirmed)
        try:
            yield confirmer
        finally:
            confirmer.stop()

    def _on_confirmed(self, confirmed: Confirmed) -> None:
        with self._saving:
            program = self.found.history[confirmed.position][0]
            self.found.confirmed = (program, confirmed.text)
            self.found.verification = VerificationFacts(runs=1, same=1, eager="passes")
            self.space.write(self.space.repro, self.found.headed(confirmed.text, self.found.verification))
            so_far = replace(self.found)
            so_far.back_to_confirmed()
            self.space.save(so_far.result(self.space, "error", "interrupted", self._cut_short()))

    def _prove(self, precise: bool) -> None:
        """Fresh processes, without anything of ours, decide."""
        assert self.found.text is not None
        self.progress.step(f"verifying in {self.options.verify_runs} fresh processes")
        started = time.monotonic()
        text, prover = self._final(self.found.program, self.found.text), self._prover(precise)
        proof = prover.proof(text, self.options.verify_runs)
        if not proof.same and len(self.found.history) > 1:
            self.progress.say("the warm workers slipped: going back to the last program that fails alone")
            finals = [self._final(program, accepted) for program, accepted in self.found.history]
            index = prover.latest(finals, self._cache())
            if index is not None:
                self.found.program, self.found.fixed_point, text = self.found.history[index][0], False, finals[index]
                proof = prover.proof(text, self.options.verify_runs)
        self.found.verification, self.found.text = proof, text
        if proof.same:
            self.space.write(self.space.repro, self.found.headed(text, proof))
        self.found.timing["verification"] = time.monotonic() - started

    def _prover(self, precise: bool = True) -> Prover:
        assert self.found.failure is not None
        return Prover(
            self.options.python,
            self.found.failure,
            max(60.0, self._limit() * 2),
            self.options.hang_after,
            Path(self._scratch.name),
            self._wanted,
            self._differs,
            self._eager_error(),
            precise,
        )

    def _eager_error(self) -> str:
        """What eager raises, where the failure is that compiled code does not."""
        missing = self.found.failure is not None and self.found.failure.kind is Kind.NO_RAISE
        return self.found.capture.eager_error if missing and self.found.capture is not None else ""

    def _differs(self, line: str) -> None:
        self._last_difference = line
        self.progress.say(line)

    def _explain(self, oracle: ScriptOracle, pool: Pool, start: Start | None) -> None:
        """What is said beside the repro; nothing here can change the status."""
        if self.found.text is None or not self.found.verification.same:
            return
        self.progress.step("the exported program, and what is to blame")
        started = time.monotonic()
        oracle.deadline = Deadline(self.options.budget - (time.monotonic() - self.deadline.started))
        oracle.deadline.interrupted = self.deadline.interrupted
        try:
            prover, text = self._prover(oracle.precise), self.found.text
            self.found.elsewhere = tuple(prover.elsewhere(text, python) for python in self.options.also_python if self._wanted())
            self.found.other = tuple(signature.line() for signature in oracle.other_failures())
            if start is None or self.found.program is None:
                return
            self.found.culprit = culprit(self.found.program, self._suspects(), oracle.ask, render)
            reference = oracle.reference
            self.found.exported = exported.write(
                self.found.text, self.space.exported, pool, self._limit(), lambda shown: shown.same_across_forms(reference), oracle.observe
            )
        except BudgetSpent:
            return
        finally:
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

    def _show(self, result: Result) -> None:
        say = sys.stdout.write
        if result.files.repro and self.space.repro.exists():
            say(self.space.repro.read_text(encoding="utf-8") + "\n")
        say(f"{result.status} (ended by: {result.ended_by})" + (f": {result.reason}" if result.reason else "") + "\n")
        for other in result.evidence.elsewhere:
            version = other.versions.get("torch", "no torch")
            say(f"with {other.python} (torch {version}): {'the same failure' if other.same else other.said}\n")
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

    def _cut_short(self) -> str | None:
        why = "interrupted" if self.deadline.interrupted.is_set() else "out of time"
        done = f"{self.found.verification.same} of {self.options.verify_runs}"
        return self.found.unproven(f"{why} after {done} fresh runs; --resume goes on from here")

    def _stopped(self) -> bool:
        return self.deadline.interrupted.is_set() or self.deadline.left() <= 0

    def _cache(self) -> Path:
        """The one compile directory of this job: a cold one costs twelve seconds."""
        path = Path(self._scratch.name) / "compile"
        path.mkdir(parents=True, exist_ok=True)
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
