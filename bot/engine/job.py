"""The main job on one machine: a failing program in, a verified minimal repro out."""

from __future__ import annotations

import contextlib
import os
import resource
import signal
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import FrameType

from bot.engine import compile_only
from bot.engine.capture.local_modules import search_path
from bot.engine.capture.source import source_of
from bot.engine.evidence.confirmer import Confirmer
from bot.engine.evidence.verify import at_once, candidates_at_once
from bot.engine.explain import Explainer
from bot.engine.header import with_header
from bot.engine.options import Ended, Options
from bot.engine.package_code import first_that_fails
from bot.engine.progress import Progress
from bot.engine.proof import Prover
from bot.engine.reproduce import Intake
from bot.engine.search import Search
from bot.engine.state import Ending, Findings, Proof, Reproduction, SearchResult, result_of, resumed
from bot.engine.taken import taken, unreadable
from bot.engine.terminal import shown
from bot.engine.time_split import ASK_SHARE, enough, keeping_for_proof, of_first_runs, reserve
from bot.engine.trail import Trail
from bot.engine.warm_control import warm_control
from bot.engine.workspace import FULL, NotOurs, Workspace
from bot.failure.signature import refusal
from bot.machine import facts
from bot.models.failure import Kind
from bot.models.result import ReasonCode, Result
from bot.oracle.budget import Budget
from bot.oracle.criterion import Criterion
from bot.oracle.judge import Judge
from bot.oracle.memo import Ledger
from bot.oracle.oracle import ScriptOracle
from bot.oracle.run_plan import Limits
from bot.reduce.candidate import BudgetSpent
from bot.sandbox import paths
from bot.sandbox.accounts import keep_to_this_process
from bot.sandbox.aside import ask
from bot.sandbox.files import Scratch
from bot.sandbox.sandbox import NoSandbox, Sandbox
from bot.units import spoken
from bot.workers import absent_gpu, bytecode
from bot.workers.pool import Pool, PoolError, memory_for
from bot.workers.process import Interrupted
from bot.workers.toolchain import Maker

# A hang costs its time in every accepted step: the search waits for this share of --hang-after, the proof for all of it.
PATIENCE = 1 / 3
# The evidence is gathered during the proof if this many more processes can run: the control and two more.
BESIDE = 3


