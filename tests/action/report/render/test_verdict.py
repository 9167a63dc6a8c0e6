from __future__ import annotations

from typing import Any

import pytest

from bot.action.report.render.verdict import doubt, status, title
from bot.models.report import Section
from tests.action.report import reports


def section(repro: str | None = "x = 1", **changes: Any) -> Section:
    return Section(request=reports.request(), result=reports.result(**changes), repro=repro)


def test_a_proven_result_is_believed() -> None:
    proven = section(verification={"runs": 3, "same": 3, "eager": "passes"})
    assert doubt(proven) is None
    assert status(proven) == "minimized"


@pytest.mark.parametrize(
    "claimed",
    [
        section(repro=None),
        section(signature=None),
        section(verification={"runs": 3, "same": 2, "eager": "passes"}),
        section(verification={"runs": 2, "same": 2, "eager": "passes"}),
        section(verification={"runs": 3, "same": 3, "eager": "fails"}),
        section(status="flaky", verification={"runs": 3, "same": 3, "eager": "passes"}),
    ],
)
def test_a_claim_without_its_figures_is_not_repeated(claimed: Section) -> None:
    assert doubt(claimed)
    assert status(claimed) == "error"


def test_titles() -> None:
    assert title(Section(request=reports.request())) == "Could not be minimized"
    assert title(section(ended_by="budget")) == "Minimized, stopped at the time limit"
    assert title(section(status="flaky", verification={"runs": 3, "same": 1, "eager": "passes"})) == "Flaky, 1 of 3"
