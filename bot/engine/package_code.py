"""Exported programs and packages: compiled first, packaged if that passes; then the compiled code of a package, compared with its program.

Code that was compiled elsewhere can't be reduced: only how it ended here is reported.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from bot.engine.evidence import verify
from bot.engine.options import Ended, Options
from bot.engine.state import Reproduction
from bot.engine.target import Launch
from bot.failure.machine_faults import fault_of
from bot.failure.outcome import Outcome
from bot.failure.signature import signature_of
from bot.models.failure import Kind
from bot.oracle.budget import Budget
from bot.sandbox.files import Scratch
from bot.sandbox.sandbox import Sandbox

# Seconds for loading and running it.
_LIMIT = 180.0
_INSTEAD = (
    "compiled code alone can't be reduced: attach the script that made the package, its settings, and the output of"
    " `python -m torch.utils.collect_env` there"
)


def first_that_fails(
    options: Options, run: Callable[[Options], Reproduction], box: Sandbox | None, budget: Budget
) -> tuple[Options, Reproduction]:
    """What `run` makes of the first program in the `options` that does not pass, and the options with that as their target; see
    `beside_its_program`, which gets the sandbox `box` and the `budget`. Raises Ended if all of them pass, or if nothing can be said of one.
    """
    try:
        return options, run(options)
    except Ended as end:
        if end.code != "passes" or not options.then or options.target.script is None:
            raise beside_its_program(end, options, box, budget) from None
    script = options.target.script.with_name(f"{options.target.script.stem}_then.py")
    script.write_text(options.then, encoding="utf-8")
    script.chmod(0o644)  # the program may run under another account, whatever our umask is
    options = replace(options, target=replace(options.target, script=script), then="")
    return first_that_fails(options, run, box, budget)


def beside_its_program(end: Ended, options: Options, box: Sandbox | None, budget: Budget) -> Ended:
    """The `end` of a job with the `options`, whose program passes, with what its package showed in the sandbox `box`; any other end
    unchanged. Nothing is run once the `budget` is spent."""
    if end.code != "passes" or not options.otherwise or budget.is_spent:
        return end
    with Scratch(prefix="torch-minify-package-", dir=box.scratch if box else None) as place:
        os.chmod(place, 0o755)
        script = Path(place, "package.py")
        script.write_text(options.otherwise, encoding="utf-8")
        launch = Launch(options.python, Path(place), os.environ, (), box)
        outcome = verify.run_fresh(launch, script, timeout=_LIMIT, budget=budget)
    said = _said(outcome, script.name)
    return Ended(end.status, end.code, f"{end.reason}; {said}") if said else end


def _said(outcome: Outcome, script: str) -> str:
    """What came of it, for people; empty if it tells nothing."""
    if outcome.status == "ok":
        return "the compiled code in the package gives what the program gives"
    if outcome.cut or outcome.status in ("infra", "memory") or fault_of(outcome):
        return ""
    found = signature_of(outcome, script=script)
    if outcome.status == "timeout" or found is None:
        return f"the compiled code in the package did not end well here ({outcome.status}); {_INSTEAD}"
    if found.kind is Kind.ACCURACY:
        return f"but the compiled code in the package gives other numbers than the program, by torch.testing.assert_close; {_INSTEAD}"
    return f"but the compiled code in the package fails ({found.line()}); {_INSTEAD}"
