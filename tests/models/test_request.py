from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from tests.action.report.reports import request

ONE = {"script": "import torch\n"}, {"command": "pytest a.py::test_b"}, {"doctor": ("good",)}
NONE = {"script": None, "command": None, "doctor": None}


@pytest.mark.parametrize("given", ONE)
def test_a_request_is_one_of_three(given: dict[str, Any]) -> None:
    made = request(**NONE | given)
    assert {name: value for name, value in made.model_dump().items() if name in NONE and value is not None} == given


@pytest.mark.parametrize("given", [{}, ONE[0] | ONE[1], ONE[1] | ONE[2], ONE[0] | ONE[1] | ONE[2]])
def test_no_more_and_no_less(given: dict[str, Any]) -> None:
    with pytest.raises(ValidationError, match="a request has a script, a command or a look at the set-up"):
        request(**NONE | given)


@pytest.mark.parametrize("budget", [0.0, -1.0, "soon"])
def test_a_budget_is_a_time(budget: object) -> None:
    with pytest.raises(ValidationError):
        request(**NONE | ONE[0], options={"budget": budget})
