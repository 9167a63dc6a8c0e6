"""Why a program is refused: judged by how it ended with and without the compiler, each reason only after a check that can fail.

docs/refusals.md has a row for each code.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from bot.engine.capture.region import Capture
from bot.engine.caught import FREE_IT, FULL, had_no_room
from bot.engine.evidence import verify
from bot.engine.healthy_package import fault_of_package
from bot.engine.options import Ended, Options
from bot.engine.target import Launch, only_defines_tests
from bot.failure.machine_faults import KILLED, Need, fault_of, last_line, missing
from bot.failure.outcome import Outcome
from bot.failure.phases import phase_of
from bot.failure.signature import ended_behind, is_own_verdict, signature_of
from bot.failure.traceback import exceptions, plain
from bot.inside.protocol import APART
from bot.machine import gpu
from bot.models.failure import Phase, Signature, shortened
from bot.oracle.budget import Budget
from bot.sandbox.aside import ask
from bot.sandbox.files import Scratch
from bot.workers.process import HANG_RATIO, START, Patience, run_process

# Asks an interpreter whether it has a package.
_FIND = """
import importlib.util, sys
try:
    found = importlib.util.find_spec(sys.argv[1]) is not None
except (ImportError, ValueError):
    found = False
sys.exit(3 if found else 4)
"""
# Seconds for that.
_LIMIT = 60.0
# An exit status that no other program returns by chance.
_ODD = 93
_GPU = Need("hardware", "cuda")
# The smallest program that uses a GPU.
_ON_GPU = "import torch\ntorch.ones(1, device='cuda').add_(1).item()\n"
_LOADING = re.compile(r"\b_?load_aoti\b|\baoti_load_package\b|\bAOTIModelPackageLoader\b")
# Pytest's last line, if nothing else came of the tests.
_SKIPPED = re.compile(r"=* ?(\d+ skipped)(?:, \d+ warnings?)? in [\d.]+s.*")
# The files with the stand-ins for the compiler: an error that begins there is ours.
_STAND_INS = ("bot/inside/eager/stand_ins.py", "bot/inside/eager/compiler_out.py")


@dataclass(frozen=True)
class Lookups:
    """Looks things up before anything is said about a program, which is started as `launch` and `script` say."""

    launch: Launch
    script: Path | str
    budget: Budget

    def lacks(self, need: Need) -> bool:
        """Whether the `need` that the program reports is really missing."""
        if need == Need("hardware", "such"):
            return self.gpu_is_usable()
        if need.what == "hardware":
            return self.gpu_missing() is not None
        if need.what == "file":
            return not (self.launch.cwd / need.name).exists()
        # looking for a module in a package imports the package
        return self._run(_FIND, need.name).exit == 4

    def gpu_missing(self) -> str | None:
        """What keeps the interpreter's torch from using a GPU, for people; None if nothing does."""
        return gpu.missing(self.launch.python, min(_LIMIT, self.budget.remaining()), ask)

    def gpu_is_usable(self) -> bool:
        """Whether a program that is started like this one can use the GPU."""
        return self._run(_ON_GPU).status == "ok"

    def is_python(self) -> bool:
        """Whether the interpreter runs Python, as far as it could be tried: another program may end well with any arguments."""
        found = self._run(f"raise SystemExit({_ODD})", limit=min(_LIMIT, self.budget.remaining()))
        return found.exit == _ODD or found.status in ("timeout", "infra")

    def _run(self, code: str, *arguments: str, limit: float = _LIMIT) -> Outcome:
        words = [self.launch.python, "-c", code, *arguments]
        return run_process(words, Patience(limit), cwd=self.launch.cwd, env=self.launch.env, box=self.launch.box)

    def fails_to_load_alike(self, failure: Signature, text: str, device: str) -> bool:
        """Whether the `failure`, with its traceback in `text`, is one of loading an AOTInductor package, and a package of one relu on the
        `device` fails to load in the same way."""
        if failure.phase is not Phase.LOAD or not failure.kind.ends_it or not _LOADING.search(text):
            return False
        found = fault_of_package(self.launch, device, self.budget)
        return found is not None and failure.same_across_forms(found)

    def compiles(self, seconds: float) -> bool:
        """Whether any process of the program reaches the compiler, according to torch's own trace. The program is run once more, for at
        most `seconds` of its own time."""
        scratch = self.launch.box.scratch if self.launch.box else None
        with Scratch(prefix="torch-minify-trace-", dir=scratch) as trace:
            launch = replace(self.launch, env={**self.launch.env, "TORCH_TRACE": trace}, write=(Path(trace),))
            verify.run_fresh(launch, self.script, timeout=seconds, budget=self.budget)
            return any(os.scandir(trace))


