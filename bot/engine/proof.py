"""The last part of the job: fresh processes, with nothing of ours in them, decide what is posted."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from bot.engine.evidence import verify
from bot.machine import doctor
from bot.models.failure import Signature
from bot.models.result import Elsewhere, Rule, VerificationFacts
from bot.workers.process import Interrupted

# A script that did not fail alike every time is run this often before its rate is said.
FLAKY_RUNS = 10


@dataclass(frozen=True)
class Prover:
    """Runs scripts alone and compares them with the original failure. `limit` in seconds, for one run."""

    python: str
    failure: Signature
    limit: float
    rule: Rule
    scratch: Path
    wanted: Callable[[], bool]
    say: Callable[[str], None]

    def confirms(self, text: str, cache: Path) -> bool:
        """Whether one fresh run fails in the same way and its eager control passes; `cache` is the run's compile directory."""
        try:
            return self._verified(text, 1, cache).proven
        except Interrupted:
            return False

    def proof(self, text: str, runs: int) -> VerificationFacts:
        """This many fresh runs and the eager control. Some that fail and some that do not: more runs, for the rate."""
        facts = self._proof(text, runs)
        if 0 < facts.same < facts.runs < FLAKY_RUNS:
            more = self._proof(text, FLAKY_RUNS - facts.runs)
            return facts.model_copy(update={"runs": facts.runs + more.runs, "same": facts.same + more.same})
        return facts

    def _proof(self, text: str, runs: int) -> VerificationFacts:
        found = self._verified(text, runs, None)
        for line in found.differences:
            self.say(line)
        return VerificationFacts(runs=found.runs, same=found.same, eager=found.eager, rule=self.rule)

    def _verified(self, text: str, runs: int, cache: Path | None) -> verify.Verification:
        path = self._file(text)
        return verify.verify(
            self.python,
            path,
            self.failure,
            runs,
            timeout=self.limit,
            cwd=path.parent,
            env=os.environ,
            wanted=self.wanted,
            rule=self.rule,
            cache_dir=cache,
        )

    def elsewhere(self, text: str, python: str) -> Elsewhere:
        """What the script does under another interpreter: one fresh run and its control. Messages and phases may differ there."""
        facts = doctor.facts_of(python)
        versions = {name: str(facts[name]) for name in ("python", "torch", "triton", "cuda") if facts.get(name)}
        if "torch" not in versions:
            return Elsewhere(python=python, versions=versions, same=False, said=f"could not be run: {facts.get('error')}")
        path = self._file(text)
        found = verify.verify(
            python, path, self.failure, 1, timeout=self.limit, cwd=path.parent, env=os.environ, wanted=self.wanted, rule=self.rule
        )
        passes = found.signatures == (None,) and found.eager == "passes"
        return Elsewhere(
            python=python, versions=versions, same=found.proven, said="passes" if passes else "; ".join(found.differences) or None
        )

    def latest(self, texts: Sequence[str], cache: Path) -> int | None:
        """Index of the latest accepted script that a fresh process confirms, by halving: slips come late. None: not even the first."""
        if not texts or not self.confirms(texts[0], cache):
            return None
        low, high = 0, len(texts) - 1
        while low < high:
            middle = (low + high + 1) // 2
            if self.confirms(texts[middle], cache):
                low = middle
            else:
                high = middle - 1
        return low

    def _file(self, text: str) -> Path:
        path = Path(tempfile.mkdtemp(dir=self.scratch)) / "repro.py"
        path.write_text(text, encoding="utf-8")
        return path
