"""The proof: a script run alone, in fresh processes, as a stranger would run it.

Nothing of this package is in those processes (the eager control loads one file of it, by path), no cache is shared, and
the verdict rests on what the operating system and the process's own output say.
"""

from __future__ import annotations

import math
import os
import resource
import shutil
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from pydantic import Field

from bot.engine.target import Launch
from bot.failure.device_errors import is_out_of_memory
from bot.failure.machine_faults import KILLED, fault_of, is_refusal, may_differ, may_pass, refused
from bot.failure.outcome import Outcome
from bot.failure.signature import ended_behind, signature_of
from bot.inside.protocol import ControlOption, command, read_reached
from bot.inside.traits import traits_of
from bot.inside.variables import without_settings
from bot.machine import capacity
from bot.models.failure import Kind, Model, Signature
from bot.models.result import EagerControl, Rule
from bot.oracle.budget import Budget
from bot.oracle.judge import cannot_be_float64
from bot.sandbox.files import Scratch, copy_plain_tree, remove
from bot.workers import environment, toolchain
from bot.workers.process import HANG_RATIO, START, Interrupted, Patience, run_process

# Bytes of memory that each fresh process is expected to take at least.
LEAST_ROOM = 2 << 30
# The most candidates that are tried at a time, on each GPU if there are several. More are seldom of use, and each holds GPU memory.
MOST_CANDIDATES = 6
# A run that does not end within its limit gets this many times as long, unless the failure is a hang.
_LONGER = 3.0


class NotRun(Exception):
    """A fresh process could not be started, the sandbox ended it, or the machine broke it, as its `outcome` says. Nothing is known about
    the script."""

    def __init__(self, outcome: Outcome) -> None:
        started = outcome.status != "infra"
        self.fault = fault_of(outcome) or refused(outcome) or (KILLED if started else "a process that cannot be run")
        super().__init__(f"{self.fault}, twice" if started else outcome.text.strip())


class Verification(Model):
    """How the fresh runs of a script compare with the signature that it should have."""

    runs: int
    same: int
    eager: EagerControl
    signatures: tuple[Signature | None, ...] = Field(default=(), description="one for each run; None if it did not fail")
    differences: tuple[str, ...] = Field(default=(), description="one line for each run that failed differently, and for a failed control")
    instead_of_float64: str | None = Field(default=None, description="accuracy: why eager, moved by its rounding, stood in for float64")
    fault: str | None = Field(default=None, description="what is wrong with the machine, according to one of the runs")

    @property
    def proven(self) -> bool:
        """Whether every run failed the same way and the eager control passed."""
        return self.runs > 0 and self.same == self.runs and self.eager == "passes"


@dataclass(frozen=True)
class Expected:
    """What fresh runs are compared with: the `signature`, under the `rule`. Each run ends after `limit` seconds."""

    signature: Signature
    rule: Rule
    limit: float

    @property
    def hangs(self) -> bool:
        """Whether the failure is a hang."""
        return self.signature.kind is Kind.HANG


def at_once(signature: Signature) -> int:
    """How many fresh processes run at a time for a failure with this `signature`: one for a failure of time or memory, else as many as
    there are processors and memory for."""
    if signature.kind is Kind.HANG or signature.signal in ("MEMORY", "SIGKILL") or is_out_of_memory(signature):
        return 1
    free, largest = capacity.free_memory(), resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss << 10
    room = free // max(LEAST_ROOM, largest) if free is not None else 2
    return max(1, min(capacity.processors(), room))


