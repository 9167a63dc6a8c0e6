"""The time of a program on a busy machine.

What Linux says was checked against `Documentation/scheduler/sched-stats.rst` (6.18): the second field of `/proc/PID/schedstat` is the
time spent waiting on a run queue, in nanoseconds.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from bot.inside.own_time import BETWEEN, LEAST_SHARE, STANDS, OwnTime, Standstill, seconds_waited
from tests.clock import Clock


@pytest.fixture
def clock() -> Clock:
    return Clock()


def times(clock: Clock, *looks: tuple[float, dict[int, float]]) -> float:
    """The own time after looks, each at a time and with what was waited until then."""
    given = iter([{}, *(waited for _, waited in looks)])
    own = OwnTime(7, clock, lambda pid: next(given))
    for at, _ in looks:
        clock.now = at
        own.look()
    return own.seconds()


def test_time_alone_on_a_machine_is_all_own(clock: Clock) -> None:
    assert times(clock, (10.0, {7: 0.0}), (20.0, {7: 0.0})) == 20.0


def test_what_was_waited_does_not_count(clock: Clock) -> None:
    assert times(clock, (10.0, {7: 8.0}), (20.0, {7: 15.0})) == pytest.approx(5.0)


def test_processes_that_wait_at_once_wait_once(clock: Clock) -> None:
    assert times(clock, (10.0, {7: 4.0, 8: 6.0})) == pytest.approx(4.0)


def test_processes_that_wait_in_turn_wait_twice(clock: Clock) -> None:
    """A program waits for a C++ compiler that it started; when that has ended, what it waited stays counted."""
    assert times(clock, (10.0, {7: 1.0, 8: 6.0}), (20.0, {7: 5.0})) == pytest.approx(20 - 6 - 4)


def test_nobody_waits_longer_than_time_passed(clock: Clock) -> None:
    assert times(clock, (10.0, {7: 900.0})) == pytest.approx(10 * LEAST_SHARE)


def test_a_system_that_says_nothing(clock: Clock) -> None:
    assert times(clock, (10.0, {})) == 10.0


def test_looks_that_come_too_soon_cost_nothing(clock: Clock) -> None:
    looks: list[int] = []
    own = OwnTime(7, clock, lambda pid: looks.append(pid) or {})
    clock.now = 0.1
    own.look()
    assert looks == [7]


def test_what_was_waited_before_does_not_count(clock: Clock) -> None:
    given = iter([{7: 5.0}, {7: 6.0}])
    own = OwnTime(7, clock, lambda _: next(given))
    clock.now = 10.0
    own.look()
    assert own.seconds() == pytest.approx(9.0)


@pytest.mark.skipif(not Path("/proc/self/schedstat").exists(), reason="this system does not say what a process waited")
def test_what_linux_says_of_a_process_and_its_child() -> None:
    """Many processes that never rest on one processor: each waits for most of its time."""
    busy = "import os; os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})\nwhile True: pass"
    nested = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {busy!r}])"
    started = [subprocess.Popen([sys.executable, "-c", nested], start_new_session=True) for _ in range(4)]
    try:
        deadline = time.monotonic() + 60
        found: dict[int, float] = {}
        while time.monotonic() < deadline and max(found.values(), default=0.0) < 1.0:
            time.sleep(0.2)
            found = seconds_waited(started[0].pid)
        assert max(found.values()) >= 1.0
        assert len(found) == 2
        assert found[started[0].pid] < max(found.values())  # that one only waits for its child
    finally:
        for process in started:
            os.killpg(process.pid, 9)
            process.wait()


def test_a_process_that_is_gone() -> None:
    process = subprocess.Popen([sys.executable, "-c", "pass"])
    process.wait()
    assert seconds_waited(process.pid) == {}


class TestStandstill:
    """A process that a signal has stopped."""

    @staticmethod
    def looks(clock: Clock, *stopped: bool) -> list[bool]:
        given = iter(stopped)
        standstill = Standstill(7, clock, lambda pid: next(given))
        lasts = []
        for _ in stopped:
            clock.now += BETWEEN
            lasts.append(standstill.lasts())
        return lasts

    def test_it_lasts_after_some_looks(self, clock: Clock) -> None:
        assert self.looks(clock, *[True] * (STANDS + 1)) == [False] * (STANDS - 1) + [True, True]

    def test_one_that_goes_on_meanwhile_does_not_stand_still(self, clock: Clock) -> None:
        first, then = [True] * (STANDS - 1), [True] * STANDS
        assert self.looks(clock, *first, False, *then) == [False] * (2 * STANDS - 1) + [True]

    def test_it_is_looked_at_now_and_then(self, clock: Clock) -> None:
        seen = 0

        def stopped(_: int) -> bool:
            nonlocal seen
            seen += 1
            return True

        standstill = Standstill(7, clock, stopped)
        for _ in range(100):
            clock.now += BETWEEN / 50
            assert not standstill.lasts()
        assert seen == 2
