"""What the gate says beside its notes: the help, what was stopped, which failing tests are worth minimizing."""

from __future__ import annotations

import html
from collections.abc import Sequence
from dataclasses import dataclass

MOST_ROWS = 20
_MARKS = {"suggested": "suggested", "possible": "possible", "no": "not a candidate"}


@dataclass(frozen=True)
class Candidate:
    """A cause of failing tests, as people see it. `failure` and `tests` are hostile text."""

    verdict: str
    reason: str
    failure: str
    tests: tuple[str, ...]
    taken: bool


def _code(text: str, most: int) -> str:
    """Hostile text in one line of a table in HTML: no mention, no link, no tag."""
    line = " ".join("".join(c if c.isprintable() else " " for c in text).split())
    return f"<code>{html.escape(line[:most] + ('…' if len(line) > most else ''))}</code>"


def candidates(found: Sequence[Candidate]) -> str:
    """A table of causes, bounded. No blank line in it: it stays one block of HTML."""
    rows = []
    for each in found[:MOST_ROWS]:
        tests = _code(each.tests[0], 150) + (f" and {len(each.tests) - 1} more" if len(each.tests) > 1 else "")
        verdict = _MARKS.get(each.verdict, "not a candidate") + (", taken" if each.taken else "")
        rows.append(
            f"<tr><td>{verdict}</td><td>{html.escape(each.reason[:300])}</td><td>{_code(each.failure, 200)}</td><td>{tests}</td></tr>"
        )
    head = "<table>\n<tr><th></th><th>why</th><th>failure</th><th>tests</th></tr>\n"
    more = f"\n\n{len(found) - MOST_ROWS} more causes are not listed." if len(found) > MOST_ROWS else ""
    return head + "\n".join(rows) + "\n</table>" + more


def helped(help_text: str) -> str:
    """The answer to a question for help; `help_text` is ours."""
    return f"```text\n{help_text.rstrip()}\n```"


def stopped(runs: int) -> str:
    """The answer to a stop."""
    return f"Stopped {runs} {'run' if runs == 1 else 'runs'}." if runs else "Nothing is running for this."


def opened(repository: str, branch: str, run_url: str) -> str:
    """The body of an issue about a branch that turned red; the failure itself is said in a comment below."""
    where = f"[a run of CI]({run_url})" if run_url.startswith("https://") else "CI"
    return f"Tests fail in PyTorch's compiler on {_code(branch, 100)} of {_code(repository, 150)}: see {where}. The comments below say how."
