"""The data that crosses from one package to another, and its JSON."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from bot.models.failure import Kind, Phase, Signature, Stage
from bot.models.result import EXIT_STATUS, TITLE, Evidence, ExportedProgram, Files, Reduction, Result, Rule, Timing, VerificationFacts

WORDS = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=6)
SIGNATURES = st.builds(
    Signature,
    kind=st.sampled_from(Kind),
    phase=st.sampled_from([Phase.RUN, Phase.DYNAMO]),
    backward=st.booleans(),
    exception=st.lists(st.sampled_from(["A", "B"]), max_size=2).map(tuple),
    message=st.sampled_from(["", "m", "n"]) | WORDS,
    frame=st.none() | st.sampled_from(["f", "g"]),
    signal=st.none() | st.sampled_from(["SIGSEGV", "SIGABRT"]),
)


@given(SIGNATURES)
def test_a_signature_comes_back_with_its_fingerprint(signature: Signature) -> None:
    data = json.loads(signature.model_dump_json())
    assert data["fingerprint"] == signature.fingerprint
    assert len(data["fingerprint"]) == 16
    assert Signature.model_validate_json(signature.model_dump_json()) == signature
    assert Signature.model_validate(data) == signature


@given(SIGNATURES, SIGNATURES)
def test_fingerprints_tell_failures_apart(one: Signature, other: Signature) -> None:
    if one.kind is other.kind and one.kind is not Kind.NO_RAISE:
        assert (one.fingerprint == other.fingerprint) is one.same_across_forms(other)
    if one.same(other):
        assert one.same_across_forms(other)
    assert one.same(one)


ERROR = Signature(kind=Kind.EXCEPTION, phase=Phase.DYNAMO, exception=("A", "B"), message="m", frame="f")


@pytest.mark.parametrize(
    ("change", "across", "within"),
    [
        ({}, True, True),
        ({"exception": ("X", "B")}, True, False),
        ({"exception": ("A", "X")}, False, False),
        ({"message": "n"}, False, False),
        ({"phase": Phase.RUN}, False, False),
        ({"frame": "g"}, True, False),
        ({"frame": None}, True, True),
        ({"backward": True}, True, False),
        ({"kind": Kind.CRASH}, False, False),
    ],
)
def test_when_two_exceptions_are_the_same(change: dict[str, Any], across: bool, within: bool) -> None:
    other = ERROR.model_copy(update=change)
    assert (ERROR.same_across_forms(other), ERROR.same(other)) == (across, within)
    assert (other.same_across_forms(ERROR), other.same(ERROR)) == (across, within)


def test_other_kinds_look_at_what_they_have() -> None:
    crash = Signature(kind=Kind.CRASH, phase=Phase.RUN, signal="SIGSEGV", frame="f")
    assert crash.same(crash.model_copy(update={"message": "x", "frame": None}))
    assert not crash.same(crash.model_copy(update={"signal": "SIGABRT"}))
    assert not crash.same(crash.model_copy(update={"frame": "g"}))
    wrong = Signature(kind=Kind.ACCURACY, phase=Phase.RUN)
    assert wrong.same(wrong.model_copy(update={"message": "x", "frame": "g", "exception": ("A",)}))
    missing = Signature(kind=Kind.NO_RAISE, phase=Phase.DYNAMO)
    assert missing.same(wrong), "it shows as the assertion of the script that expected the error"
    assert not wrong.same(missing)
    assert not missing.same(ERROR)


def test_one_line_for_people() -> None:
    assert ERROR.line() == "exception in dynamo: A: B: m"
    long = ERROR.model_copy(update={"message": "first\nsecond", "backward": True})
    assert long.line() == "exception in dynamo (backward): A: B: first"
    assert Signature(kind=Kind.CRASH, phase=Phase.RUN, signal="SIGSEGV", message="m").line() == "crash in run: SIGSEGV"
    printed = ERROR.model_copy(update={"message": "rank N", "said": "rank 3"})
    assert printed.line() == "exception in dynamo: A: B: rank 3"
    assert printed.same(ERROR.model_copy(update={"message": "rank N", "said": "rank 4"})), "what people are shown is not compared"
    assert Signature(kind=Kind.HANG, phase=Phase.RUN).line() == "hang in run: hang"
    assert "\n" not in ERROR.model_copy(update={"message": "\n\nx" * 300}).line()


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
    assert data["files"] == {"repro": "repro.py", "exported_program": None, "exported_text": None, "kernel": None}
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
