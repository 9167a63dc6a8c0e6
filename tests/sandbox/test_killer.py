"""What ends all of a program's processes at once does not start where it would end others."""

from __future__ import annotations

import os
from typing import Any

import pytest

from bot.sandbox import kernel, landlock
from bot.sandbox.killer import Killer


class Holey:
    """A set of rules that refuses nothing."""

    def __init__(self, **_: Any) -> None:
        pass

    def enter(self) -> None:
        """Restrict nothing."""


def refuse_to_fork() -> int:
    pytest.fail("it would stand by")


@pytest.fixture(autouse=True)
def _harmless(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernel, "prctl", lambda *_: None)
    monkeypatch.setattr(os, "fork", refuse_to_fork)
    monkeypatch.setattr(landlock, "Ruleset", Holey)


def test_it_is_not_made_where_the_domain_holds_no_signals_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(landlock, "scopes_signals", lambda: True)
    with pytest.raises(OSError, match="no signals back"):
        Killer().stand_by_within()


def test_it_is_not_made_where_the_supervisor_could_not_be_signaled_before(monkeypatch: pytest.MonkeyPatch) -> None:
    """Then it shows nothing that it cannot be afterwards."""
    monkeypatch.setattr(landlock, "scopes_signals", lambda: True)

    def kill(pid: int, number: int) -> None:
        raise PermissionError(pid, number)

    monkeypatch.setattr(os, "kill", kill)
    with pytest.raises(PermissionError):
        Killer().stand_by_within()


def test_without_it_nothing_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where its parent can be forked and it cannot."""
    monkeypatch.setattr(landlock, "scopes_signals", lambda: True)
    monkeypatch.setattr(os, "fork", lambda: 1)
    monkeypatch.setattr(os, "waitpid", lambda *_: (1, 256))
    asked = []

    def kill(pid: int, number: int) -> None:
        asked.append(number)
        if len(asked) > 1:
            raise PermissionError

    monkeypatch.setattr(os, "kill", kill)
    with pytest.raises(OSError, match="no more processes"):
        Killer().stand_by_within()
    assert asked == [0, 0]


def test_an_older_kernel_has_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(landlock, "scopes_signals", lambda: False)
    killer = Killer()
    killer.stand_by_within()
    killer.handed_over()
    killer.kill()
    killer.stand_down()
    assert killer.pid == 0
