"""Confirmations in fresh processes beside the search."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator

import pytest

from bot.engine.evidence.confirmer import Confirmed, Confirmer, Slipped


def wait_for(true: Callable[[], bool]) -> None:
    end = time.monotonic() + 5
    while not true():
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.005)


class World:
    """Counts the checks; one named `slips` does not confirm, and `hold` keeps a check from ending."""

    def __init__(self) -> None:
        self.checked: list[str] = []
        self.confirmed: list[Confirmed] = []
        self.hold = threading.Event()
        self.hold.set()

    def check(self, text: str, wanted: Callable[[], bool]) -> bool:
        self.checked.append(text)
        while wanted() and not self.hold.wait(0.005):
            pass
        return text != "slips"


@pytest.fixture
def world() -> World:
    return World()


@pytest.fixture
def confirmer(world: World) -> Iterator[Confirmer]:
    made = Confirmer(world.check, world.confirmed.append, every=0.01, after=0.0)
    yield made
    world.hold.set()
    made.stop()


def test_what_is_confirmed_is_told_at_once(world: World, confirmer: Confirmer) -> None:
    confirmer.offer("first", 0)
    wait_for(lambda: bool(world.confirmed))
    assert world.confirmed == [Confirmed("first", 0, 1, 1)]
    assert confirmer.best == world.confirmed[0]


def test_a_slip_leaves_the_last_that_was_confirmed(world: World, confirmer: Confirmer) -> None:
    confirmer.offer("first", 0)
    wait_for(lambda: bool(world.confirmed))
    confirmer.offer("slips", 1)
    wait_for(lambda: world.checked == ["first", "slips", "slips"])
    time.sleep(0.05)
    with pytest.raises(Slipped) as told:
        confirmer.offer("third", 2)
    assert told.value.position == 1
    assert confirmer.best == Confirmed("first", 0, 1, 1)
    confirmer.offer("fourth", 3)  # said once


def test_a_check_that_was_cut_off_is_made_again(world: World, confirmer: Confirmer) -> None:
    answers = iter([False, True])
    confirmer.check = lambda _text, _wanted: next(answers)
    confirmer.offer("first", 0)
    wait_for(lambda: bool(world.confirmed))
    confirmer.offer("second", 1)


def test_only_the_newest_is_checked_after_a_check(world: World, confirmer: Confirmer) -> None:
    world.hold.clear()
    confirmer.offer("first", 0)
    wait_for(lambda: world.checked == ["first"])
    for position in range(1, 4):
        confirmer.offer(f"later {position}", position)
    world.hold.set()
    wait_for(lambda: len(world.confirmed) == 2)
    assert world.checked == ["first", "later 3"]
    assert world.confirmed[-1].position == 3


def test_what_was_confirmed_is_not_checked_again(world: World, confirmer: Confirmer) -> None:
    confirmer.offer("first", 0)
    wait_for(lambda: bool(world.confirmed))
    confirmer.offer("first", 1)
    time.sleep(0.1)
    assert world.checked == ["first"]


@pytest.mark.parametrize("text", ["first", "slips"])
def test_after_the_stop_nothing_is_checked_nor_told(text: str, world: World, confirmer: Confirmer) -> None:
    world.hold.clear()
    confirmer.offer(text, 0)
    wait_for(lambda: world.checked == [text])
    confirmer.stop()
    assert world.confirmed == []
    confirmer.offer("second", 1)
    time.sleep(0.1)
    confirmer.offer("third", 2)  # raises nothing: a check that was cut off is no slip
    assert world.checked == [text]
    assert world.confirmed == []


def test_a_disk_without_room_ends_the_confirmations_alone(world: World, confirmer: Confirmer) -> None:
    def full(_text: str, _wanted: Callable[[], bool]) -> bool:
        raise OSError(28, "No space left on device")

    confirmer.check = full
    confirmer.offer("first", 0)
    time.sleep(0.1)
    confirmer.offer("second", 1)  # raises nothing
    assert world.confirmed == []


def test_between_two_checks_the_machine_belongs_to_the_search(world: World) -> None:
    slow = Confirmer(world.check, world.confirmed.append, every=600.0, after=0.0)
    slow.offer("first", 0)
    wait_for(lambda: bool(world.confirmed))
    slow.offer("second", 1)
    time.sleep(0.1)
    assert world.checked == ["first"]
    slow.stop()


def test_a_search_that_is_soon_over_is_not_disturbed(world: World) -> None:
    late = Confirmer(world.check, world.confirmed.append, after=600.0)
    late.offer("first", 0)
    time.sleep(0.1)
    assert world.checked == []
    late.stop()
