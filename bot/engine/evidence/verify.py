"""The proof: a script run alone, in fresh processes, as a stranger would run it.

Nothing of this package is in those processes (the eager control loads one file of it, by path), no cache is shared, and
the verdict rests on what the operating system and the process's own output say.
"""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path

from pydantic import Field

from bot.failure.machine_faults import may_pass
from bot.failure.outcome import Outcome
from bot.failure.signature import signature_of
from bot.failure.traceback import failed_later_than
from bot.inside.protocol import ControlOption, command, read_reached
from bot.inside.variables import without_settings
from bot.models.failure import Kind, Model, Signature
from bot.models.result import EagerControl, Rule
from bot.workers import environment, isa_probes
from bot.workers.process import HANG_RATIO, Wanted, run_process

AT_ONCE = 2  # fresh processes at a time
# Seconds that starting Python and importing torch may add to a run.
START = 15.0
PLAIN = Rule()


class Verification(Model):
    """What the fresh runs of a script showed against the signature it should have."""

    runs: int
    same: int
    eager: EagerControl
    signatures: tuple[Signature | None, ...] = Field(default=(), description="of each run; null where it did not fail")
    differences: tuple[str, ...] = Field(default=(), description="one line for each run that was not the same, and for a failed control")
    seconds: float = 0.0

    @property
    def proven(self) -> bool:
        """Whether every run failed the same way and the eager control passed."""
        return self.runs > 0 and self.same == self.runs and self.eager == "passes"


def run_fresh(
    python: str,
    script: Path,
    *,
    timeout: float,
    cache_dir: Path | None = None,
    cwd: Path,
    env: Mapping[str, str],
    argv: Sequence[str] = (),
    wrap: Sequence[str] = (),
    wanted: Wanted = None,
) -> Outcome:
    """Run `python script argv...` alone.

    `timeout` in seconds; then the process is asked for its stack (SIGABRT, which faulthandler answers) and its whole group
    is killed. `cache_dir` is Inductor's; without one a temporary one is made and removed. `env` is the whole environment,
    to which only what the proof needs is added. `wrap` goes before the command (a sandbox).
    """
    return _run([*wrap, python, str(script), *argv], timeout=timeout, cache_dir=cache_dir, cwd=cwd, env=env, wanted=wanted)


def run_control_fresh(
    python: str,
    script: Path | str,
    *,
    timeout: float,
    cwd: Path,
    env: Mapping[str, str],
    option: ControlOption | None = None,
    argv: Sequence[str] = (),
    wrap: Sequence[str] = (),
    wanted: Wanted = None,
) -> Outcome:
    """Run the script (`-m`: the module that `argv` names) with the compiler taken out, see `inside/compiler_out.py`.

    `calls` of the Outcome says how often the compiler was called all the same, 0 where it never came to that. With `--fp64` the compiled
    parts are evaluated in float64; with `--repeats` no two pieces of uninitialized memory hold the same.
    """
    words = [*wrap, *command(python, "control", *([option] if option else []), str(script), *argv)]
    outcome = _run(words, timeout=timeout, cache_dir=None, cwd=cwd, env=env, wanted=wanted)
    # each of its processes says what it saw: a script may leave its work to forked ones
    reached, text = read_reached(outcome.text)
    return outcome.model_copy(update={**reached._asdict(), "text": text})


def may_read_uninitialized(script: Path) -> bool:
    """Whether a script names an operation that gives uninitialized memory; one that does not needs no control with `--repeats`."""
    return "empty" in script.read_text(encoding="utf-8", errors="replace")


