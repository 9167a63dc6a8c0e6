"""When two failures are the same, and how they are written."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.models.failure import HEAP, Kind, Phase, Signature, shortened

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
    # a repro of the graph ends in a comparison of its own, not with that status
    left = Signature(kind=Kind.ACCURACY, phase=Phase.RUN, exception=("SystemExit",), message="6")
    assert left.line() == "accuracy in run: wrong numbers, of which the program says SystemExit: 6"
    assert left.model_copy(update={"exception": ("AssertionError",)}).line() == "accuracy in run: AssertionError"
    checked = left.model_copy(update={"exception": ("AssertionError",), "message": "row N is wrong", "said": "row 3 is wrong"})
    assert checked.line() == "accuracy in run: AssertionError: row 3 is wrong"
    assert printed.same(ERROR.model_copy(update={"message": "rank N", "said": "rank 4"})), "what people are shown is not compared"
    missing = Signature(
        kind=Kind.NO_RAISE, phase=Phase.RUN, exception=("Failed",), message="DID NOT RAISE ValueError", said="DID NOT RAISE ValueError"
    )
    assert missing.line() == "no_raise in run: Failed: DID NOT RAISE ValueError"
    assert Signature(kind=Kind.HANG, phase=Phase.RUN).line() == "hang in run"  # the kind says it all
    compared = Signature(kind=Kind.ACCURACY, phase=Phase.RUN, message="compiled results differ from eager")
    assert compared.line() == "accuracy in run: compiled results differ from eager"  # we compared, and nothing was raised
    assert Signature(kind=Kind.EXCEPTION, phase=Phase.RUN, message="no N", said="no 3").line() == "exception in run: no 3"
    assert "\n" not in ERROR.model_copy(update={"message": "\n\nx" * 300}).line()


def test_memory_that_was_written_over_shows_as_this_or_that_signal() -> None:
    fault, bus = (Signature(kind=Kind.CRASH, phase=Phase.RUN, signal=name) for name in ("SIGSEGV", "SIGBUS"))
    heap = Signature(kind=Kind.CRASH, phase=Phase.RUN, signal="SIGABRT", message=HEAP)
    aborted = Signature(kind=Kind.CRASH, phase=Phase.RUN, signal="SIGABRT")
    assert fault.same(bus)
    assert fault.same(heap)
    assert not fault.same(aborted)
    assert not heap.same(aborted)
    assert not fault.same(fault.model_copy(update={"phase": Phase.DYNAMO}))


def test_a_hang_is_told_by_its_phase_alone() -> None:
    hang = Signature(kind=Kind.HANG, phase=Phase.DYNAMO, frame="f")
    assert hang.same(hang.model_copy(update={"frame": "g", "message": "x"}))
    assert not hang.same(hang.model_copy(update={"phase": Phase.RUN}))


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("", ""),
        ("ten of them", "ten of them"),
        ("more than eleven", "more than …"),
        ("a sentence-without-blanks", "a sentence- …"),  # a word is cut where little would be left without it
    ],
)
def test_what_is_cut_says_so(text: str, kept: str) -> None:
    assert shortened(text, 11) == kept


def test_a_long_message_is_cut_between_two_words() -> None:
    long = ERROR.model_copy(update={"said": "word " * 40})
    assert long.line() == f"exception in dynamo: A: B: {'word ' * 32}…"
