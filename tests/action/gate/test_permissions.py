"""Who may have what run."""

from __future__ import annotations

import itertools
from datetime import datetime, timedelta, timezone

import pytest

from bot.action.gate.permissions import Allowed, ForkPolicy, Head, Ignored, Refused, may_ask, may_run
from bot.action.github.resources import User

NOW = datetime(2026, 11, 3, tzinfo=timezone.utc)
BEFORE, AFTER = NOW - timedelta(seconds=1), NOW + timedelta(seconds=1)


@pytest.mark.parametrize(
    ("author", "sender", "bot", "permission", "kind"),
    [
        (1, 1, False, "admin", Allowed),
        (1, 1, False, "write", Allowed),
        (1, 1, False, "read", Refused),
        (1, 1, False, "none", Refused),
        (1, 1, False, "maintain-ish", Refused),
        (1, 2, False, "admin", Ignored),
        (1, 1, True, "admin", Ignored),
        (0, 0, False, "admin", Ignored),
    ],
)
def test_who_may_ask(author: int, sender: int, bot: bool, permission: str, kind: type[object]) -> None:
    asker = User(login="a", id=author, type="Bot" if bot else "User")
    assert isinstance(may_ask(asker, User(id=sender), permission), kind)


def test_code_of_a_fork_runs_only_where_all_of_it_holds() -> None:
    for fork, environment, protected, pushed in itertools.product([True, False], ["", "forks"], [True, False], [None, BEFORE, NOW, AFTER]):
        decision = may_run(Head(fork, pushed), ForkPolicy(environment, protected), NOW)
        allowed = pushed not in (NOW, AFTER) and (not fork or (environment == "forks" and protected and pushed == BEFORE))
        assert isinstance(decision, Allowed) == allowed
        if isinstance(decision, Refused):
            assert decision.reason.endswith(".")