def verify(
    python: str,
    script: Path,
    reference: Signature,
    runs: int,
    *,
    timeout: float,
    cwd: Path,
    env: Mapping[str, str],
    argv: Sequence[str] = (),
    wrap: Sequence[str] = (),
    rule: Rule = PLAIN,
    cache_dir: Path | None = None,
    wanted: Wanted = None,
) -> Verification:
    """Run the script `runs` times and its eager control once, and compare with `reference` across forms.

    A hang is a run still going `rule.hang_after` seconds after it had time to start, while the control is done in a tenth of that; for
    any other reference a time-out is a difference. For accuracy the control is run in float64 as well: eager has to be right under the
    script's own tolerance; where float64 cannot be had, plain eager decides alone; and eager has to agree with itself whatever
    uninitialized memory holds. Settings of the compiler in `env` are left out: a repro carries its own. `rule.precise` is false for a
    program that did not meet this from the start: its user chose the tolerance, and a smaller program cannot be asked for more.
    `cache_dir` is the first run's compile directory; without one it starts cold.
    """
    started = time.monotonic()
    env = without_settings(env)
    hangs = reference.kind is Kind.HANG
    # as capture: what a slow machine has not begun with after that time would be looked for in another phase
    limit = rule.hang_after + START if hangs else timeout
    differences: list[str] = []

    python = os.path.abspath(python) if os.path.dirname(python) else python
    with (
        tempfile.TemporaryDirectory(prefix="torch-minify-proof-", ignore_cleanup_errors=True) as place,
        ThreadPoolExecutor(max_workers=AT_ONCE) as executor,
    ):
        compiled = cache_dir or Path(place, "compiled")
        compiled.mkdir(exist_ok=True)
        isa_probes.seed(compiled)

        def once(number: int) -> Outcome:
            # each in a directory and with a compile directory of its own: what one writes, another would read
            own = Path(place, str(number))
            cache = own / "compiled" if number else compiled
            own.mkdir()
            if number and not hangs:  # which may have been stopped in the middle of writing
                with suppress(OSError):  # what is missing is made anew
                    shutil.copytree(compiled, cache)
            cache.mkdir(exist_ok=True)
            copy = own / script.name
            shutil.copyfile(script, copy)
            try:
                return _unbroken(
                    lambda: run_fresh(python, copy, timeout=limit, cache_dir=cache, cwd=own, env=env, argv=argv, wrap=wrap, wanted=wanted)
                )
            finally:
                shutil.rmtree(own, ignore_errors=True)

        control = executor.submit(
            _eager,
            python,
            script,
            numbers=reference.kind is Kind.ACCURACY,
            precise=rule.precise,
            timeout=rule.hang_after / HANG_RATIO + START if hangs else limit,
            cwd=cwd,
            env=env,
            argv=argv,
            wrap=wrap,
            wanted=wanted,
        )
        # The first run starts cold (but for the probes of vector instructions) and fills its compile directory for the rest, who get
        # copies; the graph caches are off, so no run sees another's result.
        first = executor.submit(once, 0).result()
        outcomes = [first, *(future.result() for future in [executor.submit(once, number) for number in range(1, runs)])]
        signatures = [signature_of(outcome, script=script.name) for outcome in outcomes]
        eager, why = _judged(control.result(), first, script, rule, must_raise=reference.kind is Kind.NO_RAISE)
    for number, signature in enumerate(signatures):
        said = difference(reference, signature)
        if said:
            differences.append(f"run {number + 1}: {said}")
    if why:
        differences.append(f"eager control: {why}")
    same = sum(signature is not None and reference.same_across_forms(signature) for signature in signatures)
    return Verification(
        runs=runs,
        same=same,
        eager=eager,
        signatures=tuple(signatures),
        differences=tuple(differences),
        seconds=round(time.monotonic() - started, 3),
    )


def _unbroken(run: Callable[[], Outcome]) -> Outcome:
    """What a run ends with; one that the machine broke (killed for its memory, a full disk) is made once more."""
    outcome = run()
    return run() if may_pass(outcome) else outcome


def _eager(
    python: str,
    script: Path,
    *,
    numbers: bool,
    precise: bool,
    timeout: float,
    cwd: Path,
    env: Mapping[str, str],
    argv: Sequence[str],
    wrap: Sequence[str],
    wanted: Wanted,
) -> tuple[Outcome, str]:
    """The eager control, and how its `numbers` are wrong as well (empty: they are not)."""

    def run(option: ControlOption | None) -> Outcome:
        return _unbroken(
            lambda: run_control_fresh(python, script, timeout=timeout, cwd=cwd, env=env, option=option, argv=argv, wrap=wrap, wanted=wanted)
        )

    def wrong(option: ControlOption) -> Signature | None:
        signature = signature_of(run(option), script=script.name)
        return signature if signature is not None and signature.kind is Kind.ACCURACY else None

    control = run(None)
    if not numbers or control.status != "ok" or not control.calls:
        return control, ""
    if precise and (signature := wrong("--fp64")):
        return control, f"eager is wrong as well, against float64: {signature.line()}"
    if may_read_uninitialized(script) and (signature := wrong("--repeats")):
        return control, f"eager differs from itself as well, it reads uninitialized memory: {signature.line()}"
    return control, ""


def _judged(control: tuple[Outcome, str], failed: Outcome, script: Path, rule: Rule, *, must_raise: bool) -> tuple[EagerControl, str]:
    """The eager control's result and, if it does not pass, why."""
    outcome, wrong = control
    behind = rule.partial and outcome.status == "raised" and failed_later_than(outcome.text, failed.text, script.name)
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
    """What sets a failure apart from the one it should be, in one line; empty if it is the same across forms."""
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


@contextmanager
def _cache(given: Path | None) -> Iterator[Path]:
    if given is not None:
        yield given
        return
    made = Path(tempfile.mkdtemp(prefix="torch-minify-cache-"))
    try:
        yield made
    finally:
        shutil.rmtree(made, ignore_errors=True)


def _run(command: Sequence[str], *, timeout: float, cache_dir: Path | None, cwd: Path, env: Mapping[str, str], wanted: Wanted) -> Outcome:
    with _cache(cache_dir) as cache:
        return run_process(command, timeout=timeout, cwd=cwd, env=environment.of_proof(env, cache), wanted=wanted)