class Job:
    """One request, from the script to `result.json`. `options` are what the user asked for."""

    def __init__(self, options: Options) -> None:
        self.options = options
        self._began = time.monotonic()
        self.space = Workspace(options.out)
        self.budget = Budget(options.budget, reserve(options))
        self.progress = Progress()
        source = source_of(options.target, Path.cwd(), places=search_path(Path.cwd(), os.environ))
        self._found = Findings(source.text if source else None)
        self._versions: dict[str, str] = {}  # of the user's interpreter: filled in when its worker starts
        self._trail = Trail()
        self._ledger: Ledger | None = None
        self._scratch = Scratch(prefix="torch-minify-job-")
        self._cache = Path(self._scratch.name) / "compile"  # the one compile directory of this job: a cold one costs twelve seconds
        self._cache.mkdir()
        keep_to_this_process()
        self._box = self._sandbox()
        self._input = options.taken or taken(options.target, options.python)

    def _sandbox(self) -> Sandbox:
        target = self.options.target
        # the file itself too: if many share its directory, not all of that is the program's
        file = Path(target.file).resolve() if target.file else None
        own = [file, file.parent, Path(target.file).absolute()] if file and target.file else []
        readable = (*own, Path.cwd(), self.space.work, *self.options.read)
        return Sandbox(
            Path(self._scratch.name), self.options.python, readable, self.options.network,
            on=self.options.sandbox, patience=self.options.budget * ASK_SHARE,
        )  # fmt: skip

    def run(self) -> Result | None:
        """Do the job and write the result directory; None if the directory cannot be used (standard error says why)."""
        program, resume = Path(self.options.target.file) if self.options.target.file else None, self.options.resume
        earlier = self.space.earlier() if resume else None
        nothing = Ending("error", "interrupted", "the job was ended before it found anything")
        first = partial(self._result, self._found, nothing) if earlier is None else None
        try:
            self.space.prepare(program, resume=resume, first=first)
            if self.options.taken is None:  # otherwise it was said when that was found out
                self.progress.say(self._input.detail)
        except (NotOurs, OSError) as error:
            sys.stderr.write(f"torch-minify: {error}\n")
            if isinstance(error, OSError) and error.errno in FULL:
                if earlier is None:
                    self.space.abandon()
                return self._result(self._found, Ending("error", "interrupted", str(error), "the disk is full", "machine_fault"))
            return None
        with self._signals():
            result = self._guarded(earlier)
        self.progress.close()
        sys.stdout.write(shown(result, self.space.repro, self.options.out))
        sys.stdout.flush()
        return result

    def _guarded(self, earlier: Result | None) -> Result:
        ending = self._ending()
        with contextlib.suppress(OSError):
            self.space.keep_dump()
        cut = self.budget.is_spent or ending.code == "budget"  # a first run has a part of the budget only
        ended_by = self._found.ended_by(self.budget.ended_by if cut else "fixed_point", proven=ending.status != "error")
        code = "budget" if ending.status == "reproduced" and ended_by == "budget" else ending.code
        ending = replace(ending, ended_by=ended_by, code=code)
        result = resumed(earlier, self._result(self._found, ending))
        try:
            self.space.save_last(result, self._scratch.cleanup)
            if result.status in ("minimized", "reproduced", "not_reproduced"):
                self.space.clean()
        except OSError as error:
            sys.stderr.write(f"torch-minify: cannot write {self.space.result}: {error}\n")
        self._scratch.cleanup()
        return result

    def _ending(self) -> Ending:
        """Do the work, and say how it ended."""
        runs = self.options.verify_runs
        try:
            if self.options.require_sandbox:
                self._box.require()
            self.options.require_interpreter()
            self._put_up_gpu()
            log = self.space.original / "workers.log"
            pool = Pool(self.options.python, self._cache, log, versions=self._versions, box=self._box)
            with self._made() as made, pool:
                self._work(pool, made)
            status = self._found.status(runs)
            unlike = self._found.unlike(by_command=self.options.target.module is not None)
            said = self._found.reason_if_unverified(unlike, runs) if status == "error" else None
            fault = self._found.search.fault if self._found.search else ""
            code: ReasonCode | None = "internal" if fault and status == "reproduced" else self._found.code(status)
            return Ending(status, reason=said or fault or self._found.unreduced(status), code=code)
        except Ended as end:
            self._fall_back()
            return Ending(end.status, reason=end.reason, machine_fault=end.machine_fault, code=end.code)
        except (BudgetSpent, Interrupted):
            self._fall_back()
            code = "budget" if self.budget.should_continue() else None
            return Ending(self._found.status(runs), reason=self._cut_short(self._found), code=code)
        except (PoolError, NoSandbox, OSError) as error:
            said = f"nothing more can be written: {error}" if getattr(error, "errno", None) in FULL else str(error)
            if (status := self._found.status(runs)) != "error":  # proven: only what is said beside it is missing
                return Ending(status, reason=f"what explains the repro was not found out: {said}", code=self._found.code(status))
            self._fall_back(said)
            broken = said if isinstance(error, (PoolError, NoSandbox)) else "the disk is full" if error.errno in FULL else None
            return Ending("error", reason=said, machine_fault=broken, code="machine_fault" if broken else "internal")
        except Exception as error:  # noqa: BLE001 - our own fault: the traceback belongs into the log, one sentence to the user
            proven = self._found.status(runs) != "error"
            self._fall_back()
            self.space.keep_traceback()
            status = self._found.status(runs)  # what is proven stays proven
            said = f"torch-minify itself failed: {type(error).__name__}: {error}"
            return Ending(status, reason=said, code=self._found.code(status) if proven else None if status == "minimized" else "internal")

    def _made(self) -> Maker:
        """What every process of the job finds: bytecode right away, as three at a time import torch, and what C++ compiles begin with."""
        options, target = self.options, self.options.target
        if self._box.on:
            most, wanted = options.budget * ASK_SHARE, self.budget.should_continue
            bytecode.lend(options.python, self._box, most, target.text, wanted=wanted)
        # a program on a GPU may never compile C++, and would wait for nothing
        anew = not target.names_a_gpu or (options.cuda_arch is None and not paths.has_gpu())
        return Maker(options.python, self._box, anew=anew)

    def _put_up_gpu(self) -> None:
        """Raises `Ended` if the GPU that isn't there can't be compiled for."""
        arch = self.options.cuda_arch
        if arch is not None:
            self._versions["cuda_arch"] = str(arch)
            why = absent_gpu.put_up(self._box, self.options.python, arch, self.budget.remaining(), self.budget.should_continue)
            if why is not None:
                raise Ended("error", "machine_fault", f"--cuda-arch {arch}: {why}", machine_fault="no compiling for an absent GPU")

    def _fall_back(self, fault: str = "") -> None:
        """Describe what is on disk: the last program that a fresh process confirmed or, if there is none, the best one. The `fault` is what
        ended the search, unless that was over."""
        best, step = self._found.search or self._trail.best, self._trail.confirmed
        if self._found.proof is not None or best is None:
            return
        known = replace(step or best, fixed_point=best.fixed_point, fault=best.fault or ("" if best.fixed_point else fault))
        self._found = replace(self._found, search=known, proof=step.confirmation() if step is not None else None)

    # --- the parts of the job, in order

    def _work(self, pool: Pool, made: Maker) -> None:
        script = self.options.target.script
        if why := self.options.unusable or (script is not None and unreadable(script, self.options.python)):
            raise Ended("error", "not_understood", why)
        pool.start()
        self.progress.say(f"sandbox: {', '.join(self._box.known_layers) or 'none'}")
        self._versions.update(facts.of_machine(ask, most=self.options.budget * ASK_SHARE))
        first = of_first_runs(self.options, self.budget)

        def run(options: Options) -> Reproduction:
            warm = warm_control(pool, options)
            return Intake(options, self.space, self.progress, self._cache, first, self._box, warm, made).run()

        with self._timed("capture_seconds"):
            self.options, reproduction = first_that_fails(self.options, run, self._box, self.budget)
        self._found = replace(self._found, original=reproduction.original, reproduction=reproduction)
        pool.memory = memory_for(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024)
        self.options = replace(self.options, jobs=self.options.jobs or candidates_at_once(reproduction.failure))
        self.progress.say(reproduction.failure.line())
        if needed := enough(self.options, reproduction, self.budget):
            hangs = reproduction.failure.kind is Kind.HANG
            took = f"one run {'is waited for' if hangs else 'takes'} {reproduction.capture.outcome.seconds:.0f} s"
            raise Ended(
                "error", "budget", f"{took}: too slow for a budget of {spoken(self.options.budget)}; --budget {spoken(needed)} would do"
            )
        self._ledger = Ledger(self.space.ledger, resume=self.options.resume, versions=self._versions)
        prover, search, result = self._reduced(reproduction, pool, self._ledger)
        said = reproduction.capture.as_it_ended(self.options.target.name)
        if result.reference is None and reproduction.capture.child and said.signature is not None:
            self.progress.say(f"nothing of that process fails alone: {said.signature.line()}")
            sm = self.options.cuda_arch
            unseen = compile_only.later(said.signature, said.outcome.text, sm) if sm is not None else None
            if unseen is not None:
                raise unseen
            reproduction = replace(reproduction, capture=said, failure=said.signature)
            self._found = replace(self._found, reproduction=reproduction)
            prover, search, result = self._reduced(reproduction, pool, self._ledger)
        self._found = replace(self._found, search=result)
        explainer = Explainer(self.options, self.space, pool, search.oracle, prover, reproduction.capture.regions, reproduction.limit)
        self._prove_and_explain(prover, result, explainer)

    def _reduced(self, reproduction: Reproduction, pool: Pool, ledger: Ledger) -> tuple[Prover, Search, SearchResult]:
        """Run the search; returns what proves its result, the search, and the result."""
        limit = max(60.0, reproduction.limit * 2)
        prover = Prover(self.options.python, reproduction.failure, limit, Path(self._scratch.name), self._cache, self.budget, self._box)
        check = keeping_for_proof(lambda step, part: replace(prover, budget=part).confirms(step), self.budget, self.options, reproduction)
        confirmer = Confirmer[SearchResult](check, self._on_confirmed, self.budget.part())
        # the time that is kept for the proof is not spent on going back
        self._trail = Trail(confirmer.offer, partial(prover.latest, goes_on=lambda: not self.budget.is_spent), self.progress.say)

        def new_oracle() -> ScriptOracle:
            limits = Limits(reproduction.limit, reproduction.hang_after, PATIENCE)
            criterion = Criterion(
                reproduction.failure,
                across_forms=True,
                eager_error=reproduction.eager_error,
                own_verdict=reproduction.failure.kind.ends_it and reproduction.right_numbers,
                refusal=refusal(reproduction.failure, reproduction.capture.outcome.text, self.options.target.name),
            )
            return ScriptOracle(Judge(pool, self.budget, limits), ledger, criterion)

        search = Search(self.options, reproduction, self._trail, new_oracle, self.progress)
        with self._timed("search_seconds"):
            start = search.begin()
        if start is None and reproduction.own_end is not None:
            # no graph is wrong on its own: the program says how it fails
            reproduction = replace(reproduction, failure=reproduction.own_end, own_end=None)
            self._found = replace(self._found, reproduction=reproduction)
            return self._reduced(reproduction, pool, ledger)
        self.budget.reserve = reserve(self.options, reproduction, left=self.budget.remaining())
        with self._timed("search_seconds"), confirmer:
            result = self._trail.rescued(search.run, self.space.keep_traceback)
        return prover, search, result

    def _on_confirmed(self, step: SearchResult, position: int) -> None:
        """Write a confirmed step at once. This runs in the confirmer's thread, while the search does not touch the findings."""
        found = replace(self._found, search=step, proof=step.confirmation())
        self._write_repro(found)
        self._trail.confirm(position)
        self.space.save(self._result(found, Ending("error", "interrupted", self._cut_short(found, "the job was ended"))))

    def _prove(self, prover: Prover, result: SearchResult) -> None:
        """Let fresh processes, with nothing of ours in them, decide."""
        self.progress.step(f"verifying in {self.options.verify_runs} fresh processes")
        started = time.monotonic()
        proof = self._told(prover.proof(result, self.options.verify_runs))
        slips = self._trail.slips_of(proof.rate)
        if slips:
            why = "it fails only now and then" if proof.holds else "the warm workers slipped"
            self.progress.say(f"{why}: going back to the last program that fails alone")
            back = prover.steadier(slips, proof, self.options.verify_runs)
            if back is not None:
                result, proof = replace(back[0], fault=result.fault), self._told(back[1])
        found = replace(self._found, search=result, proof=replace(proof, seconds=time.monotonic() - started))
        if proof.holds:
            self._write_repro(found)
        self._found = found
        if proof.holds:
            status = found.status(self.options.verify_runs)
            ending = Ending(status, found.ended_by("interrupted", proven=status != "error"), code=found.code(status))
            # at once: explaining it takes minutes, in which the result of an earlier repro would lie next to this one
            with contextlib.suppress(OSError):  # the one that is written at the end counts
                self.space.save(self._result(found, ending))

    def _told(self, proof: Proof) -> Proof:
        for line in proof.differences:
            self.progress.say(line)
        return proof

    def _prove_and_explain(self, prover: Prover, result: SearchResult, explainer: Explainer) -> None:
        """Prove the result and explain it, at the same time if the machine has room for both."""
        beside, text = self.budget.part(), result.final()
        with ThreadPoolExecutor(1) as executor:
            room = at_once(prover.failure) >= self.options.verify_runs + BESIDE and not self.options.also_python
            asked = executor.submit(explainer.of, result, text, beside) if room else None
            try:
                self._prove(prover, result)
                proof = self._found.proof
                wanted = proof is not None and proof.facts.same and proof.text == text
                said = asked.result() if asked is not None and wanted else None
            finally:
                beside.cancel()  # what did not fail alone needs no explanation
        search, proof = self._found.search, self._found.proof
        if said is None:
            if search is None or proof is None or not proof.facts.same:
                return
            self.progress.step("the exported program, and what is to blame")
            said = explainer.of(search, proof.text, self.budget.part())
        self.space.publish(exported=said.exported is not None, kernel=said.kernel)
        self._found = replace(self._found, explanation=said)

    # --- what is written

    def _result(self, found: Findings, ending: Ending) -> Result:
        ledger = self._ledger
        result = result_of(
            found,
            ending,
            found.reduction(ledger.queries, ledger.memo_hits) if ledger else found.reduction(),
            self.space.files(
                repro=self._trail.confirmed is not None or (found.proof is not None and found.proof.holds),
                exported=found.explanation.exported is not None,
                kernel=found.explanation.kernel is not None,
            ),
            self._versions,
            self._box.known_layers,
            pytorch_dump=self.space.dump.is_dir(),
            taken=self._input,
        )
        total = round(time.monotonic() - self._began, 3)
        compile_only = self.options.cuda_arch is not None and result.signature is not None
        return result.model_copy(update={"compile_only": compile_only, "timing": result.timing.model_copy(update={"total": total})})

    def _write_repro(self, found: Findings) -> None:
        assert found.reproduction is not None
        assert found.proof is not None
        text = with_header(found.proof.text, found.shown(), found.proof.facts, self._versions, found.reproduction.nearness)
        self.space.write(self.space.repro, text)

    # --- small things

    def _cut_short(self, found: Findings, why: str = "") -> str | None:
        why = why or ("out of time" if self.budget.should_continue() else "interrupted")
        if found.reproduction is None:
            return f"{why} before the program was seen to fail"
        done = f"{found.verification.same} of {self.options.verify_runs}"
        return found.reason_if_unverified(f"{why} after {done} fresh runs", self.options.verify_runs)

    @contextmanager
    def _timed(self, part: str) -> Iterator[None]:
        """Add the time of a part of the job to that field of the findings, however it ends."""
        started = time.monotonic()
        try:
            yield
        finally:
            self._found = replace(self._found, **{part: getattr(self._found, part) + time.monotonic() - started})

    @contextmanager
    def _signals(self) -> Iterator[None]:
        """Ctrl-C and SIGTERM end the search; what was verified is already on disk."""

        def stop(_: int, __: FrameType | None) -> None:
            self.budget.cancel()

        saved = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM)}
        try:
            yield
        finally:
            for number, handler in saved.items():
                signal.signal(number, handler)
