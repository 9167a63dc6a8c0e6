"""In mode `auto` there is one job, and it has begun: nobody can approve a fork's code any more."""

from __future__ import annotations

from pathlib import Path
from unittest import mock

import pytest

from bot.action import auto
from bot.action.gate import gate
from tests.action.gate.memory import BLOCK, BOT, REPO, Memory, asked, settings


def test_a_fork_is_refused_whatever_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    api = Memory(protected={"forks"})
    api.add_pull(fork="contributor/models")
    event = asked(f"/minify\n{BLOCK}", pull=True)
    given = settings(fork_environment="forks", mode="auto", event_name="issue_comment", event_path=tmp_path / "event.json")
    with mock.patch.object(auto, "GitHub", return_value=api), mock.patch.object(gate, "read_event", return_value=event):
        assert auto.main(given) == 0
    (comment,) = [one for one in api.comments(REPO, 7) if one.user.login == BOT]
    assert "does not run code from forks" in comment.text
    # the gate as a job of its own lets it through
    assert gate.decide(event, given, api).status == "requests"
