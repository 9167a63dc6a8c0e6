from __future__ import annotations

import subprocess
import time
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr

from bot.action import auto
from bot.action.auto import Live, shower
from bot.action.gate import gate
from bot.action.gate.requests import Decision
from bot.action.github.api import Api
from bot.action.github.transport import GitHubError
from bot.action.minify import checkout
from bot.action.settings import Settings
from bot.models.request import Answer, CodeOrigin, Request

REQUESTS = [
    Request(
        id=f"comment-1-{index}",
        script="import torch",
        repository="o/r",
        asked_by="a",
        code=CodeOrigin(where="comment", author="a", trusted=True),
        answer=Answer(repository="o/r", issue=3, marker="<!-- m -->", comment=8),
    )
    for index in range(2)
]


class Hub:
    """Takes comments, or does not."""

    def __init__(self, *, silent: bool = False) -> None:
        self.silent, self.bodies = silent, list[str]()

    def upsert_comment(self, repository: str, issue: int, marker: str, body: str, comment: int | None = None) -> Any:
        if self.silent:
            raise GitHubError("no", 403)
        assert (repository, issue, marker, comment) == ("o/r", 3, "<!-- m -->", 8)
        self.bodies.append(body)


def test_edits_are_apart_and_show_the_last_line() -> None:
    shown: list[tuple[float, str]] = []
    with Live(lambda line: shown.append((time.monotonic(), line)), every=0.5) as live:
        for number in range(60):
            live.watch(f"line {number}")
            time.sleep(0.03)
    assert 3 <= len(shown) <= 6
    assert all(second[0] - first[0] >= 0.5 for first, second in pairwise(shown))
    assert all(first[1] != second[1] for first, second in pairwise(shown))


def test_half_a_minute_lies_between_two_edits() -> None:
    assert auto.EVERY == 30


def test_nothing_new_is_no_edit() -> None:
    shown: list[str] = []
    with Live(shown.append, every=0.05):
        time.sleep(0.5)
    assert shown == [""]


def test_what_is_shown_is_text() -> None:
    hub = Hub()
    shower(hub, REQUESTS, 1, "https://x/1")("[1 s] reducing @everyone `code` <!-- m -->\u202e <b>")  # type: ignore[arg-type]
    (body,) = hub.bodies
    assert "2 of 2" in body
    # a code span mentions nobody and holds no HTML
    assert "\n\n``[1 s] reducing @everyone `code` <!-- m -->\\u202e <b>``\n\n" in body


def test_github_does_not_stop_the_work() -> None:
    shower(Hub(silent=True), REQUESTS, 0, "https://x/1")("line")  # type: ignore[arg-type]


def test_an_environment_approves_nothing_here(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The job of the workflow runs in the environment for forks, and waits there for its reviewers; this one does not."""
    found: list[Settings] = []

    def decide(event: object, settings: Settings, api: Api) -> Decision:
        found.append(settings)
        return Decision("nothing")

    monkeypatch.setattr(gate, "decide", decide)
    assert (
        auto.main(Settings.model_construct(fork_environment="forks", token=SecretStr("t"), event_name="push", api_url="http://127.0.0.1:9"))
        == 0
    )
    assert found[0].fork_environment == ""


def git(where: Path, *arguments: str) -> str:
    identity = ["-c", "user.name=nobody", "-c", "user.email=nobody@example.invalid"]
    return subprocess.run(["git", "-C", str(where), *identity, *arguments], check=True, capture_output=True, text=True).stdout.strip()


@pytest.fixture
def origin(tmp_path: Path) -> Path:
    path = tmp_path / "server/o/r"
    path.mkdir(parents=True)
    git(path, "init", "--quiet")
    git(path, "config", "uploadpack.allowAnySHA1InWant", "true")
    for text in ("first", "second"):
        (path / "file").write_text(text)
        git(path, "add", "file")
        git(path, "commit", "--quiet", "--message", text)
    return tmp_path / "server"


def test_one_commit_is_fetched(origin: Path, tmp_path: Path) -> None:
    first = git(origin / "o/r", "rev-parse", "HEAD~")
    checkout.fetch(f"file://{origin}", "o/r", first, tmp_path / "checkout", "secret-token")
    assert (tmp_path / "checkout/file").read_text() == "first"
    assert git(tmp_path / "checkout", "rev-parse", "HEAD") == first
    kept = "".join(path.read_text(errors="replace") for path in (tmp_path / "checkout/.git").rglob("*") if path.is_file())
    assert "secret-token" not in kept
    assert "c2VjcmV0LXRva2Vu" not in kept


def test_a_commit_that_is_not_there(origin: Path, tmp_path: Path) -> None:
    with pytest.raises(checkout.FetchError, match="git fetch failed"):
        checkout.fetch(f"file://{origin}", "o/r", "f" * 40, tmp_path / "checkout", "")
