"""Programs that do not end: they hang, or may only be slow."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from bot.engine import time_split
from bot.engine.options import Ended, Options
from bot.engine.slowness import began_cold, hang_after, longer
from bot.engine.target import Target
from bot.failure.outcome import Outcome
from bot.workers.process import HANG_RATIO, START
from bot.workers.toolchain import Maker

DYNAMO = '  File "/x/site-packages/torch/_dynamo/symbolic_convert.py", line 9 in run\n'
LOWERING = '  File "/x/site-packages/torch/_inductor/graph.py", line 9 in call_function\n'
COMPILER = '  File "/usr/lib/python3.12/subprocess.py", line 9 in wait\n'


def options(**more: Any) -> Options:
    return Options(Target(Path("fail.py"), None, ()), "python", Path("out"), **more)


def stacks(*frames: str) -> str:
    return "".join(
        f"Timeout (0:00:05)!\nThread 0x00007f (most recent call first):\n{frame}" + '  File "fail.py", line 1 in <module>\n'
        for frame in frames
    )


def late(seconds: float = 60.0, *frames: str) -> Outcome:
    return Outcome(status="timeout", seconds=seconds, text=stacks(*(frames or (DYNAMO,) * 5)))


def eager(seconds: float) -> Outcome:
    return Outcome(status="ok", seconds=seconds)


# Of its own time, this many seconds of eager are as much as a hang of 30 s may take in it.
JUST = 30.0 / HANG_RATIO + START


class Made(Maker):
    """What every compile begins with, made until so many seconds `ago`."""

    def __init__(self, ago: float) -> None:
        self.ago = ago

    def worked_within(self, seconds: float) -> bool:
        return self.ago < seconds


@pytest.mark.parametrize(
    ("ago", "change", "cold"),
    [
        (20.0, {}, True),
        (70.0, {}, False),  # made before the run began
        (20.0, {"text": stacks(DYNAMO)}, False),
        (20.0, {"cut": True}, False),
        (20.0, {"status": "raised"}, False),
    ],
)
def test_a_run_that_waited_for_a_compiler_began_cold_if_headers_were_still_made(ago: float, change: dict[str, Any], cold: bool) -> None:
    outcome = late(25.0, DYNAMO, COMPILER).model_copy(update={"elapsed": 60.0, **change})
    assert began_cold(outcome, Made(ago)) is cold
    assert not began_cold(outcome, None)


class TestLonger:
    def test_a_program_that_is_slow_in_eager_too_gets_more(self) -> None:
        assert longer(options(hang_after=30.0), late(), eager(JUST + 1)) == 30.0 + HANG_RATIO + START

    @pytest.mark.parametrize(
        ("more", "outcome", "seconds"),
        [
            ({"hang_after": 30.0}, late(), JUST),  # eager is fast enough
            ({"hang_after": 30.0}, Outcome(status="raised"), JUST + 1),  # it ended
            ({"hang_after": None}, late(), JUST + 100),  # the budget decides
            ({"hang_after": 30.0, "budget": 90.0}, late(), JUST + 1),  # there is no more
        ],
    )
    def test_no_other_does(self, more: dict[str, Any], outcome: Outcome, seconds: float) -> None:
        assert longer(options(**more), outcome, eager(seconds)) is None

    def test_a_third_of_the_budget_is_the_most(self) -> None:
        assert longer(options(hang_after=30.0, budget=120.0), late(), eager(JUST + 100)) == 40.0 + START


class TestHangAfter:
    def test_the_limit_that_was_named_or_lengthened(self) -> None:
        assert hang_after(options(hang_after=30.0), late(), eager(1.0), own=70.0 + START) == 70.0

    def test_else_that_of_the_budget(self) -> None:
        asked = options(budget=900.0)
        assert hang_after(asked, late(300.0), eager(300.0 / HANG_RATIO + START), own=300.0) == time_split.hang_limit(asked, 300.0)

    @pytest.mark.parametrize(
        ("more", "outcome", "seconds", "status", "said"),
        [
            ({"hang_after": 30.0}, late(), JUST + 1, "not_reproduced", "no hang by that limit; --hang-after sets a longer one"),
            ({}, late(60.0), 60.0 / HANG_RATIO + START + 0.01, "error", "no hang by that limit; a run may take a third of the budget"),
            ({}, late(time_split.LEAST_SAMPLED - 1), 1.0, "error", "too little to tell; .* --budget 60m gives it 20m"),
            (
                {},
                late(60.0, DYNAMO, COMPILER),
                1.0,
                "error",
                "after 60 s of its own time, waiting for a program that it started .*--hang-after says from when",
            ),
            ({}, late(60.0, DYNAMO, LOWERING, DYNAMO, LOWERING), 1.0, "error", "each time in another place: it may only be slow"),
            (
                {},
                Outcome(status="timeout", seconds=60.0),
                1.0,
                "error",
                "after 60 s of its own time, and printed no stack when asked for one; .*60m",
            ),
        ],
    )
    def test_what_may_only_be_slow(self, more: dict[str, Any], outcome: Outcome, seconds: float, status: str, said: str) -> None:
        with pytest.raises(Ended, match=said) as ended:
            hang_after(options(**more), outcome, eager(seconds), own=30.0 + START)
        assert (ended.value.status, ended.value.code) == (status, "budget")

    def test_where_a_limit_was_named_no_stack_decides(self) -> None:
        assert hang_after(options(hang_after=30.0), late(5.0, DYNAMO, COMPILER), eager(1.0), own=30.0 + START) == 30.0
