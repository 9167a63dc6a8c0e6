"""`result.json`: its keys, its words, and what of earlier ones is read."""

from __future__ import annotations

import json

import pytest
from pydantic import ValidationError

from bot.models.failure import Kind, Phase, Signature, Stage
from bot.models.result import EXIT_STATUS, TITLE, Evidence, ExportedProgram, Files, Reduction, Result, Rule, Timing, VerificationFacts

ERROR = Signature(kind=Kind.EXCEPTION, phase=Phase.DYNAMO, exception=("A", "B"), message="m", frame="f")
FULL = Result(
    status="flaky",
    ended_by="budget",
    stage=Stage.AOT_INDUCTOR,
    compile_only=True,
    machine_fault="none",
    reason="because",
    signature=ERROR,
    reduction=Reduction(
        ops_before=3, ops_after=1, lines_before=9, lines_after=2, input_elements_before=4, input_elements_after=1, queries=7, seconds=1.5
    ),
    timing=Timing(capture=1.0),
    verification=VerificationFacts(runs=3, same=2, eager="passes"),
    culprit="pass",
    sandbox=("uid",),
    versions={"torch": "2"},
    evidence=Evidence(passes_if="-a", other_failures=("x",), pytorch_dump=True),
    exported_program=ExportedProgram(same_signature=False, reason="no"),
    files=Files(repro="repro.py"),
)


@pytest.mark.parametrize("result", [FULL, Result(status="error")])
def test_a_result_comes_back(result: Result) -> None:
    text = result.to_json()
    assert text.endswith("}\n")
    assert Result.model_validate_json(text) == result


def test_the_keys_that_others_rely_on() -> None:
    data = json.loads(FULL.to_json())
    assert data["schema"] == 1
    assert "schema_" not in data
    assert data["signature"]["exception"] == ["A", "B"]
    assert data["signature"]["fingerprint"] == ERROR.fingerprint
    assert data["files"] == {"repro": "repro.py", "exported_program": None, "exported_text": None, "kernel": None, "sha256": None}
    assert data["reduction"]["ops_after"] == 1


def test_unknown_keys_and_changes_are_refused() -> None:
    with pytest.raises(ValidationError):
        Result.model_validate({"status": "error", "more": 1})
    with pytest.raises(ValidationError):
        Signature(kind=Kind.CRASH, phase=Phase.RUN, more=1)  # type: ignore[call-arg]
    with pytest.raises(ValidationError):
        FULL.status = "error"  # type: ignore[misc]


def test_every_status_has_an_exit_and_a_title() -> None:
    assert EXIT_STATUS.keys() == TITLE.keys()
    assert EXIT_STATUS == {"minimized": 0, "reproduced": 3, "not_reproduced": 4, "flaky": 5, "error": 1}


def test_a_rule_that_was_written_before_is_read() -> None:
    """Earlier versions said in it whether float64 had been dropped."""
    assert Rule.model_validate({"hang_after": 9.0, "precise": False}) == Rule(hang_after=9.0)
