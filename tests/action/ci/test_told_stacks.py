"""Stacks that somebody tells of in other forms than Python's."""

from __future__ import annotations

import pytest

from bot.action.ci.told_stacks import MAX_TEXT, rewritten

FRAMES = ['  File "torch/_dynamo/a.py", line 5, in f', '  File "torch/_inductor/b.py", line 6, in g.<locals>.h']


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("-> torch/_dynamo/a.py:5 in f", "-> torch/_inductor/b.py:6 in g.<locals>.h"),
        ("\u2192 torch/_dynamo/a.py:5 f", "\u2514\u2500> torch/_inductor/b.py:6 g.<locals>.h"),
        ("1. `torch/_dynamo/a.py:5` \u2192 `f`", "2. `torch/_inductor/b.py:6` \u2192 `g.<locals>.h`"),
        ("#0 torch/_dynamo/a.py ... line 5, in f", "#1 torch/_inductor/b.py ... line 6, in g.<locals>.h"),
        ("at f (torch/_dynamo/a.py:5)", "at g.<locals>.h (torch/_inductor/b.py:6)"),
        ("  - torch/_dynamo/a.py:5, f(x, y)", "  - torch/_inductor/b.py:6, g.<locals>.h()"),
    ],
)
@pytest.mark.parametrize("between", [[], ["..."], ["  ^^^^", "    raise InductorError(e)"]])
def test_places_in_lines(first: str, second: str, between: list[str]) -> None:
    words = ["It fails:", ""]
    assert rewritten([*words, first, second, *between, "InductorError: made up", "more"]) == [
        *words,
        *FRAMES,
        "InductorError: made up",
        "more",
    ]


def test_what_a_place_does_not_say() -> None:
    told = ["torch/_dynamo/a.py", "torch/_inductor/b.py:6", "KeyError: 1"]
    assert rewritten(told) == [
        '  File "torch/_dynamo/a.py", line 0, in <unknown>',
        '  File "torch/_inductor/b.py", line 6, in <unknown>',
        told[2],
    ]


@pytest.mark.parametrize("above", [[], ["```"], ["The stack:", "", "```"]])
def test_what_was_raised_above_the_places(above: list[str]) -> None:
    places = ["torch/_dynamo/a.py:5 in f", "torch/_inductor/b.py:6 in g.<locals>.h"]
    assert rewritten(["RuntimeError: made up", *above, *places, "```"]) == ["", *above, *FRAMES, "RuntimeError: made up", "```"]


@pytest.mark.parametrize(
    "told",
    [
        # one place, places of somebody else's, none of an error, and one that is too far away
        ["torch/_dynamo/a.py:5 in f", "KeyError: 1"],
        ["mine/a.py:5 in f", "mine/b.py:6 in g", "KeyError: 1"],
        ["torch/_dynamo/a.py:5 in f", "torch/_inductor/b.py:6 in g", "it fails"],
        ["torch/_dynamo/a.py:5 in f", "torch/_inductor/b.py:6 in g", *["..."] * 9, "it goes on", "KeyError: 1"],
        ["KeyError: 1", "words of it", "more words", "torch/_dynamo/a.py:5 in f", "torch/_inductor/b.py:6 in g"],
    ],
)
def test_what_tells_of_no_stack(told: list[str]) -> None:
    assert rewritten(list(told)) == told


IN_ONE = (
    'Traceback (most recent call last): File "/w/a.py", line 5, in f g(x) File \\"/w/b.py\\", line 6, in <module> h() KeyError: made up'
)


def test_a_traceback_in_one_line() -> None:
    assert rewritten([f"It says {IN_ONE}"]) == [
        "It says ",
        "Traceback (most recent call last):",
        '  File "/w/a.py", line 5, in f',
        "    g(x)",
        '  File "/w/b.py", line 6, in <module>',
        "    h()",
        "KeyError: made up",
    ]


@pytest.mark.parametrize(
    "joint",
    [
        "The above exception was the direct cause of the following exception:",
        "During handling of the above exception, another exception occurred:",
    ],
)
def test_a_chain_in_one_line(joint: str) -> None:
    lines = [line for line in rewritten([f"{IN_ONE} {joint} {IN_ONE.replace('made up', 'the last')}"]) if line]
    assert [lines[0], *lines[5:8], lines[-1]] == [
        "Traceback (most recent call last):",
        "KeyError: made up",
        joint,
        "Traceback (most recent call last):",
        "KeyError: the last",
    ]


@pytest.mark.parametrize("line", [f"INFO {IN_ONE}", f"W0801 10:00:00.123000 {IN_ONE}", IN_ONE.replace(" File", "\\\\n  File")])
def test_a_line_that_is_no_error_or_a_string(line: str) -> None:
    assert rewritten([line]) == [line]


def test_a_log_is_left_as_it_is() -> None:
    told = ["torch/_dynamo/a.py:5 in f", "torch/_inductor/b.py:6 in g", "KeyError: 1", IN_ONE]
    assert rewritten([*told, *["it runs"] * MAX_TEXT]) == [*told, *["it runs"] * MAX_TEXT]
