"""The first part of the job: the program fails here, passes without the compiler, and its graphs are captured."""

from __future__ import annotations

import contextlib
import os
import re
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from bot.engine import compile_only, size, slowness, time_split
from bot.engine.capture.local_modules import search_path
from bot.engine.capture.region import Capture
from bot.engine.capture.run import STACKS, Tolerance, Watch, capture, raised_in_comparing
from bot.engine.capture.source import of_child, source_of
from bot.engine.capture.whole import whole
from bot.engine.caught import ends_so_anyway, for_what_it_caught, had_no_room, passes, refuse_if_filled, unless_alone, with_room
from bot.engine.eager_controls import judge_compiled_branch, right_numbers_pass, worded
from bot.engine.evidence import verify
from bot.engine.options import Ended, Options
from bot.engine.progress import Progress
from bot.engine.refusals import Lookups, TwoRuns, with_hint
from bot.engine.state import Reproduction
from bot.engine.target import Launch
from bot.engine.warm_control import WarmControl
from bot.engine.withheld import withheld
from bot.engine.workspace import Workspace
from bot.failure.device_errors import is_asynchronous
from bot.failure.machine_faults import STOPPED, fault_of, last_line, may_differ, refused
from bot.failure.outcome import Outcome
from bot.failure.signature import signature_of
from bot.inside.protocol import ControlOption
from bot.machine import gpu
from bot.models.failure import Kind, Phase, Signature
from bot.oracle.budget import Budget
from bot.sandbox import aside, paths
from bot.sandbox.files import empty, remove
from bot.sandbox.sandbox import Sandbox
from bot.workers.process import HANG_RATIO, START, Patience
from bot.workers.toolchain import Maker

# Seconds for the program without the compiler, if nothing asks for more.
CONTROL_LIMIT = 300.0
# A program is run this often before it is said to pass, if there is time.
MOST_RUNS = 5
# Errors of a program that collided with itself: its control runs at the same time.
_COLLIDED = re.compile(r"address already in use|EADDRINUSE|Resource temporarily unavailable", re.I)


