"""The same data as annotations of the run: workflow commands on standard output."""

from __future__ import annotations

from collections.abc import Iterator

from bot.action.report.render.notes import what
from bot.action.report.render.text import one_line
from bot.action.report.render.verdict import status, title
from bot.models.report import Report

# GitHub shows ten of a kind for a step.
MOST = 10


def commands(report: Report) -> list[str]:
    """One line for each request: a notice for what was found, a warning where the tool or its machine failed."""
    return list(_lines(report))[:MOST]


def _lines(report: Report) -> Iterator[str]:
    for section in report.sections:
        level = "warning" if status(section) == "error" else "notice"
        result = section.result
        said = result.signature.line() if result and result.signature else (result.reason if result else section.problem) or ""
        words = ": ".join(part for part in (one_line(what(section.request), 150), one_line(said)) if part)
        yield f"::{level} title={_property(title(section))}::{_data(words)}"


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
