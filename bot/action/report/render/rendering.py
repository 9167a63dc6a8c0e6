"""Renders a Report as Markdown, for a comment or a job's summary, and as annotations of the run."""

from __future__ import annotations

from bot.action.report.render import section, verdict
from bot.action.report.render.layout import fit, whole
from bot.action.report.render.markdown import link
from bot.action.report.render.notes import what
from bot.action.report.render.text import marker_line, one_line, size
from bot.models.report import Report, Section
from bot.workflow_commands import Annotation

# GitHub rejects comments with more characters than this; there are never fewer bytes than characters.
COMMENT_LIMIT = 65_536
SUMMARY_LIMIT = 1_000_000
# GitHub shows ten of each kind per step.
MOST_ANNOTATIONS = 10
_CUT = "_Shortened to fit into a comment: the rest is in the run's files._"


def render(report: Report, limit: int = COMMENT_LIMIT) -> str:
    """The comment, at most `limit` bytes of UTF-8, whatever the `report` contains.

    It begins with the hidden marker, mentions nobody, and none of its texts leaves its fence. A repro is included completely or not at
    all; it is included if it fits together with a marker and a title of 1,000 bytes. The comment says if something did not fit. Raises
    ValueError if the report's marker is not one.
    """
    blocks = [whole((0,), marker_line(report.marker))]
    for index, part in enumerate(report.sections):
        blocks += section.blocks(part, index, len(report.sections))
    blocks.append(whole((section.SOURCE, len(report.sections)), _footer(report)))
    full = fit(blocks, 1 << 60)
    if size(full) <= limit:
        return full
    return fit([*blocks, whole((section.FAILURE,), _CUT)], limit)


def _footer(report: Report) -> str:
    # for a red run, nobody gave a command that could be repeated
    cut_short = any(part.request.answer.trigger and part.result and part.result.ended_by == "budget" for part in report.sections)
    longer = " · `/minify again --budget TIME` gives it longer" if cut_short else ""
    return f"{link('The run', report.run_url)}{longer} · `/minify help` says what else can be asked for" if report.run_url else ""


def annotations_of(report: Report) -> tuple[Annotation, ...]:
    """One for each request in `report`: a notice for a finding, a warning if the tool or its machine failed."""
    return tuple(_annotation(part) for part in report.sections[:MOST_ANNOTATIONS])


def _annotation(part: Section) -> Annotation:
    result = part.result
    said = result.signature.line() if result and result.signature else (result.reason if result else part.problem) or ""
    words = ": ".join(filter(None, (one_line(what(part.request), 150), one_line(said))))
    return Annotation("warning" if verdict.status(part) == "error" else "notice", verdict.title(part), words)
