"""The minimal module as an exported program, and whether it still shows the failure after it is loaded again."""

from __future__ import annotations

import ast
from collections.abc import Callable
from pathlib import Path

from bot.failure.outcome import Outcome
from bot.inside.protocol import Facts, Question
from bot.models.failure import Signature, shortened
from bot.models.result import ExportedProgram


def loading(script: str, path: str) -> str | None:
    """The `script` with `Repro` loaded from the program saved at `path` in place of its class; None if it has no such class."""
    tree = ast.parse(script)
    rows = script.split("\n")  # as Python counts lines, not by form feeds
    for statement in tree.body:
        if isinstance(statement, ast.ClassDef) and statement.name == "Repro":
            rows[statement.lineno - 1 : statement.end_lineno] = ["def Repro():", f"    return torch.export.load({path!r}).module()"]
            return "\n".join(rows)
    return None


def write(
    script: str,
    path: Path,
    answer: Callable[[Question], tuple[Outcome, Facts]],
    limit: float,
    same: Callable[[Signature], bool],
    observe: Callable[[str], tuple[Outcome, Signature | None]],
) -> ExportedProgram | None:
    """Save the `Repro` of `script` with its inputs to `path`, load it again and compile it as the script does; None if there is no such
    class.

    `answer` asks a worker, with a `limit` in seconds; `observe` runs a script, and `same` says whether what it showed is the failure.
    """
    outcome, _ = answer(Question(script, "export", limit, save=str(path)))
    if outcome.status != "ok" or not path.exists():
        # any other end says nothing about the module
        why = "torch.export cannot export the module" if outcome.status == "raised" else "the export was not seen to its end"
        last = outcome.text.strip().splitlines()[-1:] or [outcome.status]
        return ExportedProgram(same_signature=False, reason=f"{why}: {shortened(last[0], 300)}")
    text = loading(script, str(path))
    if text is None:
        return None
    outcome, shown = observe(text)
    if shown is None:
        passes = "the reloaded program passes: export turns the module into aten operators and its inputs into plain tensors"
        unseen = f"the reloaded program was not seen to its end: {outcome.status}"
        return ExportedProgram(same_signature=False, reason=passes if outcome.status == "ok" else unseen)
    if not same(shown):
        return ExportedProgram(same_signature=False, reason=f"the reloaded program fails otherwise: {shown.line()}")
    return ExportedProgram(same_signature=True)
