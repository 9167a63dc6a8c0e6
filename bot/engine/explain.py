"""What is said in addition to a repro: what is to blame, what passes instead, the exported program. Nothing here can change the status."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

from bot.engine.capture.region import Region
from bot.engine.evidence import exported_program, kernel
from bot.engine.evidence.ablation import culprit, culprit_installed, culprit_of_script, suspects
from bot.engine.evidence.passing_edit import edit_between
from bot.engine.options import Options
from bot.engine.proof import Prover
from bot.engine.state import Explanation, SearchResult
from bot.engine.workspace import Workspace
from bot.models.result import ExportedProgram
from bot.oracle.budget import Budget
from bot.oracle.oracle import ScriptOracle
from bot.reduce.candidate import BudgetSpent
from bot.reduce.graph.printer.script import render
from bot.workers.pool import Pool
from bot.workers.process import Interrupted


@dataclass(frozen=True)
class Explainer:
    """Asks the `oracle` of a search, and its `pool`, what else can be said about the result. `limit` is in seconds, for one run; `regions`
    are those of the capture."""

    options: Options
    space: Workspace
    pool: Pool
    oracle: ScriptOracle
    prover: Prover
    regions: tuple[Region, ...]
    limit: float

    def of(self, search: SearchResult, text: str, budget: Budget) -> Explanation:
        """Explain a result whose repro is the script `text`, with whatever is found until the `budget` is spent or cancelled. The exported
        program waits in the work directory."""
        started = time.monotonic()
        said = Explanation()
        with ThreadPoolExecutor(1) as executor:  # the kernel spends most of its time in a fresh process
            try:
                oracle, options = self.oracle.within(budget), self.options
                of_kernel = self.prover.failure.phase in kernel.PHASES
                alone = executor.submit(self._kernel, text, oracle, budget) if of_kernel else None
                wanted = (python for python in options.also_python if budget.should_continue())
                said = replace(said, elsewhere=tuple(self.prover.elsewhere(text, search.rule, python) for python in wanted))
                said = replace(said, other_failures=tuple(signature.line() for signature in oracle.other_failures()))
                if search.neighbors is not None and oracle.passes(search.neighbors[1]):
                    said = replace(said, passes_if=edit_between(*search.neighbors))
                named = suspects(self.regions)
                if search.program is None:
                    said = replace(
                        said, culprit=culprit_of_script(search.text, named, oracle.ask) or culprit_installed(search.text, oracle.ask)
                    )
                else:
                    of_recipe = culprit(search.program, named, oracle.ask, render)
                    said = replace(said, culprit=of_recipe or culprit_installed(search.text, oracle.ask))
                    if options.cuda_arch is None:  # a program is saved with its values, and there are none
                        said = replace(said, exported=self._exported(text, oracle))
                if alone is not None:
                    said = replace(said, kernel=alone.result())
            except (BudgetSpent, Interrupted):
                pass  # what was found is reported
        return replace(said, seconds=time.monotonic() - started)

    def _exported(self, text: str, oracle: ScriptOracle) -> ExportedProgram | None:
        same = oracle.criterion.reference.same_across_forms
        with self.pool.directory() as place:
            path = Path(place, self.space.exported.name)
            exported = exported_program.write(text, path, oracle.answer, self.limit, same, oracle.observe)
            self.space.bring_exported(path.parent)
        return exported

    def _kernel(self, text: str, oracle: ScriptOracle, budget: Budget) -> str | None:
        with self.pool.directory() as place:
            path = Path(place, "generated.py")
            return kernel.find(text, path, oracle.answer, self.limit, lambda script: self.prover.fails_alike(script, budget))
