"""The messages between the two interpreters: what one side encodes, the other decodes."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot.failure.outcome import Outcome
from bot.inside import boot, protocol
from bot.inside.protocol import CaptureOrder, Facts, Question, Reached, Task, decode, encode, read_reached
from tests.inside.wire import misfit

TEXT = st.text()  # with lone surrogates, too: names of files may have them
WORDS = st.lists(TEXT, max_size=3).map(tuple)
NUMBERS = st.floats(allow_nan=False)
TOLERANCE = st.none() | st.lists(NUMBERS, max_size=2).map(tuple)
QUESTIONS = st.builds(
    Question,
    text=st.text(st.characters()),
    task=st.sampled_from(get_args(Task)),
    limit=NUMBERS,
    memory=st.none() | st.integers(),
    stop_after=st.none() | TEXT,
    argv=WORDS,
    tolerance=TOLERANCE,
    lines=st.lists(st.integers(), max_size=3).map(tuple),
    as_eager=st.booleans(),
    dir=TEXT,
)
ORDERS = st.builds(CaptureOrder, argv=WORDS, tolerance=TOLERANCE, script=st.none() | TEXT)


@given(QUESTIONS | ORDERS)
def test_a_request_comes_back_as_it_was(request: Any) -> None:
    line = encode(request)
    assert "\n" not in line
    assert decode(type(request), json.loads(line)) == request


@pytest.mark.parametrize("message", [{"text": "x", "tsak": "run"}, {"task": "run"}])
def test_a_field_that_is_not_declared_or_missing_is_an_error(message: dict[str, Any]) -> None:
    with pytest.raises(TypeError):
        decode(Question, message)


ONE_LINE = st.text(st.characters(min_codepoint=32, max_codepoint=126)).map(str.strip)
COUNTS = st.integers(0, 999_999_999)
REACHED = st.builds(Reached, COUNTS, COUNTS, COUNTS, COUNTS, ONE_LINE)


@given(st.lists(REACHED, min_size=1, max_size=3), st.lists(ONE_LINE.filter(lambda line: "reached: " not in line), max_size=3))
def test_of_several_processes_the_one_with_most_calls_counts(said: list[Reached], printed: list[str]) -> None:
    text = "\n".join([*printed, *(one.line() for one in said), ""])
    found, rest = read_reached(text)
    assert found == max(said, key=lambda one: one[:4])
    assert rest == "\n".join(printed).rstrip("\n")


def test_output_without_a_count_is_left_as_it_is() -> None:
    said = "said: [compiler-out] reached: 1 raised: 0 asked: 0 unmade: 0"
    assert read_reached(said) == (Reached(), said)


def test_each_role_has_a_module() -> None:
    assert set(boot.ROLES) == set(get_args(protocol.Role))


def test_facts_and_outcome_speak_of_the_same() -> None:
    # what only who watches a process can tell
    watched = {"cut", "elapsed", "stdout"}
    assert Facts.__annotations__.keys() | {"status"} >= Outcome.model_fields.keys() - watched
    for status in get_args(protocol.RunStatus):
        assert status in (Outcome.__doc__ or "")


def test_it_is_loaded_without_torch_and_without_the_package() -> None:
    code = "import sys; before = set(sys.modules); import protocol; print(*{m.partition('.')[0] for m in set(sys.modules) - before})"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=boot.__file__.rpartition("/")[0])
    assert set(ran.stdout.split()) - {"protocol"} <= set(sys.stdlib_module_names)


@pytest.mark.parametrize(
    ("value", "where"),
    [
        ({"status": "fine"}, ".status"),
        ({}, "lacks"),
        ({"status": "ok", "txt": ""}, "txt"),
        ({"status": "ok", "calls": True}, ".calls"),
        ({"status": "ok", "guesses": [["a"], "b"]}, ".guesses[1]"),
        ({"status": "ok", "values": {"x": {"shape": [1, None]}}}, ".values['x'].shape[1]"),
    ],
)
def test_the_check_of_recorded_answers_finds_what_is_wrong(value: dict[str, Any], where: str) -> None:
    assert where in misfit(value, Facts)
    assert misfit({"status": "ok", "seconds": 1, "exit": 0}, Facts) == ""