@dataclass
class Intake:
    """Runs the user's program, with and without the compiler. `cache` is the compile directory, `box` the sandbox. `warm` asks a process
    that has already imported torch for the control, if possible; see `warm_control`. A capture waits a while for what is `made`."""

    options: Options
    space: Workspace
    progress: Progress
    cache: Path
    budget: Budget
    box: Sandbox | None = None
    warm: WarmControl | None = None
    made: Maker | None = None

    def run(self) -> Reproduction:
        """The failure to minimize, and what the capture returned.

        Raises:
            Ended: the program does not fail, fails in eager as well, or the machine is at fault.
            Interrupted: the budget was cancelled.
        """
        arch = self.options.cuda_arch
        try:
            found = self._reproduced()
        except Ended as end:
            raise (with_hint(end, self.options, self._lookups()) if arch is None else compile_only.worded(end, arch)) from None
        if arch is not None and (later := compile_only.later(found.failure, found.capture.outcome.text, arch)):
            raise later
        return found

    def _reproduced(self) -> Reproduction:
        started = time.monotonic()
        if (
            self.options.device == "cuda"
            and self.options.cuda_arch is None
            and (why := gpu.missing(self.options.python, self.budget.remaining(), aside.ask))
        ):
            raise Ended("error", "needs_hardware", f"--device cuda: {why}; {gpu.NO_NEED}", machine_fault="no GPU")
        if large := size.large(self.options.target.file):
            self.progress.say(large)
        runs, own = self._two_runs(time_split.first_run(self.options))
        found, without = runs.compiled, runs.eager
        refuse_if_filled(found.outcome, without)
        failure = self._failure(runs)
        if found.child:
            self.progress.say(f"it failed in a process that the program started: {found.child}")
        if refusal := runs.refusal(self._lookups()):
            self._withheld(runs.eager)
            refusal = unless_alone(refusal, found, runs.eager, lambda: self._alone(found, own))
            raise worded(refusal, found.outcome, runs.eager, lambda option: self._control(own, option))
        device = "cuda" if paths.has_gpu() and self.options.target.names_a_gpu else "cpu"
        if self._lookups().fails_to_load_alike(failure, found.outcome.text, device):
            said = f"no AOTInductor package can be loaded here: that of one relu fails in the same way ({failure.line()})"
            raise Ended("error", "machine_fault", said, machine_fault="AOTInductor packages cannot be loaded")
        hangs = failure.kind is Kind.HANG
        hang_after = slowness.hang_after(self.options, found.outcome, without, own) if hangs else self.options.hang_after or own
        found = self._with_graphs(found, failure.kind, hang_after)
        found = found.model_copy(update={"eager_error": without.error, "partial": runs.behind})
        if failure.kind is Kind.ACCURACY and without.raised and not found.wrong:
            failure = failure.model_copy(update={"kind": Kind.NO_RAISE})
        judged = failure.kind is Kind.ACCURACY or found.own_verdict
        if judged and (undefined := self._undefined(found, own)):
            said = f"the program compares {undefined}, which torch leaves open: filled in otherwise, it fails without the compiler as well"
            raise Ended("not_reproduced", "fails_in_eager", said)
        right: bool | None = False
        judge_compiled_branch(failure, self.options.target.name, without, lambda option: self._control(own, option))
        if (judged or found.own_code) and found.signature is not None and self.options.accuracy != "off" and not found.wrong:
            self._judge_random_numbers(found, own)
            right = right_numbers_pass(found, self.options.target.name, lambda option: self._control(own, option))
            found = self._with_later_calls(found, own) if judged and right and found.again else found
            # its own code fails with right numbers as well: what can be shown is that some are wrong
            found = found.model_copy(update={"regions": found.compared}) if right is None else found
            failure = failure.model_copy(update={"kind": Kind.ACCURACY}) if found.wrong else failure
        places = search_path(Path.cwd(), os.environ)
        source = source_of(self.options.target, Path.cwd(), found.test, places)
        failed = of_child(source, found, places) if found.child and not self.options.target.starts_ranks else source
        # if the program only starts another one, that is what is to become small
        other = found.main is not None and failed is not source
        original = (None if other else source_of(self.options.target, Path.cwd(), places=places)) or failed
        return Reproduction(
            capture=found,
            failure=failure,
            source=failed,
            # includes the modules of the project: a launcher of two lines is not a small program
            original=whole(original, original.text, (), places).text if original else None,
            hang_after=hang_after,
            seconds=time.monotonic() - started,
            own_end=found.signature if found.own_verdict and failure.kind is Kind.ACCURACY and found.signature != failure else None,
            right_numbers=bool(right),
        )

    def _two_runs(self, own: float) -> tuple[TwoRuns, float]:
        """The program with and without the compiler, each run again if the first run may not count; and the seconds for a run."""
        found, without = self._both(own)
        if had_no_room(found.outcome):
            found = with_room(lambda: self._captured(own, keeps=False), lambda full: self._alone(full, own))
        elif _COLLIDED.search(found.outcome.text[-20_000:]):
            found = self._captured(own)
        else:
            if (longer := slowness.longer(self.options, found.outcome, without)) and not self._runs(found, without).eager_fails:
                self.progress.say(f"without the compiler it takes {without.seconds:.0f} s: waiting longer for its end")
                own = longer
                found = self._captured(own)
        if without.raised:
            # it expects an error, which eager raises too: how it takes the compiler's is its own judgment
            found = found.as_it_ended(self.options.target.name)
        elif without.status == "ok" and ends_so_anyway(found, self.options.target.name, lambda: self._fallen_back(own)):
            found = self._compared(found.as_it_ended(self.options.target.name), own)
        found = self._asked_again(found, without, own)
        runs = self._runs(found, without)
        checks = runs.judged and not without.raised and self.options.accuracy == "auto"
        if checks and found.outcome.status == "ok" and not found.wrong:
            # it ends well if results differ: whole numbers count, as they do if it says that results differ
            strictly = self._capture("strict", max(own, HANG_RATIO * found.outcome.seconds), Tolerance(found.tolerance, strict=True))
            found = found.with_wrong(strictly.wrong if strictly.outcome.status == "ok" else ())
        if runs.judged and not without.raised and found.outcome.status == "ok" and found.wrong:
            alone = self._alone(found, own)  # with graphs kept, as by default, it may not end well at all
            found = found if alone.outcome.cut or alone.signature is None else alone
        if had_no_room(without) or (runs.eager_fails and without.status != "timeout" and (found.signature is not None or found.wrong)):
            without = self._control(own)  # alone: it may have collided with the program itself
        return self._runs(found, without), own

    def _both(self, own: float) -> tuple[Capture, Outcome]:
        """The program with the capture and, at the same time, without the compiler."""
        beside = self.budget.part(self.budget.seconds)
        with ThreadPoolExecutor(1) as executor:
            control = executor.submit(self._first_control, own, beside)
            try:
                found = self._captured(own)
            except BaseException:
                beside.cancel()  # nobody waits for it
                raise
            return found, control.result()

    def _first_control(self, own: float, budget: Budget) -> Outcome:
        """The control that runs during the capture. From a warm process, only a pass is believed."""
        passed = self.warm(own, budget) if self.warm is not None else None
        return passed or self._control(own, budget=budget)

    def _asked_again(self, found: Capture, without: Outcome, own: float) -> Capture:
        """A program that passed, run again: a failure that is not steady does not show each time. Not done if eager does not pass."""
        if found.outcome.status != "ok" or found.signature or found.wrong or without.status != "ok" or not without.calls:
            return found
        until = time.monotonic() + time_split.AGAIN_SHARE * self.options.budget
        for runs in range(2, MOST_RUNS + 1):
            # once without the hooks in any case: they keep no compiled graphs, and a kept graph may be the wrong one
            if time.monotonic() + found.outcome.seconds > (until if runs > 2 else time.monotonic() + self.budget.remaining()):
                break
            self.progress.step(f"it passed: once more, run {runs} of {MOST_RUNS}")
            again = self._alone(found, own) if runs == 2 else self._capture("again", own)
            again = again.as_it_ended(self.options.target.name) if without.raised else again
            if again.outcome.cut or again.outcome.status == "infra":
                break  # it did not get its time, or did not run at all
            if again.signature is not None:
                self._keep(again)
                return again.model_copy(update={"runs": runs})
            found = found.model_copy(update={"runs": runs, "prints": (*found.prints, *again.prints)})
            if runs == 2 and found.again and self.options.accuracy == "auto" and time.monotonic() + found.outcome.seconds < until:
                found = self._with_later_calls(found, own)
                if found.wrong:
                    return found
        return found

    def _alone(self, found: Capture, own: float) -> Capture:
        """The program that passed as it was `found`, without the hooks: they import the compiler before it begins, so what it changes for
        that import has no effect any more."""
        launch, script = self._launch()
        outcome = verify.run_fresh(launch, script, timeout=own, budget=self.budget)
        # what was compared with the hooks is not what fails this way
        facts = {"ended": outcome, "errors": None, "again": False, "prints": (outcome.stdout,)}
        return found.model_copy(update=facts).as_it_ended(self.options.target.name)

    def _runs(self, found: Capture, without: Outcome) -> TwoRuns:
        return TwoRuns.of(found, without, self.options.target.name)

    def _lookups(self) -> Lookups:
        return Lookups(*self._launch(), self.budget)

    def _captured(self, own: float, *, keeps: bool = True) -> Capture:
        self.progress.step(f"running {self.options.target.name} with the capture in place")
        if self.options.wrong_numbers and self.options.accuracy == "auto":
            found = self._capture("accuracy", own, Tolerance())
            if found.outcome.status == "ok" and found.wrong:
                self._keep(found)
                return found.model_copy(update={"regions": found.wrong})
        compare = Tolerance(strict=self.options.accuracy == "strict") if self.options.accuracy in ("on", "strict") else None
        found = self._capture("capture", own, compare, afterwards=keeps and self.options.accuracy == "auto")
        self._keep(found)
        outcome = found.outcome
        if outcome.cut and self.options.hang_after is not None:
            said = f"the program did not end within the budget of {self.options.budget:.0f} s; see original/log.txt"
            raise Ended("error", "budget", said)
        if outcome.status != "ok" and (fault := fault_of(outcome)):
            hint = "; --python names another one" if "torch" in fault else ""
            said = fault + (f" ({outcome.text.strip()}){hint}" if outcome.status == "infra" else "")
            raise Ended("error", "machine_fault", f"the machine is at fault: {said}", machine_fault=fault)
        return for_what_it_caught(found, self.options.target.name, lambda: self._fallen_back(own), lambda one: self._compared(one, own))

    def _fallen_back(self, own: float) -> Capture:
        self.progress.step("it caught the compiler's exception: once more without that")
        return self._capture("fallen-back", own, fall_back=True)

    def _compared(self, found: Capture, own: float) -> Capture:
        """The capture with the regions whose numbers are wrong, if the program ended well or by a verdict of its own."""
        outcome, strict = found.outcome, self.options.accuracy == "strict"
        kind = found.signature.kind if found.signature else None
        judged = kind is Kind.ACCURACY or found.own_verdict or found.own_code
        if not found.wrong and (
            (kind is None and outcome.status == "ok" and self.options.accuracy == "auto") or (judged and self.options.accuracy != "off")
        ):
            if found.compared is not None:
                return found.with_wrong(found.compared)
            self.progress.step("comparing every compiled region with eager and float64")
            # if the program compares by itself, its own tolerance decides
            tolerance = found.tolerance if judged else None
            compare = Tolerance(tolerance, strict=strict or judged)
            checked = self._capture("accuracy", max(own, HANG_RATIO * outcome.seconds), compare)
            if kind is None and checked.outcome.status == "timeout":
                said = f"the program ends well, but comparing its numbers did not end within {checked.outcome.seconds:.0f} s"
                raise Ended("error", "budget", f"{said}; a longer --budget gives it more time, --accuracy off leaves it out")
            wrote_nothing = checked.outcome.status != "ok" and bool(found.versions) and not checked.versions
            if kind is None and (wrote_nothing or raised_in_comparing(checked.outcome)):
                # our own code broke off, so the program was not compared
                raise Ended(
                    "error", "internal", f"the program ends well, but comparing its numbers broke off: {last_line(checked.outcome)}"
                )
            if kind is None and checked.signature is not None:
                return found  # comparing must not be what makes it fail
            passes = judged and checked.outcome.status == "ok" and checked.signature is None
            return found.with_wrong(checked.wrong, errors=checked.errors, whole=checked.whole, passes_as_eager=passes)
        return found

    def _with_later_calls(self, found: Capture, own: float) -> Capture:
        """For a program whose first calls are right: the regions that are wrong when they are called again, like the steps of a cache after
        the first; as it was `found` if there are none."""
        self.progress.step("first calls are right: comparing later calls")
        limit = max(own, HANG_RATIO * found.outcome.seconds)
        compare = Tolerance(found.tolerance, strict=True) if found.signature is not None else Tolerance()
        later = self._capture("later", limit, compare, later_calls=True)
        return found.model_copy(update={"regions": later.wrong, "errors": later.errors}) if later.wrong else found

    def _with_graphs(self, found: Capture, kind: Kind, hang_after: float) -> Capture:
        """For a program that dies in the compiler, the graphs are written before the compiler gets them."""
        if found.signature is not None and is_asynchronous(found.signature):
            return self._with_failing_region(found, hang_after)
        if kind not in (Kind.CRASH, Kind.HANG) or found.regions:
            return found
        self.progress.step("it ended before a graph was written: once more, writing each beforehand")
        # watching a hang for longer shows no more, and waiting for a dead process never ends
        most = hang_after / 3 if kind is Kind.HANG else min(hang_after, HANG_RATIO * found.outcome.seconds)
        again = self._capture("beforehand", most + START, beforehand=True)
        return found.model_copy(update={"regions": again.regions})

    def _with_failing_region(self, found: Capture, hang_after: float) -> Capture:
        """For an error that a GPU reports late: the graph whose kernel failed, if the error is the same with one kernel after the other."""
        self.progress.step("an error of the GPU shows late: once more, with one kernel after the other")
        again = self._capture("synchronous", hang_after + START, synchronous=True)
        if again.signature is not None and found.signature is not None and found.signature.same_across_forms(again.signature):
            return found.model_copy(update={"regions": again.regions})
        seen = again.signature or ("nothing fails" if again.outcome.status == "ok" else last_line(again.outcome))
        self.progress.step(f"so it is another failure ({seen}): the script itself is reduced")
        return found

    def _capture(self, name: str, own: float, compare: Tolerance | None = None, **looked_for: bool) -> Capture:
        """One run of the program; `looked_for` are fields of `Watch`."""
        watch = Watch(self.space.work / name, self.cache, compare, box=self.box, made=self.made, **looked_for)
        outcome = (found := self._watched(watch, own)).outcome
        if may_differ(outcome) and (outcome.status != "infra" or fault_of(outcome) == STOPPED or refused(outcome)):
            self.progress.step("it was killed, stopped or refused memory, or met a full disk: once more")
            return self._watched(watch, own)
        if slowness.began_cold(outcome, self.made):
            self.progress.step("it began while what every C++ compile needs was still being made: once more")
            return self._watched(watch, own)
        return found

    def _watched(self, watch: Watch, own: float) -> Capture:
        remove(watch.out)
        patience = Patience(own, self.budget.remaining(), STACKS, spread=self.options.hang_after is None)
        found = capture(self.options.target, self.options.python, Path.cwd(), watch, patience, self.budget)
        if found.outcome.status == "timeout" or may_differ(found.outcome):
            # a compiler that was killed leaves half a library, which the next run would load: that failure is ours, not the program's
            with contextlib.suppress(OSError):
                empty(self.cache)
        return found

    def _keep(self, found: Capture) -> None:
        """Keep the script as it ran, and its log."""
        if (file := self.options.target.file) and os.path.isfile(file):
            self.space.keep(Path(file))
        text = "\n" + found.outcome.text if found.outcome.status == "raised" and found.outcome.text else ""
        self.space.write(self.space.original / "log.txt", found.log.read_text(encoding="utf-8") + text)

    def _failure(self, runs: TwoRuns) -> Signature:
        found, without = runs.compiled, runs.eager
        if found.signature is not None:
            if self.options.target.module == "pytest" and found.signature.exception == ("SystemExit",):
                said = f"pytest ended with exit status {found.signature.message} before a test failed; see original/log.txt"
                raise Ended("error", "not_understood", said)
            # a compiler that is not allowed to write is not one that fails
            self._withheld(found.outcome, found.signature.said or found.signature.message)
            if found.own_verdict and found.wrong:  # it may report them in any way
                return found.signature.model_copy(update={"kind": Kind.ACCURACY})
            return found.signature
        if found.wrong:
            return Signature(kind=Kind.ACCURACY, phase=Phase.RUN, message="compiled results differ from eager")
        self._withheld(found.outcome)
        if found.outcome.status == "ok":
            if without.status == "ok" and (refusal := runs.refusal(self._lookups())):
                raise refusal
            raise Ended("not_reproduced", "passes", passes(found, without))
        said = f"the program could not be run: {found.outcome.end(300)}"
        raise Ended("error", "machine_fault", said, machine_fault="the program could not be run")

    def _undefined(self, found: Capture, own: float) -> str:
        """What torch leaves undefined that makes the script's comparison fail in eager too, if it differs each time; else empty."""
        script = self.options.target.script
        what = verify.left_open(script) if script is not None else ""
        if script is None or not what:
            return ""
        signature = signature_of(self._control(own, "--repeats"), script=script.name)
        return what if signature is not None and found.signature is not None and found.signature.same_across_forms(signature) else ""

    def _judge_random_numbers(self, found: Capture, own: float) -> None:
        """Raises `Ended` if the program's own comparison fails only because compiled code draws other random numbers than eager, its own,
        as documented."""
        if not found.passes_as_eager:
            return
        as_eager = self._capture("as-eager", own, as_eager=True)
        # what fails only now and then may have passed by chance
        if as_eager.outcome.status != "ok" or as_eager.signature is not None or self._capture("again", own).signature is None:
            return
        said = f"{found.fails}, but only since compiled code draws other random numbers than eager"
        raise Ended("not_reproduced", "passes", f"{said}: with torch._inductor.config.fallback_random = True it passes")

    def _control(self, own: float, option: ControlOption | None = None, budget: Budget | None = None) -> Outcome:
        launch, script = self._launch()
        timeout = min(CONTROL_LIMIT, own) if self.options.hang_after is None else max(CONTROL_LIMIT, own - START)
        return verify.run_control_fresh(launch, script, timeout=timeout, option=option, budget=budget or self.budget)

    def _launch(self) -> tuple[Launch, Path | str]:
        """How the program is started, and its script, or `-m`."""
        target = self.options.target
        argv = target.argv if target.script else (target.module or "", *target.argv)
        return Launch(self.options.python, Path.cwd(), os.environ, argv, self.box, linked=target.script is not None), target.script or "-m"

    def _withheld(self, outcome: Outcome, failure: str | None = None) -> None:
        """Raises `Ended` if the sandbox kept something from the program that it needs; see `withheld`."""
        if kept := withheld(outcome, self.box, failure):
            raise kept
