"""The first part of the job: the program fails here, passes without the compiler, and its graphs are captured."""

from __future__ import annotations

import os
import re
import shutil
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from bot.engine.capture.region import Capture, Region
from bot.engine.capture.run import Tolerance, Watch, capture
from bot.engine.capture.source import source_of
from bot.engine.evidence import verify
from bot.engine.evidence.verify import START
from bot.engine.options import Ended, Options
from bot.engine.progress import Progress
from bot.engine.state import Reproduction
from bot.engine.target import Launch
from bot.engine.workspace import Workspace
from bot.failure.device_errors import is_asynchronous
from bot.failure.machine_faults import fault_of, last_line, missing
from bot.failure.outcome import Outcome
from bot.failure.signature import signature_of
from bot.failure.traceback import failed_later_than
from bot.inside.protocol import ControlOption
from bot.machine import gpu
from bot.models.failure import Kind, Phase, Signature
from bot.oracle.budget import Budget
from bot.workers.process import HANG_RATIO

# Seconds for the program without the compiler, at least.
CONTROL_LIMIT = 300.0
# Beyond this a script is no longer something that a person has read.
LARGE_LINES, LARGE_BYTES = 10_000, 1_000_000
# What a program says that met itself: its control runs beside it.
_COLLIDED = re.compile(r"address already in use|EADDRINUSE|Resource temporarily unavailable", re.I)