def candidates_at_once(signature: Signature) -> int:
    """How many candidates a search may try at a time, for a failure with this `signature`, without slowing any of them down: each takes a
    processor, and while it is answered, the process for another one is made."""
    return max(1, min(at_once(signature) // 2, MOST_CANDIDATES * max(1, capacity.gpus())))


def run_fresh(
    launch: Launch,
    script: Path | str,
    *,
    timeout: float,
    cache_dir: Path | None = None,
    budget: Budget | None = None,
) -> Outcome:
    """Run `script` alone, as `launch` says; `script` may be `-m`, as in `run_control_fresh`.

    After `timeout` seconds of its own time, the process is asked for its stack (SIGABRT, which faulthandler answers) and its whole group is
    killed; at the end of the `budget` it is cut off. `cache_dir` is Inductor's. Without one, a temporary one is made and removed, which is
    cold except for what `toolchain` keeps. Compiled graphs that were kept there are removed before and after. Only what the proof needs is
    added to the environment. Raises Interrupted if `budget` was cancelled.
    """
    return _run([launch.python, str(script), *launch.argv], launch, timeout, cache_dir, budget)


def run_control_fresh(
    launch: Launch, script: Path | str, *, timeout: float, option: ControlOption | None = None, budget: Budget | None = None
) -> Outcome:
    """Run `script` as `run_fresh` does, but with the compiler taken out; see `bot/inside/eager/compiler_out.py`.

    If `script` is `-m`, the module that the first argument of `launch` names is run. `calls` of the Outcome counts the calls of the
    compiler that were replaced, 0 if the script never got there. With the `option` `--fp64`, the compiled parts are evaluated in float64;
    with `--repeats`, what torch leaves undefined differs each time (see `uninitialized`). The run ends after `timeout` seconds, or when
    `budget` is cancelled.
    """
    words = command(launch.python, "control", *([option] if option else []), str(script), *launch.argv)
    outcome = _run(words, launch, timeout, None, budget)
    # each of its processes reports what it saw: a script may do its work in forked ones
    reached, text = read_reached(outcome.text)
    return outcome.model_copy(update={**reached._asdict(), "text": text})


def left_open(script: Path) -> str:
    """What the `script` may use that torch leaves undefined, in words; empty if it needs no control with `--repeats`."""
    traits = traits_of(script.read_text(encoding="utf-8", errors="replace"))
    said = (
        (traits.uninitialized, "uninitialized memory"),
        (traits.converts, "numbers that their type cannot hold"),
        (traits.overwrites, "places that are written twice in any order"),
    )
    return " or ".join(words for asks, words in said if asks)


def verify(
    launch: Launch,
    script: Path,
    expected: Expected,
    runs: int,
    *,
    cache_dir: Path | None = None,
    budget: Budget | None = None,
    before: int = 0,
) -> Verification:
    """Run the script in fresh processes, and its eager control once, and compare with the expected failure across forms.

    A hang is a run that is still going `rule.hang_after` seconds after it had time to start, while the control ends in a tenth of that. For
    any other failure, a run that does not end within three times its limit, the second time, is a difference. For accuracy, correct numbers
    have to pass the script's own comparison in place of the compiled ones: float64, as `rule.numbers` says, or, if that is not possible,
    eager with each result moved by a unit in its last place. And eager has to agree with itself, whatever torch leaves undefined.

    Args:
        launch: How to start it. Compiler settings in its environment are left out: a repro carries its own.
        script: The repro.
        expected: The failure, and the rule by which it counts as the same.
        runs: How many times the script is run.
        cache_dir: The first run's compile directory; without one it starts cold.
        budget: Ends the runs when it is cancelled.
        before: How many runs came before these, which are numbered from there on.

    Raises:
        Interrupted: `budget` was cancelled, or was over before the runs were.
        NotRun: one of the processes could not be run.
    """
    python = os.path.abspath(launch.python) if os.path.dirname(launch.python) else launch.python
    launch = replace(launch, python=python, env=without_settings(launch.env))
    rule = expected.rule
    # includes the time to start, as in the capture: on a slow machine the run would otherwise seem to hang in an earlier phase
    limit = rule.hang_after + START if expected.hangs else expected.limit
    width = at_once(expected.signature)
    together = width > runs  # all runs and the control
    with (
        Scratch(prefix="torch-minify-proof-", dir=_scratch(launch)) as place,
        ThreadPoolExecutor(max_workers=width) as executor,
    ):
        os.chmod(place, 0o711)  # its content may belong to other accounts
        compiled = cache_dir or Path(place, "compiled")

        def attempt(number: int, seconds: float) -> Outcome:
            # in its own directory and with its own compile directory: otherwise another run, or a repeated one, would read what this one
            # writes
            own = Path(place, str(number))
            cache = own / "compiled" if number else compiled
            own.mkdir()
            if cache_dir is None:
                remove(cache)
            if number and not together and not expected.hangs:  # a run that hangs may have been stopped while writing
                with suppress(OSError):  # what is missing is compiled again
                    copy_plain_tree(compiled, cache)
            cache.mkdir(exist_ok=True)
            if not any(cache.iterdir()):
                toolchain.seed(cache)
            copy = own / script.name
            shutil.copyfile(script, copy)
            try:
                there = replace(launch, cwd=own, write=(own,), linked=False)
                return run_fresh(there, copy, timeout=seconds, cache_dir=cache, budget=budget)
            finally:
                remove(own)

        def once(number: int) -> Outcome:
            return _unbroken(lambda seconds: attempt(number, seconds), limit, expected)

        control = executor.submit(_eager, launch, script, expected, budget)
        # If there is not room for all, the first run starts cold (except for what `toolchain` keeps) and fills its compile directory for
        # the others, which get copies. The graph caches are empty in each, so no run sees another's result.
        first = executor.submit(once, 0)
        if not together:
            wait([first])
        outcomes = [future.result() for future in [first, *(executor.submit(once, number) for number in range(1, runs))]]
        ended = control.result()
        eager, why = _judged(ended, outcomes[0], script, expected)
    signatures = [signature_of(outcome, script=script.name) for outcome in outcomes]
    differences = [
        f"run {number}: {said}"
        for number, signature in enumerate(signatures, before + 1)
        if (said := difference(expected.signature, signature))
    ]
    return Verification(
        runs=runs,
        same=sum(signature is not None and expected.signature.same_across_forms(signature) for signature in signatures),
        eager=eager,
        signatures=tuple(signatures),
        differences=(*differences, f"eager control: {why}") if why else tuple(differences),
        instead_of_float64=ended.instead_of_float64 or None,
        fault=next(filter(None, map(fault_of, outcomes)), None),
    )


def _remove_graphs(cache: Path) -> None:
    """Remove the compiled graphs that torch keeps in a compile directory: its graph caches are on, as for anybody who runs a script."""
    for name in ("fxgraph", "aotautograd"):
        shutil.rmtree(cache / name, ignore_errors=True)


def _unbroken(run: Callable[[float], Outcome], limit: float, expected: Expected, *, may_be_refused: bool = False) -> Outcome:
    """The outcome of a run that may take `limit` seconds. A run that the machine broke (killed for its memory or refused any, a full disk)
    is repeated once. So is one that did not end, with more time, unless a hang is `expected`: nobody measures how long it waits for a GPU's
    driver. That memory is refused is an answer if it is the failure that is expected, or if it `may_be_refused`.

    Raises:
        Interrupted: the run was cut off, so it says nothing.
        NotRun: it could not be made, or the machine broke it the second time as well.
    """
    broken = may_pass if may_be_refused or is_refusal(expected.signature) else may_differ
    outcome = run(limit)
    outcome = run(limit) if broken(outcome) else outcome
    if outcome.status == "timeout" and not (outcome.cut or expected.hangs):
        outcome = run(_LONGER * limit)
    if outcome.cut:
        raise Interrupted
    # if the failure is to be killed, that is an answer
    if outcome.status == "infra" or (broken(outcome) and expected.signature.signal != "SIGKILL"):
        raise NotRun(outcome)
    return outcome


@dataclass(frozen=True)
class _Control:
    """How a script ended in eager, how its numbers are `wrong` as well (empty if they are not, or if it is not about numbers), and why
    eager itself stood in for float64 (empty if it did not)."""

    outcome: Outcome
    wrong: str = ""
    instead_of_float64: str = ""


def _eager(launch: Launch, script: Path, expected: Expected, budget: Budget | None) -> _Control:
    timeout = expected.rule.hang_after / HANG_RATIO + START if expected.hangs else expected.limit

    def run(option: ControlOption | None) -> Outcome:
        def once(seconds: float) -> Outcome:
            return run_control_fresh(launch, script, timeout=seconds, option=option, budget=budget)

        # in float64 a program takes more memory than it does itself
        return _unbroken(once, timeout, expected, may_be_refused=option in ("--fp64", "--spread"))

    def said(outcome: Outcome) -> str:
        signature = signature_of(outcome, script=script.name)
        return signature.line() if signature is not None else outcome.status

    control = run(None)
    about_numbers = expected.signature.kind is Kind.ACCURACY or expected.rule.own_verdict
    if not about_numbers or control.status != "ok" or not control.calls:
        return _Control(control)
    if expected.rule.numbers == "eager":
        right, instead = control, ""
    else:
        right = run("--spread" if expected.rule.numbers == "spread" else "--fp64")
        instead = cannot_be_float64(right)
    if instead:
        right = run("--moved")
    if right.status != "ok":
        against = "moved by its own rounding" if instead else "against float64"
        return _Control(control, f"eager is wrong as well, {against}: {said(right)}", instead)
    if undefined := left_open(script):
        repeats = signature_of(run("--repeats"), script=script.name)
        if repeats is not None and repeats.kind is Kind.ACCURACY:
            wrong = f"eager differs from itself as well, by {undefined}: {repeats.line()}"
            return _Control(control, wrong, instead)
    return _Control(control, "", instead)


def _judged(control: _Control, failed: Outcome, script: Path, expected: Expected) -> tuple[EagerControl, str]:
    """The eager control's result and, if it does not pass, the reason."""
    outcome, wrong = control.outcome, control.wrong
    rule = expected.rule
    must_raise = expected.signature.kind is Kind.NO_RAISE or bool(rule.error)
    behind = rule.partial and ended_behind(outcome, failed.text, script.name)
    if outcome.status != "ok" and not behind:
        signature = signature_of(outcome, script=script.name)
        return "fails", signature.line() if signature is not None else outcome.status
    if not outcome.calls:
        return "fails", "the script calls no compiler"
    if must_raise and not outcome.raised:
        return "fails", "nothing that the script compiles raises in eager"
    if must_raise and rule.error not in ("", outcome.error):
        return "fails", f"eager raises another error: {outcome.error}"
    return ("fails", wrong) if wrong else ("passes", "")


def difference(reference: Signature, found: Signature | None) -> str:
    """How the failure `found` differs from the `reference`, in one line; empty if they are the same across forms."""
    if found is None:
        return "did not fail"
    if reference.same_across_forms(found):
        return ""
    parts = []
    if reference.kind is not found.kind:
        parts.append(f"kind {found.kind.value}, not {reference.kind.value}")
    if reference.phase is not found.phase:
        parts.append(f"phase {found.phase.value}, not {reference.phase.value}")
    for what, ours, theirs in (
        ("class", reference.exception[-1:], found.exception[-1:]),
        ("signal", reference.signal, found.signal),
        ("message", reference.message, found.message),
    ):
        if ours != theirs:
            parts.append(f"{what} {_said(theirs)}, not {_said(ours)}")
    return "; ".join(parts)


def _said(value: tuple[str, ...] | str | None) -> str:
    text = value[0] if isinstance(value, tuple) and value else value
    return repr(text[:160]) if isinstance(text, str) else "none"


def _run(words: Sequence[str], launch: Launch, timeout: float, cache_dir: Path | None, budget: Budget | None) -> Outcome:
    with Scratch(prefix="torch-minify-cache-", dir=_scratch(launch)) as made:
        cache = cache_dir or Path(made)
        _remove_graphs(cache)
        if cache_dir is None:
            toolchain.seed(cache)
        try:
            return run_process(
                words,
                Patience(timeout, budget.remaining() if budget else math.inf),
                cwd=launch.cwd,
                env=environment.of_proof(launch.env, cache, graph_caches=True),
                wanted=budget.should_continue if budget else None,
                box=launch.box,
                write=(cache, *launch.write),
                linked=launch.linked,
            )
        finally:
            _remove_graphs(cache)


def _scratch(launch: Launch) -> Path | None:
    """Where a run's directories are made; None for the system's default."""
    return launch.box.scratch if launch.box else None
