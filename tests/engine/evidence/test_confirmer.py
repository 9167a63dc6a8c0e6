"""Confirmations in fresh processes beside the search."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from bot.engine.evidence.confirmer import Confirmer, Slipped
from bot.oracle.budget import Budget
from tests.oracle.fakes import sleep_until as wait_for


class World:
    """Counts the checks; one named `slips` does not confirm, and `hold` keeps a check from ending."""

    def __init__(self) -> None:
        self.checked: list[str] = []
        self.confirmed: list[tuple[str, int]] = []
        self.hold = threading.Event()
        self.hold.set()

    def check(self, text: str, budget: Budget) -> bool:
        self.checked.append(text)
        while budget.should_continue() and not self.hold.wait(0.005):
            pass
        return text != "slips"

    def told(self, text: str, position: int) -> None:
        self.confirmed.append((text, position))


class Pauses(Budget):
    """Does not wait between confirmations, but for those in `held`, which last until the end; `taken` are all that were asked for."""

    def __init__(self, *held: float) -> None:
        super().__init__(60.0)
        self.held = held
        self.taken: list[float] = []

    def sleep(self, seconds: float) -> None:
        self.taken.append(seconds)
        if seconds in self.held:
            super().sleep(seconds)


@pytest.fixture
def world() -> World:
    return World()


@pytest.fixture
def pauses() -> Pauses:
    return Pauses()


@pytest.fixture
def confirmer(world: World, pauses: Pauses) -> Iterator[Confirmer[str]]:
    with Confirmer(world.check, world.told, pauses) as made:
        yield made
        world.hold.set()


def test_what_is_confirmed_is_told_at_once(world: World, confirmer: Confirmer[str]) -> None:
    confirmer.offer("first", 0)
    wait_for(lambda: bool(world.confirmed))
    assert world.confirmed == [("first", 0)]


def test_a_slip_is_told_once(world: World, confirmer: Confirmer[str], pauses: Pauses) -> None:
    confirmer.offer("first", 0)
    wait_for(lambda: bool(world.confirmed))
    confirmer.offer("slips", 1)
    wait_for(lambda: len(pauses.taken) == 3)
    assert world.checked == ["first", "slips", "slips"]
    with pytest.raises(Slipped) as told:
        confirmer.offer("third", 2)
    assert told.value.position == 1
    confirmer.offer("fourth", 3)


def test_a_check_that_was_cut_off_is_made_again(world: World, pauses: Pauses) -> None:
    answers = iter([False, True])
    with Confirmer[str](lambda _text, _budget: next(answers), world.told, pauses) as confirmer:
        confirmer.offer("first", 0)
        wait_for(lambda: bool(world.confirmed))
        confirmer.offer("first", 1)


def test_only_the_newest_is_checked_after_a_check(world: World, confirmer: Confirmer[str]) -> None:
    world.hold.clear()
    confirmer.offer("first", 0)
    wait_for(lambda: world.checked == ["first"])
    for position in range(1, 4):
        confirmer.offer(f"later {position}", position)
    world.hold.set()
    wait_for(lambda: len(world.confirmed) == 2)
    assert world.checked == ["first", "later 3"]
    assert world.confirmed[-1] == ("later 3", 3)


def test_what_was_confirmed_is_not_checked_again(world: World, confirmer: Confirmer[str]) -> None:
    for position, text in enumerate(["first", "first", "other"]):
        confirmer.offer(text, position)
        wait_for(lambda text=text: text in [said for said, _ in world.confirmed])  # type: ignore[misc]
    assert world.checked == ["first", "other"]


@pytest.mark.parametrize("text", ["first", "slips"])
def test_after_the_end_nothing_is_checked_nor_told(text: str, world: World) -> None:
    world.hold.clear()
    with Confirmer(world.check, world.told, Pauses()) as confirmer:
        confirmer.offer(text, 0)
        wait_for(lambda: world.checked == [text])
    confirmer.offer("second", 1)
    confirmer.offer("third", 2)  # raises nothing: a check that was cut off is no slip
    assert (world.checked, world.confirmed) == ([text], [])


def test_a_disk_without_room_ends_the_confirmations_alone(world: World, pauses: Pauses) -> None:
    def full(text: str, budget: Budget) -> bool:
        world.check(text, budget)
        raise OSError(28, "No space left on device")

    with Confirmer(full, world.told, pauses) as confirmer:
        confirmer.offer("first", 0)
        wait_for(lambda: world.checked == ["first"])
        confirmer.offer("second", 1)  # raises nothing
    assert (world.checked, world.confirmed) == (["first"], [])


def test_between_two_checks_the_machine_belongs_to_the_search(world: World) -> None:
    pauses = Pauses(600.0)
    with Confirmer(world.check, world.told, pauses, every=600.0) as slow:
        slow.offer("first", 0)
        wait_for(lambda: 600.0 in pauses.taken)
        slow.offer("second", 1)
    assert world.checked == ["first"]


def test_a_search_that_is_soon_over_is_not_disturbed(world: World) -> None:
    pauses = Pauses(600.0)
    with Confirmer(world.check, world.told, pauses, after=600.0) as late:
        late.offer("first", 0)
        wait_for(lambda: pauses.taken == [600.0])
    assert world.checked == []