@dataclass
class Intake:
    """Runs the user's program, with and without the compiler. `cache` is the compile directory."""

    options: Options
    space: Workspace
    progress: Progress
    cache: Path
    budget: Budget

    def run(self) -> Reproduction:
        """The failure to minimize, and what the capture brought back.

        Raises:
            Ended: the program does not fail, fails in eager as well, or the machine is at fault.
            Interrupted: the budget was cancelled.
        """
        started = time.monotonic()
        hang_after = self.options.hang_after
        if self.options.device == "cuda" and (why := gpu.missing(self.options.python)):
            raise Ended("error", f"--device cuda: this interpreter's torch sees no GPU: {why}", machine_fault="no GPU")
        self._say_large()
        with ThreadPoolExecutor(1) as executor:
            control = executor.submit(self._control, hang_after)
            found = self._captured(hang_after)
            without = control.result()
        if _COLLIDED.search(found.outcome.text[-20_000:]):
            found = self._captured(hang_after)
        elif _too_soon(found, without, hang_after) and not self._fails(without, found):
            longer = min(HANG_RATIO * (without.seconds - START), self.options.budget / 3)
            if longer > hang_after:
                self.progress.say(f"without the compiler it takes {without.seconds:.0f} s: waiting longer for its end")
                hang_after = longer
                found = self._captured(hang_after)
        failure = self._failure(found, without)
        if found.child:
            self.progress.say(f"it failed in a process that the program started: {found.child}")
        if without.status != "timeout" and self._fails(without, found):
            without = self._control(hang_after)  # alone: what it met may have been the program itself
        self._judge(without, found)
        if failure.kind is Kind.HANG and _too_soon(found, without, hang_after):
            raise Ended(
                "not_reproduced",
                f"still running after {found.outcome.seconds:.0f} s, but without the compiler it takes {without.seconds:.0f} s:"
                " no hang by that limit; --hang-after sets a longer one",
            )
        found = self._with_graphs(found, failure.kind, hang_after)
        found = found.model_copy(update={"eager_error": without.error, "partial": without.status != "ok"})
        if failure.kind is Kind.ACCURACY and without.raised and not _wrong(found):
            failure = failure.model_copy(update={"kind": Kind.NO_RAISE})
        if failure.kind is Kind.ACCURACY and self._eager_comparison_depends_on_uninitialized_memory(hang_after):
            raise Ended("not_reproduced", "the program compares uninitialised memory: without the compiler its numbers differ as well")
        source = source_of(self.options.target, Path.cwd(), found.test)
        original = source_of(self.options.target, Path.cwd()) or source
        return Reproduction(
            capture=found,
            failure=failure,
            source=source,
            original=original.text if original else None,
            hang_after=hang_after if failure.kind is Kind.HANG else self.options.hang_after,
            seconds=time.monotonic() - started,
        )

    def _say_large(self) -> None:
        file = self.options.target.file
        if file is None or not Path(file).is_file():
            return
        raw = Path(file).read_bytes()
        rows = raw.count(b"\n")
        if rows > LARGE_LINES or len(raw) > LARGE_BYTES:
            self.progress.say(f"{Path(file).name} has {rows:,} lines, {len(raw):,} bytes: reducing the script itself may take long")

    def _captured(self, hang_after: float) -> Capture:
        self.progress.step(f"running {self.options.target.name} with the capture in place")
        strict = self.options.accuracy == "strict"
        compare = Tolerance(strict=strict) if self.options.accuracy in ("on", "strict") else None
        longest = hang_after + START
        found = self._capture("capture", longest, compare)
        self._keep(found)
        outcome = found.outcome
        if outcome.status == "timeout" and self.options.budget < longest:
            raise Ended("error", f"the program did not end within the budget of {self.options.budget:.0f} s; see original/log.txt")
        fault = fault_of(outcome) if outcome.status != "ok" else None
        if fault:
            said = f" ({outcome.text.strip()}); --python names another one" if outcome.status == "infra" else ""
            raise Ended("error", f"the machine is at fault: {fault}{said}", machine_fault=fault)
        kind = found.signature.kind if found.signature else None
        if not _wrong(found) and (
            (kind is None and outcome.status == "ok" and self.options.accuracy == "auto")
            or (kind is Kind.ACCURACY and self.options.accuracy != "off")
        ):
            self.progress.step("comparing every compiled region with eager and float64")
            # where the program compares for itself, its own tolerance decides
            own = found.tolerance if kind is Kind.ACCURACY else None
            compare = Tolerance(own, strict=strict or own is not None)
            checked = self._capture("accuracy", max(longest, HANG_RATIO * outcome.seconds), compare)
            if kind is None and checked.signature is not None:
                # comparing must not be what makes it fail
                return found
            return found.model_copy(update={"regions": _wrong(checked)})
        return found

    def _with_graphs(self, found: Capture, kind: Kind, hang_after: float) -> Capture:
        """Of a program that dies in the compiler the graphs are written before the compiler gets them."""
        if found.signature is not None and is_asynchronous(found.signature):
            return self._with_failing_region(found, hang_after)
        if kind not in (Kind.CRASH, Kind.HANG) or found.regions:
            return found
        self.progress.step("the program dies in the compiler: once more, writing each graph beforehand")
        # a hang shows no more if it is watched for longer
        again = self._capture("beforehand", (hang_after / 3 if kind is Kind.HANG else hang_after) + START, beforehand=True)
        return found.model_copy(update={"regions": again.regions})

    def _with_failing_region(self, found: Capture, hang_after: float) -> Capture:
        """Of an error that a GPU reports late: the graph whose kernel it is, if the error is the same with one kernel after the other."""
        self.progress.step("an error of the GPU shows late: once more, with one kernel after the other")
        again = self._capture("synchronous", hang_after + START, synchronous=True)
        same = again.signature is not None and found.signature is not None and found.signature.same_across_forms(again.signature)
        return found.model_copy(update={"regions": again.regions}) if same else found

    def _capture(
        self, name: str, timeout: float, compare: Tolerance | None = None, *, beforehand: bool = False, synchronous: bool = False
    ) -> Capture:
        out = self.space.work / name
        shutil.rmtree(out, ignore_errors=True)
        watch = Watch(out, self.cache, compare, beforehand, synchronous)
        timeout = min(timeout, self.options.budget)
        return capture(self.options.target, self.options.python, Path.cwd(), watch, timeout=timeout, budget=self.budget)

    def _keep(self, found: Capture) -> None:
        """The script as it ran, and its log."""
        original = self.space.original
        file = self.options.target.file
        if file and Path(file).is_file():
            shutil.copyfile(file, original / Path(file).name)
        text = found.outcome.text if found.outcome.status == "raised" else ""
        self.space.write(original / "log.txt", found.log.read_text(encoding="utf-8") + ("\n" + text if text else ""))

    def _failure(self, found: Capture, without: Outcome) -> Signature:
        if found.signature is not None:
            if self.options.target.module == "pytest" and found.signature.exception == ("SystemExit",):
                raise Ended("error", f"pytest ended with exit status {found.signature.message} before a test failed; see original/log.txt")
            return found.signature
        if _wrong(found):
            return Signature(kind=Kind.ACCURACY, phase=Phase.RUN, message="compiled results differ from eager")
        outcome = found.outcome
        if outcome.status == "ok":
            # an error that the compiler swallows is a failure only of a program that expects it
            without_it = f", but not without the compiler: {_last(without)}; a program that asserts this can be minimized"
            raise Ended("not_reproduced", f"the program passes here{without_it if without.status == 'raised' else ''}")
        if outcome.status == "infra":
            raise Ended("error", f"the program could not be run: {outcome.text.strip()[-300:]}")
        said = f": {outcome.text.strip()[-200:]}" if outcome.text.strip() else ""
        raise Ended("not_reproduced", f"the program ended with exit status {outcome.exit} and no Python error to compare{said}")

    def _eager_comparison_depends_on_uninitialized_memory(self, hang_after: float) -> bool:
        """Whether a script's comparison fails in eager too when every piece of uninitialized memory holds something else."""
        script = self.options.target.script
        if script is None or not verify.may_read_uninitialized(script):
            return False
        signature = signature_of(self._control(hang_after, "--repeats"), script=script.name)
        return signature is not None and signature.kind is Kind.ACCURACY

    def _control(self, hang_after: float, option: ControlOption | None = None) -> Outcome:
        target = self.options.target
        argv = target.argv if target.script else (target.module or "", *target.argv)
        launch = Launch(self.options.python, Path.cwd(), os.environ, argv)
        timeout = max(CONTROL_LIMIT, hang_after)
        return verify.run_control_fresh(launch, target.script or "-m", timeout=timeout, option=option, budget=self.budget)

    def _fails(self, control: Outcome, found: Capture) -> bool:
        behind = control.status == "raised" and failed_later_than(control.text, found.outcome.text, self.options.target.name)
        return control.status != "ok" and not behind

    def _judge(self, control: Outcome, found: Capture) -> None:
        """Raises `Ended` where the compiler has nothing to do with the failure."""
        if self._fails(control, found):
            raise Ended("not_reproduced", _in_eager(control))
        if not control.calls and not found.children:
            raise Ended("not_reproduced", "the program never reaches torch.compile, torch.export or AOTInductor")


def _too_soon(found: Capture, without: Outcome, hang_after: float) -> bool:
    """Whether a program that takes so long in eager was given too little time to say that it hangs."""
    return found.outcome.status == "timeout" and without.seconds > hang_after / HANG_RATIO + START


def _in_eager(control: Outcome) -> str:
    """How a program fails without the compiler."""
    last = _last(control)
    if control.status == "timeout":
        return f"without the compiler the program does not end within {control.seconds:.0f} s; its last line: {last[:200]}"
    needs = missing(control)
    if needs:
        return f"the program needs {needs}; it fails in eager as well: {last}"
    ended = {"raised": "", "exit": f" (exit status {control.exit})"}.get(control.status, f" ({control.status})")
    return f"the program fails in eager as well{ended}: {last}"


def _last(outcome: Outcome) -> str:
    return last_line(outcome) or "nothing was printed"


def _wrong(found: Capture) -> tuple[Region, ...]:
    return tuple(region for region in found.regions if region.failed == "accuracy")
