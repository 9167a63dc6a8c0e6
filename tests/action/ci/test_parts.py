"""The parts of a text between fences."""

from __future__ import annotations

import pytest

from bot.action.ci import lines
from bot.action.ci.parts import Parts, without_excerpts
from bot.action.ci.tracebacks import tracebacks
from bot.models.failure import Kind, Phase, Signature

TEXT = ["words", "```", "a", "b", "```", "words", "```", "c", "```"]
FRAMES = '  File "/w/a.py", line 3, in f\n    g()\n  File "/w/b.py", line 4, in g\n    h()\n'
HEADER = "Traceback (most recent call last):\n"


def signature(message: str, *exception: str) -> Signature:
    return Signature(kind=Kind.EXCEPTION, phase=Phase.RUN, exception=exception or ("ValueError",), message=message)


def test_the_part_of_a_line() -> None:
    parts = [Parts(TEXT).of(i) for i, line in enumerate(TEXT) if line != "```"]
    assert parts == [0, 1, 1, 2, 3]
    assert {Parts(["a", "b", "c"]).of(i) for i in range(3)} == {0}


@pytest.mark.parametrize(
    ("one", "other", "again"),
    [
        (signature("made up"), signature("made up"), True),
        (signature("made up: 7"), signature("made up..."), True),
        (signature("made up..."), signature("made up: 7"), True),
        (signature("made up", "A", "ValueError"), signature("made up: 7", "ValueError"), True),
        (signature("made up"), signature("made up", "KeyError"), False),
        (signature("made up: 7"), signature("made up: 8"), False),
    ],
)
def test_one_failure_that_is_shown_twice(one: Signature, other: Signature, again: bool) -> None:
    assert Parts(TEXT).tell_again(one, [signature("x", "OSError"), other]) is again
    assert not Parts(TEXT).tell_again(one, [])
    # a log has two processes that die alike
    assert not Parts(["a", "b"]).tell_again(one, [other])


def test_frames_that_are_copied_again() -> None:
    whole = f"{HEADER}{FRAMES}ValueError: made up\n"
    excerpt = f"{HEADER}{FRAMES}"
    other = excerpt.replace("/w/b.py", "/w/c.py")
    for text in (
        f"```\n{whole}```\nIt ends in:\n```\n{excerpt}```\n```\n{other}```\n",
        f"```\n{excerpt}```\n```\n{whole}```\n```\n{other}```\n",
    ):
        blocks = tracebacks(lines.read(text))
        assert len(blocks) == 3
        assert [block.text for block in without_excerpts(blocks)] == [whole.rstrip(), other.rstrip()]