@dataclass(frozen=True)
class TwoRuns:
    """How the program ended `compiled` (with the capture) and `eager` (with the compiler taken out). `behind`: eager ended after the
    statement that fails when it is compiled; `judged`: it ended by a verdict of the program's own."""

    compiled: Capture
    eager: Outcome
    behind: bool
    judged: bool = False

    @classmethod
    def of(cls, compiled: Capture, eager: Outcome, script: str) -> TwoRuns:
        """Both runs, `compiled` and `eager`, of the program in the file `script`."""
        ended = signature_of(eager, script=script)
        judged = ended is not None and is_own_verdict(ended, eager, script=script)
        return cls(compiled, eager, ended_behind(eager, compiled.outcome.text, script), judged)

    @property
    def eager_fails(self) -> bool:
        """Whether eager did not get past what the failure is about."""
        return self.eager.status != "ok" and not self.behind

    @property
    def reached(self) -> bool:
        """Whether our hooks saw the compiler."""
        found = self.compiled
        phase = found.signature.phase if found.signature else Phase.RUN
        return found.outcome.calls > 0 or bool(found.regions) or found.children or phase is not Phase.RUN

    def refusal(self, lookups: Lookups) -> Ended | None:
        """Why the compiler has nothing to do with the failure, or why that cannot be told, according to `lookups`; None if it has."""
        ended = self.compiled.outcome.status in ("ok", "exit")  # a program that raised ran in Python
        if ended and not (self.reached or lookups.is_python()):
            said = f"{lookups.launch.python} does not run Python: --python names the interpreter"
            return Ended("error", "machine_fault", said, machine_fault="no usable torch in this interpreter")
        if self.eager_fails:
            return None if self._asserts_what_is_wrong() else self._of_eager(lookups)
        # a child may have kept its output to itself, and with it the count
        return None if self.eager.calls or self.compiled.child else self._unreached(lookups.compiles)

    def _of_eager(self, lookups: Lookups) -> Ended:
        eager, last = self.eager, last_line(self.eager) or "nothing was printed"
        if eager.status == "exit" and eager.text.strip():
            last = f"its last line: {last}"  # the program's own words, which may say anything
        if self._killed_each_time():
            said = "the program was killed with the compiler and without it (SIGKILL), as for its memory, before it came to the compiler"
            return Ended("error", "machine_fault", f"{said}: {last}", machine_fault=KILLED)
        if fault := self._broken():
            said = f"without the compiler the program was not run to its end, by a fault of the machine{self._ended()}: {last}"
            return Ended("error", "machine_fault", said, machine_fault=fault)
        if had_no_room(eager) and not lookups.gpu_is_usable():
            said = f"the GPU is full: a program that puts one number there fails as well; {FREE_IT}: {last}"
            return Ended("error", "machine_fault", said, machine_fault=FULL)
        if eager.error == APART:
            said = f"without the compiler the program fails{self._ended()}: {last}; a process that it starts loads what another one"
            return Ended("error", "not_understood", f"{said} compiled, which is not on disk then, so there is no eager run to compare with")
        if eager.status in ("signal", "timeout") and eager.unmade:
            return self._only_made(last)
        if eager.status == "timeout":
            return self._endless(last)
        if _is_ours(eager):
            said = "torch-minify's stand-in for the compiler, which it uses for the run in eager, cannot do what the program asks"
            return Ended("error", "internal", f"{said}: {last}")
        need = missing(eager)
        why = lookups.gpu_missing() if need == _GPU else None
        if need is not None and (why or (need != _GPU and lookups.lacks(need))):
            hint = f"; {why}; {gpu.NO_NEED}" if why else ""
            return Ended("not_reproduced", need.code, f"the program needs {need}: {last}{hint}")
        if need is not None and need.what == "hardware" and not lookups.gpu_is_usable():
            said = (
                f"this machine has a GPU, but no program that is kept in the sandbox can use it; torch-minify doctor looks into it: {last}"
            )
            return Ended("error", "machine_fault", said, machine_fault="the GPU cannot be used in the sandbox")
        ended = self._ended()
        if not eager.calls and not self.reached and self.compiled.outcome.status != "timeout":
            return Ended("not_reproduced", "fails_before_compile", f"the program fails before it comes to the compiler{ended}: {last}")
        if self._compiled_in_eager() or (not eager.calls and self._same_failure()):
            said = "the compiler is called from inside torch, where it cannot be taken out, so there is no eager run to compare with"
            return Ended("error", "not_understood", f"{said}: {last}")
        if self._asks_for_what_is_made():
            return self._only_made(last)
        return Ended("not_reproduced", "fails_in_eager", f"the program fails in eager as well{ended}: {last}")

    def _killed_each_time(self) -> bool:
        """Whether no run was seen to reach the compiler, since each was killed: the kernel takes the largest process, whoever filled the
        memory."""
        return self.eager.signal == self.compiled.outcome.signal == "SIGKILL" and not self.eager.calls and not self.reached

    def _broken(self) -> str | None:
        """What the machine did to the eager run, so that it says nothing about the program; None if it did nothing."""
        if fault := fault_of(self.eager):
            return fault
        if self.eager.status == "infra":
            return "the program could not be run"
        # a program that kills itself does so with the compiler as well
        killed = self.eager.signal == "SIGKILL" and self.compiled.outcome.signal != "SIGKILL"
        return KILLED if killed else None

    def _compiled_in_eager(self) -> bool:
        """Whether eager failed inside the compiler: an operation that compiles itself has no eager form to compare with. A user's kernel is
        compiled only by Triton, in eager as well."""
        found = signature_of(self.eager)
        if not self.reached or found is None or found.phase in (Phase.RUN, Phase.LOAD):
            return False
        frames = [frame for raised in exceptions(plain(self.eager.text)) for frame in raised.frames]
        return not frames or phase_of([frame for frame in frames if not frame.path.startswith("triton/")]) not in (Phase.RUN, Phase.LOAD)

    def _asks_for_what_is_made(self) -> bool:
        """Whether eager failed outside of what the program compiles, while it looked at something that only the compiler makes."""
        return bool(self.eager.unmade) and not self.eager.raised and self.reached and not self._same_failure()

    def _asserts_what_is_wrong(self) -> bool:
        """Whether the program ends well because compiled numbers are wrong, which it checks for: correct ones do not pass that check."""
        return self.judged and self.compiled.outcome.status == "ok" and bool(self.compiled.wrong)

    def _only_made(self, last: str) -> Ended:
        said = f"without the compiler the program fails outside of the code to be compiled{self._ended()}: {last}"
        why = "it looks at what only the compiler makes, or supplies its own backend, so there is no eager run to compare with"
        return Ended("error", "not_understood", f"{said}; {why}")

    def _ended(self) -> str:
        eager = self.eager
        return {"raised": "", "infra": "", "exit": f" (exit status {eager.exit})"}.get(eager.status, f" ({eager.signal or eager.status})")

    def _same_failure(self) -> bool:
        """Whether our hooks saw the compiler and eager ends in the same error: then the compiler was not taken out of it."""
        return self.reached and last_line(self.eager) == last_line(self.compiled.outcome)

    def _endless(self, last: str) -> Ended:
        compiled, eager = self.compiled.outcome, self.eager
        # one that was cut off was not asked how long it takes
        how = "was not at its end when it was cut off after" if eager.cut else "does not end within"
        said = f"without the compiler the program {how} {eager.seconds:.0f} s; its last line: {shortened(last, 200)}"
        longer = eager.seconds >= HANG_RATIO * compiled.seconds + START
        # if both timed out, a run that was cut off with the budget may have had less time than it needs
        if longer or (compiled.status == "timeout" and not eager.cut):
            return Ended("not_reproduced", "fails_in_eager", said)
        return Ended("error", "budget", f"{said}; a longer --budget gives it more time")

    def _unreached(self, compiles: Callable[[float], bool]) -> Ended:
        outcome = self.compiled.outcome
        skipped = _SKIPPED.fullmatch(last_line(self.eager))
        how = f"ends well{f' (pytest: {skipped[1]})' if skipped else ''} and" if outcome.status == "ok" else "fails, but"
        if self.reached or compiles(HANG_RATIO * max(outcome.seconds, self.eager.seconds) + START):
            ends = "ends well, but" if outcome.status == "ok" else "fails, and"
            where = "in a process that the program starts (then minimize what that process runs), or inside torch"
            return Ended("error", "not_understood", f"the program {ends} the compiler runs only where it cannot be taken out: {where}")
        return Ended(
            "not_reproduced", "compiler_never_reached", f"the program {how} never reaches torch.compile, torch.export or AOTInductor"
        )


def with_hint(end: Ended, options: Options, lookups: Lookups) -> Ended:
    """The refusal `end` of a program with these `options`, with what its user may have overlooked: that there is no GPU, according to
    `lookups`, if the program names one and may have ended well for that reason (many take the CPU then, or skip their test); or that a
    script does not run the tests that it defines."""
    script = options.target.script if options.taken is None else None
    if end.code == "compiler_never_reached" and script is not None and only_defines_tests(options.target.text):
        command = shlex.quote(f"pytest {shlex.quote(str(script))}")
        return Ended(end.status, end.code, f"{end.reason}; it only defines tests: --command {command} runs them")
    takes_what_there_is = end.code in ("passes", "compiler_never_reached") and options.device != "cpu" and options.target.names_a_gpu
    why = lookups.gpu_missing() if takes_what_there_is else None
    return Ended(end.status, end.code, f"{end.reason}; it names CUDA, but {why}; {gpu.NO_NEED}") if why else end


def _is_ours(outcome: Outcome) -> bool:
    """Whether the error that ended a control began in the stand-ins for the compiler."""
    chain = exceptions(plain(outcome.text))
    frames = chain[0].frames if chain else ()
    return bool(frames) and frames[-1].path.endswith(_STAND_INS)
