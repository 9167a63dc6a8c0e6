"""What may be claimed about a request: a result's own words count only as far as its figures support them."""

from __future__ import annotations

from bot.action.report.render.text import number
from bot.failure.shown import may_be
from bot.models.report import Section
from bot.models.result import TITLE, Status

# Number of fresh processes in which a repro must fail before it is called one.
RUNS = 3
FAILED_HERE: tuple[Status, ...] = ("minimized", "reproduced", "flaky")
_ENDED = {"budget": "stopped at the time limit", "interrupted": "interrupted"}


def doubt(section: Section) -> str | None:
    """Why the claim of the result in `section` cannot be repeated; None if it can."""
    result = section.result
    if result is None:
        return None
    proof = result.verification
    if result.status in ("minimized", "reproduced"):
        if section.repro is None or result.signature is None:
            return f"the result says {result.status}, but holds no repro that fails"
        if not proof.runs == proof.same >= RUNS or proof.eager != "passes":
            needed = f"{RUNS} failures in {RUNS} fresh processes and a control in eager that passes"
            return f"the result says {result.status}, but its repro is not proven: that takes {needed}"
    if result.status == "flaky" and (not 0 < proof.same < proof.runs or section.repro is None):
        return "the result says flaky, but does not show how often the repro failed"
    if result.status == "flaky" and proof.eager != "passes":
        return "the result says flaky, but not that its repro passes without the compiler"
    return None


def status(section: Section) -> Status:
    """The status that is posted for `section`."""
    return "error" if section.result is None or doubt(section) else section.result.status


def is_another(section: Section) -> bool:
    """Whether the failure here differs from the one in CI, for the request in `section`."""
    shown = section.request.shown
    found = section.result.signature if section.result else None
    return shown is not None and found is not None and status(section) in FAILED_HERE and not may_be(shown, found)


def title(section: Section) -> str:
    """The title of `section` from the table of titles, with what ended the search."""
    said = status(section)
    result = section.result
    words = TITLE[said]
    if result is None:
        return words
    if said == "flaky":
        words += f", {number(result.verification.same)} of {number(result.verification.runs)}"
    other = ["another failure than CI's"] if is_another(section) else []
    if said in FAILED_HERE and section.repro is not None and section.repro_altered:
        other.append("shown with changes")
    return ", ".join([words, *other, *([_ENDED[result.ended_by]] if result.ended_by in _ENDED else [])])
