"""What the gate says beside its notes: the help, what was stopped, which failing tests are worth minimizing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from bot.action.report.render.markdown import cell, code, link
from bot.action.report.render.text import size

MOST_ROWS = 20
# Three of them fit behind a note.
MOST_BYTES = 10_000
_END = "</table>"
_MARKS = {"suggested": "suggested", "possible": "possible", "no": "not a candidate"}


@dataclass(frozen=True)
class Cause:
    """A cause of failing tests, as people see it. `failure` and `tests` are hostile text."""

    verdict: str
    reason: str
    failure: str
    tests: tuple[str, ...]
    taken: bool


def candidates(found: Sequence[Cause]) -> str:
    """A table of the causes `found`, at most `MOST_BYTES` of it. It has no blank line, so it stays one block of HTML."""
    rows = ["<table>", "<tr><th></th><th>why</th><th>failure</th><th>tests</th></tr>"]
    room = MOST_BYTES - size("\n".join([*rows, _END])) - 100
    listed = 0
    for each in found[:MOST_ROWS]:
        row = _row(each)
        room -= size(row) + 1
        if room < 0:
            break
        rows.append(row)
        listed += 1
    more = f"\n\n{len(found) - listed} more causes are not listed." if len(found) > listed else ""
    return "\n".join([*rows, _END]) + more


def _row(candidate: Cause) -> str:
    count = len(candidate.tests)
    tests = cell(candidate.tests[0], 150) + (f" and {count - 1} more" if count > 1 else "") if count else "–"
    verdict = _MARKS.get(candidate.verdict, "not a candidate") + (", taken" if candidate.taken else "")
    return f"<tr><td>{verdict}</td><td>{cell(candidate.reason)}</td><td>{cell(candidate.failure, 200)}</td><td>{tests}</td></tr>"


def helped(help_text: str) -> str:
    """The answer to a question for help; `help_text` is ours."""
    return f"```text\n{help_text.rstrip()}\n```"


def stopped(runs: int) -> str:
    """The answer to a stop that cancelled so many `runs`."""
    return f"Stopped {runs} {'run' if runs == 1 else 'runs'}." if runs else "Nothing is running for this."


def opened(repository: str, branch: str, run_url: str) -> str:
    """The body of an issue about a `branch` of `repository` that turned red in the run at `run_url`.

    The failure itself is said in a comment below.
    """
    where = link("a run of CI", run_url)
    return f"Tests fail in PyTorch's compiler on {code(branch, 100)} of {code(repository, 150)}: see {where}. The comments below say how."
