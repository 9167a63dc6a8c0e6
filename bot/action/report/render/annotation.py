"""The same data as annotations of the run."""

from __future__ import annotations

from bot.action.report.render.notes import what
from bot.action.report.render.text import one_line
from bot.action.report.render.verdict import status, title
from bot.models.report import Report, Section
from bot.workflow_commands import Annotation

# GitHub shows ten of a kind for a step.
MOST = 10


def annotations_of(report: Report) -> tuple[Annotation, ...]:
    """One for each request in `report`: a notice for what was found, a warning where the tool or its machine failed."""
    return tuple(_annotation(section) for section in report.sections[:MOST])


def _annotation(section: Section) -> Annotation:
    result = section.result
    said = result.signature.line() if result and result.signature else (result.reason if result else section.problem) or ""
    words = ": ".join(part for part in (one_line(what(section.request), 150), one_line(said)) if part)
    return Annotation("warning" if status(section) == "error" else "notice", title(section), words)
