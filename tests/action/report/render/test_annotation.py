from __future__ import annotations

from bot.action.report.render.annotation import MOST, annotations_of
from bot.models.report import Section
from tests.action.report import reports


def test_a_fault_is_a_warning_and_a_result_a_notice() -> None:
    found = Section(request=reports.request(), result=reports.result(), repro="x = 1")
    none = Section(request=reports.request(), problem="torn\nfile")
    first, second = annotations_of(reports.report(found, none))
    assert (first.level, first.title) == ("notice", "Minimized")
    assert (second.level, second.title) == ("warning", "Could not be minimized")
    assert second.message.endswith(": torn file")


def test_github_shows_only_so_many() -> None:
    assert len(annotations_of(reports.report(*[Section(request=reports.request())] * (MOST + 5)))) == MOST
