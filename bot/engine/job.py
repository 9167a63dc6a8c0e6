"""The main job on one machine: a failing program in, a verified minimal repro out."""

from __future__ import annotations

import contextlib
import errno
import math
import resource
import signal
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import FrameType

from bot.engine.capture.source import source_of
from bot.engine.evidence import exported_program, verify
from bot.engine.evidence.ablation import Suspect, culprit
from bot.engine.evidence.confirmer import Confirmed, Confirmer
from bot.engine.evidence.passing_edit import edit_between
from bot.engine.options import Ended, Options
from bot.engine.progress import Progress
from bot.engine.proof import Prover
from bot.engine.reproduce import Intake
from bot.engine.search import Search, final
from bot.engine.state import Findings
from bot.engine.workspace import NotOurs, Workspace
from bot.models.failure import Kind, Signature
from bot.models.result import EndedBy, Result, Rule, Status, VerificationFacts
from bot.oracle.deadline import Deadline
from bot.oracle.memo import Ledger
from bot.oracle.oracle import ScriptOracle
from bot.reduce.candidate import BudgetSpent
from bot.reduce.graph.printer.script import render
from bot.workers.pool import Pool, PoolError, memory_for
from bot.workers.process import Interrupted

# What a system says of a disk, or of what an account may write on it.
FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
# Of the budget, the share that is kept for verification and writing, and its bounds in seconds.
RESERVE_SHARE, RESERVE_LEAST, RESERVE_MOST = 0.15, 10.0, 120.0


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
        self.earlier: Result | None = None  # of the run that is resumed
        self._last_difference = ""

    def run(self) -> Result | None:
        """Do the job and write the result directory; None where the directory cannot be used (said on standard error)."""
        try:
            self.space.prepare(Path(self.options.target.file) if self.options.target.file else None, resume=self.options.resume)
            self.earlier = self.space.earlier()
            if self.earlier is None:
                self.space.save(self.found.result(self.space, "error", "interrupted", "the job was ended before it found anything"))
        except (NotOurs, OSError) as error:
            sys.stderr.write(f"torch-minify: {error}\n")
            if isinstance(error, OSError) and error.errno in FULL:
                if self.earlier is None:
                    self.space.abandon()
                return self.found.result(self.space, "error", "interrupted", str(error), "the disk is full")
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
            reason = self.found.unproven(self._unlike() + self._last_difference) if status == "error" else None
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
            self.found.back_to_confirmed()
            status, reason, fault = "error", str(error), str(error)
        except OSError as error:
            self.found.back_to_confirmed()
            status, reason, fault = "error", str(error), "the disk is full" if error.errno in FULL else None
        except Exception as error:  # noqa: BLE001 - our own fault: the traceback belongs into the log, one sentence to the user
            status, reason, fault = "error", f"torch-minify itself failed: {type(error).__name__}: {error}", None
            self._log(traceback.format_exc())
        with contextlib.suppress(OSError):
            self.space.keep_dump()
        ended: EndedBy = self.deadline.ended_by if self._stopped() and not self.found.fixed_point else "fixed_point"
        result = self._kept(status, ended, reason, fault) or self.found.result(self.space, status, ended, reason, fault)
        try:
            self.space.save(result)
            if status in ("minimized", "reproduced", "not_reproduced"):
                self.space.clean()
        except OSError as error:
            sys.stderr.write(f"torch-minify: cannot write {self.space.result}: {error}\n")
        self._scratch.cleanup()
        return result

    def _kept(self, status: Status, ended: EndedBy, reason: str | None, fault: str | None) -> Result | None:
        """The result of the run that is resumed, where this one came to prove nothing: its repro is still the one on disk."""
        if self.earlier is None or self.earlier.signature is None or status != "error" or self.found.verification.runs:
            return None
        if self.found.failure is not None and not self.earlier.signature.same_across_forms(self.found.failure):
            return None
        if self.earlier.verification.runs and self.earlier.status != "error":
            return self.earlier  # that one was through
        return self.earlier.model_copy(update={"status": status, "ended_by": ended, "reason": reason, "machine_fault": fault})

    # --- the parts of the job, in order

    def _work(self, pool: Pool) -> None:
        pool.start()
        started = time.monotonic()
        intake = Intake(self.options, self.space, self.progress, self._cache(), self._wanted)
        self.found.capture, failure = intake.run()
        if failure.kind is Kind.HANG:
            self.options = replace(self.options, hang_after=intake.hang_after)
        self.found.timing["capture"] = time.monotonic() - started
        pool.memory = memory_for(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024)
        self.found.failure = failure
        self.progress.say(failure.line())
        self.source = source_of(self.options.target, Path.cwd(), self.found.capture.test)
        self.found.original = self.found.original or (self.source.text if self.source else None)
        ledger = self.found.ledger = Ledger(self.space.ledger, resume=self.options.resume)
        search = Search(self.options, self.source, self.found, self.deadline, self.progress, pool, ledger)
        started = time.monotonic()
        search.begin()
        self.deadline.reserve = self._reserve(failure)
        try:
            with self._confirming(search) as confirmer:
                search.offer = confirmer.offer
                search.latest = lambda texts: self._prover(search.oracle).latest(texts, self._cache())
                search.run()
        except BudgetSpent:
            if self.deadline.interrupted.is_set():
                raise
        finally:
            self.found.timing["search"] = time.monotonic() - started
        self._prove(search)
        self._explain(search)

    @contextmanager
    def _confirming(self, search: Search) -> Iterator[Confirmer]:
        def check(text: str, wanted: Callable[[], bool]) -> bool:
            prover = replace(self._prover(search.oracle), wanted=lambda: self._wanted() and wanted())
            return prover.confirms(text, self._cache())

        confirmer = Confirmer(check, lambda confirmed: self._on_confirmed(confirmed, self._prover(search.oracle).rule))
        try:
            yield confirmer
        finally:
            confirmer.stop()

    def _on_confirmed(self, confirmed: Confirmed, rule: Rule) -> None:
        with self._saving:
            program = self.found.history[confirmed.position][0]
            self.found.confirmed = (program, confirmed.text)
            self.found.confirmed_at = max(self.found.confirmed_at, confirmed.position)
            self.found.verification = VerificationFacts(runs=1, same=1, eager="passes", rule=rule)
            self.space.write(self.space.repro, self.found.headed(confirmed.text, self.found.verification))
            so_far = replace(self.found)
            so_far.back_to_confirmed()
            self.space.save(so_far.result(self.space, "error", "interrupted", self._cut_short()))

    def _prove(self, search: Search) -> None:
        """Fresh processes, without anything of ours, decide."""
        assert self.found.text is not None
        self.progress.step(f"verifying in {self.options.verify_runs} fresh processes")
        started = time.monotonic()
        text, prover = final(self.found.program, self.found.text), self._prover(search.oracle)
        proof = prover.proof(text, self.options.verify_runs)
        if (not proof.same or proof.eager == "fails") and len(self.found.history) > 1:
            self.progress.say("the warm workers slipped: going back to the last program that fails alone")
            steps = self.found.history[self.found.confirmed_at :]
            finals = [final(program, accepted) for program, accepted in steps]
            index = prover.latest(finals, self._cache())
            if index is not None:
                self.found.program, self.found.fixed_point, text = steps[index][0], False, finals[index]
                self.found.neighbours = None
                proof = prover.proof(text, self.options.verify_runs)
        self.found.verification, self.found.text = proof, text
        if proof.same and proof.eager != "fails":
            self.space.write(self.space.repro, self.found.headed(text, proof))
            self.found.confirmed = (self.found.program, text)
        self.found.timing["verification"] = time.monotonic() - started

    def _prover(self, oracle: ScriptOracle) -> Prover:
        assert self.found.failure is not None
        rule = Rule(hang_after=self.options.hang_after, precise=oracle.precise, partial=oracle.partial, error=self.found.eager_error())
        limit = max(60.0, self.found.limit() * 2)
        return Prover(self.options.python, self.found.failure, limit, rule, Path(self._scratch.name), self._wanted, self._differs)

    def _differs(self, line: str) -> None:
        self._last_difference = line
        self.progress.say(line)

    def _explain(self, search: Search) -> None:
        """What is said beside the repro; nothing here can change the status."""
        if self.found.text is None or not self.found.verification.same:
            return
        oracle = search.oracle
        self.progress.step("the exported program, and what is to blame")
        started = time.monotonic()
        oracle.deadline = Deadline(self.options.budget - (time.monotonic() - self.deadline.started))
        oracle.deadline.interrupted = self.deadline.interrupted
        try:
            prover, text = self._prover(oracle), self.found.text
            self.found.elsewhere = tuple(prover.elsewhere(text, python) for python in self.options.also_python if self._wanted())
            self.found.other = tuple(signature.line() for signature in oracle.other_failures())
            if self.found.neighbours is not None and oracle.passes(self.found.neighbours[1]):
                self.found.passes_if = edit_between(*self.found.neighbours)
            if search.start is None or self.found.program is None:
                return
            self.found.culprit = culprit(self.found.program, self._suspects(), oracle.ask, render)
            reference = oracle.reference
            self.found.exported = exported_program.write(
                self.found.text,
                self.space.exported,
                oracle.answer,
                self.found.limit(),
                lambda shown: shown.same_across_forms(reference),
                oracle.observe,
            )
        except (BudgetSpent, Interrupted):
            return
        finally:
            self.found.timing["evidence"] = time.monotonic() - started

    def _reserve(self, failure: Signature) -> float:
        """Seconds to keep for the proof: its first run, the rest side by side, each as long as the program took."""
        assert self.found.capture is not None
        once = self.options.hang_after + verify.START if failure.kind is Kind.HANG else self.found.capture.outcome.seconds
        proof = once * (1 + math.ceil((self.options.verify_runs - 1) / verify.AT_ONCE))
        return min(self.options.budget / 2, max(self.deadline.reserve, proof))

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
        say(f"files: {self.options.out}\n")
        sys.stdout.flush()

    # --- small things

    def _wanted(self) -> bool:
        return not self.deadline.interrupted.is_set()

    def _unlike(self) -> str:
        """What the fresh runs showed to be unlike the failure of the program."""
        if self.options.target.module is not None and self.found.reference is None:
            return "the command fails here, but not the script that calls its test alone: "
        return "fresh processes did not show the same failure: "

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
