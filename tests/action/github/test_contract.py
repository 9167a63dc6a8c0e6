"""Every request that the client can send is one that GitHub's description of its API knows."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable
from datetime import datetime, timezone
from typing import Any

import pytest
from openapi_core.exceptions import OpenAPIError

from bot.action.github.client import GitHub
from bot.action.github.resources import Artifact, Branch, PullRequest, Repository, User
from bot.action.github.transport import GitHubError, Transport
from tests.action.github.contract import Contract
from tests.action.github.stub import Fault, Stub

REPO, NOW = "octo/models", datetime(2026, 11, 3, tzinfo=timezone.utc)
END = Branch(ref="topic/x", sha="a" * 40, repo=Repository(full_name=REPO))
PULL = PullRequest(number=7, head=END, base=END)

CALLS: dict[str, Callable[[GitHub], object]] = {
    "login": lambda github: github.login(),
    "comments": lambda github: github.comments(REPO, 7),
    "recent_comments": lambda github: github.recent_comments(REPO, NOW),
    "own_comment": lambda github: github.own_comment(REPO, 7, "<!-- m -->", 5),
    "upsert_comment": lambda github: github.upsert_comment(REPO, 7, "<!-- m -->", "body", 5),
    "delete_comment": lambda github: github.delete_comment(REPO, 5),
    "react": lambda github: github.react(REPO, 5, "eyes"),
    "open_issue": lambda github: github.open_issue(REPO, "<!-- m -->", "title", "body"),
    "put_file": lambda github: github.put_file(REPO, "torch-minify", "a/b.py", b"x", "message"),
    "put_asset": lambda github: github.put_asset(REPO, "torch-minify", "b.py", b"x"),
    "permission": lambda github: github.permission(REPO, User(login="somebody", id=5)),
    "repository": lambda github: github.repository(REPO),
    "issue": lambda github: github.issue(REPO, 7),
    "pull_request": lambda github: github.pull_request(REPO, 7),
    "pull_requests_of": lambda github: github.pull_requests_of(REPO, "a" * 40),
    "pull_requests_from": lambda github: github.pull_requests_from(REPO, "contributor", "topic", "a" * 40),
    "files_at": lambda github: github.files_at(REPO, "a" * 40),
    "commit": lambda github: github.commit(REPO, "main"),
    "stands_on": lambda github: github.stands_on(REPO, "a" * 40, "main"),
    "pushed_at": lambda github: github.pushed_at(REPO, PULL),
    "environment_protected": lambda github: github.environment_protected(REPO, "forks"),
    "run": lambda github: github.run(REPO, 5),
    "runs_of": lambda github: github.runs_of(REPO, "a" * 40),
    "last_run": lambda github: github.last_run(REPO, 3, "main", NOW),
    "jobs": lambda github: github.jobs(REPO, 5),
    "job_log": lambda github: github.job_log(REPO, 5),
    "artifacts": lambda github: github.artifacts(REPO, 5),
    "artifact": lambda github: github.artifact(REPO, Artifact(id=5, name="x")),
    "recent_runs": lambda github: github.recent_runs(REPO),
    "runners": lambda github: github.runners(REPO),
    "gist": lambda github: github.gist("0123abcd"),
    "cancel": lambda github: github.cancel(REPO, 5),
}


# What is no call of the API of its own: the address stands in somebody's text; a comment's author is compared with `login`; the time stands
# in every answer; the others are made without patience.
ELSEWHERE = {"attachment", "is_ours", "at_once", "now"}


def test_every_call_is_listed() -> None:
    named = {name for name in vars(GitHub) if not name.startswith("_")}
    assert named == set(CALLS) | ELSEWHERE


@pytest.mark.parametrize("name", CALLS)
def test_call(stub: Stub, contract: Contract, name: str) -> None:
    before = len(contract.checked)
    # whatever the answer is: what counts is what is sent
    with contract.watching(stub.url), contextlib.suppress(GitHubError):
        CALLS[name](GitHub(Transport("token", stub.url, sleep=lambda _: None)))
    assert len(contract.checked) > before


def test_of_two_issues_that_are_made_at_once_the_older_stays(stub: Stub, contract: Contract) -> None:
    at = f"/repos/{REPO}/issues"
    listed: list[dict[str, Any]] = []
    sent: list[tuple[str, bytes]] = []

    def work(verb: str, path: str, body: bytes) -> tuple[int, Any]:
        sent.append((f"{verb} {path}", body))
        if verb == "POST":
            listed.extend({"number": number, "body": "<!-- m -->\nx"} for number in (8, 9))
            return 201, listed[1]
        return 200, listed if path == at else {"login": "bot"}

    stub.work = work  # type: ignore[method-assign]
    with contract.watching(stub.url):
        assert GitHub(Transport("token", stub.url), "bot").open_issue(REPO, "<!-- m -->", "title", "body").number == 8
    assert [asked for asked, _ in sent] == [f"GET {at}", f"POST {at}", f"GET {at}", f"PATCH {at}/9"]
    assert json.loads(sent[-1][1])["state"] == "closed"


class Long(Transport):
    """A repository with thousands of open issues of one login, as where another workflow writes them: a list has pages of a hundred."""

    def __init__(self, issues: list[dict[str, Any]]) -> None:
        self.issues = issues

    def pages(self, path: str, parameters: Any = None, key: str = "", limit: int = 10) -> list[Any]:
        ordered = sorted(self.issues, key=lambda issue: issue["number"], reverse=parameters["direction"] == "desc")
        return ordered[: 100 * limit]

    def create(self, path: str, body: Any, find: Any) -> Any:
        self.issues.append({"number": len(self.issues) + 1, **body})
        return self.issues[-1]


def test_an_issue_is_found_behind_thousands() -> None:
    api = GitHub(Long([{"number": number, "body": "x"} for number in range(1, 2_500)]), "bot")
    assert [api.open_issue(REPO, "<!-- m -->", "title", "body").number for _ in range(2)] == [2_500, 2_500]


@pytest.mark.parametrize("listed", [(404, {"message": "Not Found"}), (200, [])], ids=["refused", "lags"])
def test_an_issue_that_was_made_counts_though_the_list_does_not_show_it(stub: Stub, listed: tuple[int, Any]) -> None:
    at = f"/repos/{REPO}/issues"
    answers = [(200, []), listed]

    def work(verb: str, path: str, _: bytes) -> tuple[int, Any]:
        if verb == "POST":
            return 201, {"number": 9, "body": "<!-- m -->\nx"}
        return answers.pop(0) if path == at else (200, {"login": "bot"})

    stub.work = work  # type: ignore[method-assign]
    assert GitHub(Transport("token", stub.url), "bot").open_issue(REPO, "<!-- m -->", "title", "body").number == 9


def test_keeping_a_file(stub: Stub, contract: Contract) -> None:
    at = f"/repos/{REPO}"
    stub.answers |= {
        ("GET", f"{at}/git/ref/heads/torch-minify"): (404, {"message": "Not Found"}),
        ("POST", f"{at}/git/trees"): (201, {"sha": "1" * 40}),
        ("POST", f"{at}/git/commits"): (201, {"sha": "2" * 40}),
        ("POST", f"{at}/git/refs"): (201, {"ref": "refs/heads/torch-minify"}),
        ("PUT", f"{at}/contents/a/b.py"): (201, {"content": {"html_url": "https://example.invalid/b.py"}}),
    }
    with contract.watching(stub.url):
        assert (
            GitHub(Transport("token", stub.url)).put_file(REPO, "torch-minify", "a/b.py", b"x", "message") == "https://example.invalid/b.py"
        )
    assert [f"{verb} {path.partition('?')[0]}" for verb, path, _ in stub.seen] == [
        f"GET {at}/git/ref/heads/torch-minify",
        f"POST {at}/git/trees",
        f"POST {at}/git/commits",
        f"POST {at}/git/refs",
        f"GET {at}/contents/a/b.py",
        f"PUT {at}/contents/a/b.py",
    ]


def test_keeping_an_asset_replaces_the_one_of_that_name(stub: Stub, contract: Contract) -> None:
    at = f"/repos/{REPO}"
    upload = f"{stub.url}/uploads/9/assets{{?name,label}}"
    stub.answers |= {
        ("POST", f"{at}/releases"): (201, {"id": 9, "upload_url": upload}),
        ("GET", f"{at}/releases/9/assets"): (200, [{"id": 3, "name": "b.py"}, {"id": 4, "name": "c.py"}]),
        ("DELETE", f"{at}/releases/assets/3"): (204, b""),
        ("POST", "/uploads/9/assets"): (201, {"browser_download_url": "https://example.invalid/b.py"}),
    }
    with contract.watching(f"{stub.url}/repos"):
        assert GitHub(Transport("token", stub.url)).put_asset(REPO, "torch-minify", "b.py", b"x") == "https://example.invalid/b.py"
    assert [verb for verb, _, _ in stub.seen] == ["GET", "POST", "GET", "DELETE", "POST"]


def test_an_asset_that_is_kept_though_the_answers_were_lost(stub: Stub) -> None:
    """GitHub answers 422 to a second upload of a name, and 404 to a second removal."""
    at = f"/repos/{REPO}"
    assets = [{"id": 3, "name": "b.py", "size": 9, "browser_download_url": "https://example.invalid/old"}]
    new = {"id": 5, "name": "b.py", "size": 1, "browser_download_url": "https://example.invalid/b.py"}

    def work(verb: str, path: str, body: bytes) -> tuple[int, Any]:
        if verb == "DELETE":
            gone = bool(assets) and assets.pop() is not None
            return (204, b"") if gone else (404, {"message": "Not Found"})
        if path == "/uploads/9/assets":
            there = bool(assets)
            assets[:] = [new | {"size": len(body)}]
            return (422, {"message": "Validation Failed"}) if there else (201, assets[0])
        if path == f"{at}/releases/9/assets":
            return 200, list(assets)
        return 200, {"id": 9, "upload_url": f"{stub.url}/uploads/9/assets{{?name,label}}"}

    stub.work = work  # type: ignore[method-assign]
    stub.faults = [Fault(502, late=True, verb="DELETE"), Fault(502, late=True, verb="POST")]
    api = GitHub(Transport("token", stub.url, sleep=lambda _: None))
    assert api.put_asset(REPO, "torch-minify", "b.py", b"x") == "https://example.invalid/b.py"
    assert [verb for verb, _, _ in stub.seen] == ["GET", "GET", "DELETE", "DELETE", "POST", "POST", "GET"]


def test_the_contract_can_be_broken(contract: Contract) -> None:
    for verb, path, body in (
        ("GET", "/repos/o/r/no-such-thing", None),
        ("POST", "/repos/o/r/issues/7/comments", '{"text": "x"}'),
        ("POST", "/repos/o/r/issues/comments/5/reactions", '{"content": "thumbs"}'),
    ):
        with pytest.raises(OpenAPIError):
            contract.check(verb, f"https://api.github.com{path}", body)
