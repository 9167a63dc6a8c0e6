from __future__ import annotations

from typing import Any

import pytest

from bot.action.report.render.verdict import doubt, status, title
from bot.models.report import Section
from bot.models.result import Result
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
    changed = section(ended_by="budget").model_copy(update={"repro_altered": True})
    assert title(changed) == "Minimized, shown with changes, stopped at the time limit"
    assert title(section(status="error").model_copy(update={"repro_altered": True})) == "Could not be minimized"


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({}, "Minimized"),
        ({"status": "reproduced", "ended_by": "budget"}, "Reproduced, not smaller"),
        ({"status": "flaky", "verification": {"runs": 9, "same": 3, "eager": "passes"}}, "Flaky, 3 of 9"),
    ],
)
def test_another_failure_than_the_one_that_ci_showed_is_titled_so(changes: dict[str, Any], words: str) -> None:
    found = reports.result().signature
    assert found is not None
    other = found.model_copy(update={"exception": ("Unsupported",), "message": "Call to made_up function"})
    result = Result.model_validate({**reports.result().model_dump(), **changes})
    ended = ", stopped at the time limit" if "ended_by" in changes else ""
    for shown, more in ((other, ", another failure than CI's"), (found, ""), (None, "")):
        assert title(Section(request=reports.request(shown=shown), result=result, repro="x = 1")) == words + more + ended


def test_what_did_not_fail_here_is_no_other_failure() -> None:
    shown = reports.result().signature
    part = Section(request=reports.request(shown=shown), result=reports.result(status="not_reproduced", signature=None))
    assert title(part) == "Did not reproduce here"
