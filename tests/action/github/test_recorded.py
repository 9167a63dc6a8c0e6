"""Recorded conversations, replayed with the network blocked: the client asks again exactly what it asked then."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import vcr
from vcr.errors import CannotOverwriteExistingCassetteException

from bot.action.gate.comment_event import Conversation
from bot.action.gate.requests import Decision
from bot.action.github.client import GitHub
from bot.action.github.resources import IssueComment
from bot.action.github.transport import GitHubError, Transport
from bot.action.settings import Settings

TRAFFIC = Path(__file__).resolve().parents[2] / "fixtures" / "traffic"
API, BOT = "https://api.github.com", "github-actions[bot]"
CODE = "```python\nimport torch\ntorch.compile(torch.relu)(torch.ones(2))\n```"
BODIES = {
    "taken": ("maintainer", f"/minify --stage aot\n\n{CODE}"),
    "refused": ("stranger", f"/minify\n\n{CODE}"),
    "not-understood": ("maintainer", "/minify --stge aot"),
}


def converse(event: dict[str, Any], api: GitHub) -> Decision:
    """The gate on one comment, twice: GitHub may send an event again."""
    given = Settings.model_construct().model_dump() | {"repository": "maintainer/models", "run_id": 7}
    read = IssueComment.model_validate(event)
    Conversation(read, Settings.model_construct(**given), api).outcome()
    return Conversation(read, Settings.model_construct(**given), api).outcome()


def replay(name: str, event: dict[str, Any]) -> Decision:
    tape = vcr.VCR(record_mode="none", match_on=["method", "uri", "body"])
    with tape.use_cassette(str(TRAFFIC / f"{name}.yaml")) as cassette:
        outcome = converse(event, GitHub(Transport("token", API, sleep=lambda _: None), BOT))
    assert cassette.all_played
    return outcome


def recorded(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((TRAFFIC / f"{name}.json").read_text(encoding="utf-8"))
    return found


@pytest.mark.block_network
@pytest.mark.parametrize(("name", "status"), [("taken", "requests"), ("refused", "refused"), ("not-understood", "refused")])
def test_replay(name: str, status: str) -> None:
    assert replay(name, recorded(name)).status == status


@pytest.mark.block_network
def test_another_request_than_the_recorded_is_noticed() -> None:
    event = recorded("taken")
    event["issue"]["number"] += 1
    with pytest.raises((CannotOverwriteExistingCassetteException, GitHubError)):
        replay("taken", event)


def test_no_token_was_recorded() -> None:
    recordings = list(TRAFFIC.glob("*.yaml"))
    assert recordings
    for path in recordings:
        assert "token-of" not in path.read_text(encoding="utf-8")
        assert "uthorization" not in path.read_text(encoding="utf-8")
