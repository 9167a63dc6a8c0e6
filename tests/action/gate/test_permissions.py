"""Who may have what run."""

from __future__ import annotations

import itertools
from datetime import datetime, timedelta, timezone

import pytest

from bot.action.gate.permissions import Allowed, Asker, ForkPolicy, Head, Ignored, Refused, may_ask, may_run

NOW = datetime(2026, 11, 3, tzinfo=timezone.utc)
BEFORE, AFTER = NOW - timedelta(seconds=1), NOW + timedelta(seconds=1)


@pytest.mark.parametrize(
    ("asker", "kind"),
    [
        (Asker("a", 1, 1, False, "admin"), Allowed),
        (Asker("a", 1, 1, False, "write"), Allowed),
        (Asker("a", 1, 1, False, "read"), Refused),
        (Asker("a", 1, 1, False, "none"), Refused),
        (Asker("a", 1, 1, False, "maintain-ish"), Refused),
        (Asker("a", 1, 2, False, "admin"), Ignored),
        (Asker("a", 1, 1, True, "admin"), Ignored),
        (Asker("a", 0, 0, False, "admin"), Ignored),
    ],
)
def test_who_may_ask(asker: Asker, kind: type[object]) -> None:
    assert isinstance(may_ask(asker), kind)


def test_code_of_a_fork_runs_only_where_all_of_it_holds() -> None:
    for fork, environment, protected, pushed in itertools.product([True, False], ["", "forks"], [True, False], [None, BEFORE, AFTER]):
        decision = may_run(Head(fork, "a/b", pushed), ForkPolicy(environment, protected), NOW)
        allowed = pushed != AFTER and (not fork or (environment == "forks" and protected and pushed == BEFORE))
        assert isinstance(decision, Allowed) == allowed
        if isinstance(decision, Allowed):
            assert decision.environment == ("forks" if fork else "")
        else:
            assert decision.reason.endswith(".")
