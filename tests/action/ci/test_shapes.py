"""What must be found in logs of several projects' CI, and what must not."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from bot.action.ci.candidates import rows
from bot.action.ci.paths import CheckoutPaths

SHAPES = Path(__file__).resolve().parents[2] / "fixtures" / "ci" / "shapes"
EXPECTED = [json.loads(line) for line in (SHAPES / "expected.jsonl").read_text(encoding="utf-8").splitlines()]
NOWHERE = CheckoutPaths(())


@pytest.mark.parametrize("expected", EXPECTED, ids=lambda expected: expected["log"])
def test_each_failure_is_found_and_nothing_else(expected: dict[str, Any]) -> None:
    found = rows((SHAPES / expected["log"]).read_bytes().decode(), NOWHERE)
    assert [row["verdict"] for row in found] == [failure["verdict"] for failure in expected["failures"]], found
    for row, failure in zip(found, expected["failures"], strict=True):
        assert {key: row[key] for key in failure} == failure


def test_every_log_has_its_line() -> None:
    assert {path.name for path in SHAPES.glob("*.txt")} == {expected["log"] for expected in EXPECTED}
