"""The last part of the job: fresh processes, with nothing of ours in them, decide what is posted."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from bot.engine.evidence import verify
from bot.engine.options import Ended
from bot.engine.state import Proof, SearchResult
from bot.engine.target import Launch
from bot.failure.signature import signature_of
from bot.machine import interpreter
from bot.models.failure import Signature
from bot.models.result import Elsewhere, Rule, VerificationFacts
from bot.oracle.budget import Budget
from bot.sandbox.aside import ask
from bot.sandbox.sandbox import Sandbox
from bot.workers.process import Interrupted

# A script that did not fail alike every time is run this often before its rate is reported.
FLAKY_RUNS = 10


@dataclass(frozen=True)
class Prover:
    """Runs scripts alone and compares them with the original `failure`. `limit` is in seconds, for one run.

    Scripts are written below the directory `scratch`. Confirmations compile in the directory `cache`; a proof starts cold.
    They run in the sandbox `box`, if any.
    """

    python: str
    failure: Signature
    limit: float
    scratch: Path
    cache: Path
    budget: Budget
    box: Sandbox | None = None

    def confirms(self, step: SearchResult, runs: int = 1) -> bool:
        """Whether `runs` fresh runs of the `step` fail in the same way and its eager control passes."""
        try:
            return self._verified(self.python, step.final(), step.rule, runs, self.cache).proven
        except (Interrupted, verify.NotRun):
            return False

    def proof(self, result: SearchResult, runs: int) -> Proof:
        """Make `runs` fresh runs of the `result`, and the eager control. If only some fail, make more runs, for the rate. Raises Ended if
        one of them could not be made."""
        text = result.final()
        try:
            found = self._verified(self.python, text, result.rule, runs)
            same, eager, differences = found.same, found.eager, found.differences
            if 0 < same < runs < FLAKY_RUNS:
                more = self._verified(self.python, text, result.rule, FLAKY_RUNS - runs, before=runs)
                # a control that fails only sometimes fails; what it showed comes last, as the reason
                before, last = (more, found) if eager == "fails" else (found, more)
                runs, same, eager, differences = FLAKY_RUNS, same + more.same, last.eager, before.differences + last.differences
        except verify.NotRun as error:
            raise Ended("error", "machine_fault", f"the repro could not be run: {error}", machine_fault=error.fault) from error
        facts = VerificationFacts(runs=runs, same=same, eager=eager, instead_of_float64=found.instead_of_float64, rule=result.rule)
        shown = next((one for one in found.signatures if one is not None and self.failure.same_across_forms(one)), None)
        first, *others = found.signatures or (None,)
        steady = first is not None and not same and all(other is not None and first.same_across_forms(other) for other in others)
        return Proof(text, facts, differences, shown=shown, instead=first if steady else None)

    def elsewhere(self, text: str, rule: Rule, python: str) -> Elsewhere:
        """What the script `text` does under the interpreter `python`, compared under `rule`: one fresh run and its control.

        Messages and phases may differ there.
        """
        facts = interpreter.facts_of(python, min(interpreter.LIMIT, self.budget.remaining()), ask)
        versions = {name: str(facts[name]) for name in ("python", "torch", "triton", "cuda") if facts.get(name)}
        if "torch" not in versions:
            return Elsewhere(python=python, versions=versions, same=False, said=f"could not be run: {facts.get('error')}")
        try:
            found = self._verified(python, text, rule, 1)
        except verify.NotRun as error:
            return Elsewhere(python=python, versions=versions, same=False, said=f"could not be run: {error}")
        passes = found.signatures == (None,) and found.eager == "passes"
        said = "passes" if passes else "; ".join(found.differences) or None
        return Elsewhere(python=python, versions=versions, same=found.proven, said=said)

    def fails_alike(self, text: str, budget: Budget) -> bool:
        """Whether the script `text`, which has another form, shows the failure in a fresh run, which ends with the `budget`. Raises
        Interrupted if that was cancelled."""
        launch, script = self._launch(self.python, text)
        outcome = verify.run_fresh(launch, script, timeout=self.limit, budget=budget)
        shown = signature_of(outcome, script=script.name)
        return shown is not None and self.failure.same_across_forms(shown)

    def latest(self, steps: Sequence[SearchResult], runs: int = 1, goes_on: Callable[[], bool] = lambda: True) -> int | None:
        """Index of the last of the `steps` that fresh processes confirm, in `runs` runs each, by bisection: slips come late. None if not
        even the first is confirmed. Once it no longer `goes_on`, the last that was confirmed until then."""
        if not steps or not self.confirms(steps[0], runs):
            return None
        low, high = 0, len(steps) - 1
        while low < high and goes_on():
            middle = (low + high + 1) // 2
            if self.confirms(steps[middle], runs):
                low = middle
            else:
                high = middle - 1
        return low

    def steadier(self, steps: Sequence[SearchResult], found: Proof, runs: int) -> tuple[SearchResult, Proof] | None:
        """The last of the `steps` that fails alone more often than the final one, which `found` is the proof of, in `runs` runs each; and
        its proof. None if there is none, or no time left to find out: what was proven stays proven.

        Raises:
            Ended: one of them could not be run.
            Interrupted: there was no time, and nothing is proven.
        """
        index = self.latest(steps, runs if found.holds else 1)
        if index is None:
            return None
        try:
            proof = self.proof(steps[index], runs)
        except (Ended, Interrupted):
            if found.holds:
                return None
            raise
        return (steps[index], proof) if proof.rate > found.rate else None

    def _verified(
        self, python: str, text: str, rule: Rule, runs: int, cache: Path | None = None, *, before: int = 0
    ) -> verify.Verification:
        launch, script = self._launch(python, text)
        expected = verify.Expected(self.failure, rule, self.limit)
        return verify.verify(launch, script, expected, runs, cache_dir=cache, budget=self.budget, before=before)

    def _launch(self, python: str, text: str) -> tuple[Launch, Path]:
        script = Path(tempfile.mkdtemp(dir=self.scratch)) / "repro.py"
        script.write_text(text, encoding="utf-8")
        os.chmod(script.parent, 0o755)  # for the account that runs it
        return Launch(python, script.parent, os.environ, box=self.box), script
