"""GitHub's REST API, in the few calls that are made here."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from datetime import datetime, timezone
from typing import Any, TypeVar, get_args
from urllib.parse import quote

from pydantic import TypeAdapter, ValidationError

from bot.action.github import storage
from bot.action.github.resources import (
    Artifact,
    Comment,
    Issue,
    Permission,
    PullRequest,
    Reaction,
    Repository,
    Resource,
    Run,
    User,
    WorkflowJob,
)
from bot.action.github.transport import ATTEMPTS, GitHubError, Transport

LOG_LIMIT = 32 << 20
ARTIFACT_LIMIT = 64 << 20
# GITHUB_TOKEN may not ask who it is.
ACTIONS_LOGIN = "github-actions[bot]"

R = TypeVar("R", bound=Resource)


def _read(kind: type[R], data: Any) -> R:
    try:
        return TypeAdapter(kind).validate_python(data)
    except ValidationError as error:
        raise GitHubError(f"GitHub's answer is no {kind.__name__}: {error.error_count()} fields are wrong") from error


def _repo(repository: str) -> str:
    owner, _, name = repository.partition("/")
    return f"/repos/{quote(owner, safe='')}/{quote(name, safe='')}"


def _moment(text: Any) -> datetime:
    return TypeAdapter(datetime).validate_python(text)


class GitHub:
    """Implements `bot.action.github.api.Api`. `login` is who the token belongs to; asked for where it is not known."""

    def __init__(
        self,
        token: str,
        api_url: str = "https://api.github.com",
        *,
        login: str | None = None,
        sleep: Callable[[float], None] = time.sleep,
        now: Callable[[], float] = time.time,
        attempts: int = ATTEMPTS,
    ) -> None:
        self._http = Transport(token, api_url, sleep=sleep, now=now, attempts=attempts)
        self._login = login

    # answering

    def login(self) -> str:
        """Who we are: `github-actions[bot]` where the token may not ask."""
        if self._login is None:
            try:
                self._login = _read(User, self._http.ask("GET", "/user")).login
            except GitHubError as error:
                if error.status not in (401, 403, 404):
                    raise
                self._login = ACTIONS_LOGIN
        return self._login

    def comments(self, repository: str, issue: int) -> Sequence[Comment]:
        """See `Api.comments`."""
        return [_read(Comment, data) for data in self._http.pages(f"{_repo(repository)}/issues/{issue}/comments", limit=50)]

    def recent_comments(self, repository: str, since: datetime) -> Sequence[Comment]:
        """See `Api.recent_comments`."""
        wanted = {"since": since.astimezone(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"), "sort": "created", "direction": "asc"}
        return [_read(Comment, data) for data in self._http.pages(f"{_repo(repository)}/issues/comments", wanted, limit=50)]

    def own_comment(self, repository: str, issue: int, marker: str) -> Comment | None:
        """See `Api.own_comment`."""
        login = self.login()
        return next((c for c in self.comments(repository, issue) if c.user.login == login and c.text.startswith(marker)), None)

    def upsert_comment(self, repository: str, issue: int, marker: str, body: str, comment: int | None = None) -> Comment:
        """See `Api.upsert_comment`."""
        text = body if body.startswith(marker) else f"{marker}\n{body}"
        at = _repo(repository)
        if comment is not None:
            try:
                return _read(Comment, self._http.ask("PATCH", f"{at}/issues/comments/{comment}", body={"body": text}))
            except GitHubError as error:
                if error.status != 404:  # somebody deleted it
                    raise
        known = self.own_comment(repository, issue, marker)
        if known is None:

            def find() -> Any:
                found = self.own_comment(repository, issue, marker)
                return found.model_dump() if found else None

            known = _read(Comment, self._http.create(f"{at}/issues/{issue}/comments", {"body": text}, find))
        if known.text != text:
            return _read(Comment, self._http.ask("PATCH", f"{at}/issues/comments/{known.id}", body={"body": text}))
        return known

    def react(self, repository: str, comment: int, reaction: Reaction) -> None:
        """See `Api.react`."""
        self._http.ask("POST", f"{_repo(repository)}/issues/comments/{comment}/reactions", body={"content": reaction})

    def open_issue(self, repository: str, marker: str, title: str, body: str) -> Issue:
        """See `Api.open_issue`."""

        def find() -> Any:
            # the list, not the search: the search lags behind by minutes
            listed = self._http.pages(f"{_repo(repository)}/issues", {"state": "open", "creator": self.login()})
            return next((data for data in listed if str(data.get("body") or "").startswith(marker)), None)

        found = find()
        if found is None:
            found = self._http.create(f"{_repo(repository)}/issues", {"title": title, "body": f"{marker}\n{body}"}, find)
        return _read(Issue, found)

    def put_file(self, repository: str, branch: str, path: str, content: bytes, message: str) -> str:
        """See `Api.put_file`."""
        return storage.put_file(self._http, _repo(repository), branch, path, content, message)

    def put_asset(self, repository: str, tag: str, name: str, content: bytes) -> str:
        """See `Api.put_asset`."""
        return storage.put_asset(self._http, _repo(repository), tag, name, content)

    # asking

    def permission(self, repository: str, login: str) -> Permission:
        """See `Api.permission`. Maintain counts as write, triage as read, as GitHub's answer has it."""
        try:
            data = self._http.ask("GET", f"{_repo(repository)}/collaborators/{quote(login, safe='')}/permission")
        except GitHubError as error:
            if error.status == 404:
                return "none"
            raise
        said = data.get("permission")
        return said if said in get_args(Permission) else "none"

    def issue(self, repository: str, number: int) -> Issue:
        """See `Api.issue`."""
        return _read(Issue, self._http.ask("GET", f"{_repo(repository)}/issues/{number}"))

    def pull_request(self, repository: str, number: int) -> PullRequest:
        """See `Api.pull_request`."""
        return _read(PullRequest, self._http.ask("GET", f"{_repo(repository)}/pulls/{number}"))

    def pull_requests_of(self, repository: str, commit: str) -> Sequence[PullRequest]:
        """See `Api.pull_requests_of`."""
        listed = [_read(PullRequest, data) for data in self._http.pages(f"{_repo(repository)}/commits/{quote(commit, safe='')}/pulls")]
        return [pull for pull in listed if pull.state == "open" and pull.head.sha == commit]

    def default_branch(self, repository: str) -> str:
        """See `Api.default_branch`."""
        return _read(Repository, self._http.ask("GET", _repo(repository))).default_branch

    def commit(self, repository: str, ref: str) -> str:
        """See `Api.commit`."""
        sha = self._http.ask("GET", f"{_repo(repository)}/commits/{quote(ref, safe='')}").get("sha")
        if not isinstance(sha, str):
            raise GitHubError(f"GitHub names no commit for {ref!r}")
        return sha

    def pushed_at(self, repository: str, pull_request: PullRequest) -> datetime | None:
        """See `Api.pushed_at`.

        From the activity of the repository with the head, else from the first run that it set off. A commit's own dates are its
        author's to choose.
        """
        head = pull_request.head
        moments: list[datetime] = []
        try:
            if head.repo is not None:
                listed = self._http.ask("GET", f"{_repo(head.repo.full_name)}/activity", {"ref": f"refs/heads/{head.ref}", "per_page": 100})
                moments = [_moment(data["timestamp"]) for data in listed if data.get("after") == head.sha]
        except (GitHubError, KeyError, ValidationError):
            moments = []
        return max(moments) if moments else min((run.created_at for run in self.runs_of(repository, head.sha)), default=None)

    def environment_protected(self, repository: str, name: str) -> bool:
        """See `Api.environment_protected`."""
        try:
            data = self._http.ask("GET", f"{_repo(repository)}/environments/{quote(name, safe='')}")
        except GitHubError as error:
            if error.status == 404:
                return False
            raise
        return any(rule.get("type") == "required_reviewers" for rule in data.get("protection_rules") or [])

    def run(self, repository: str, run: int) -> Run:
        """See `Api.run`."""
        return _read(Run, self._http.ask("GET", f"{_repo(repository)}/actions/runs/{run}"))

    def runs_of(self, repository: str, commit: str) -> Sequence[Run]:
        """See `Api.runs_of`."""
        return [_read(Run, data) for data in self._http.pages(f"{_repo(repository)}/actions/runs", {"head_sha": commit}, "workflow_runs")]

    def last_run(self, repository: str, workflow: int, branch: str, before: datetime) -> Run | None:
        """See `Api.last_run`."""
        wanted = {"branch": branch, "status": "completed"}
        listed = self._http.pages(f"{_repo(repository)}/actions/workflows/{workflow}/runs", wanted, "workflow_runs", limit=1)
        runs = (_read(Run, data) for data in listed)
        return next(
            (
                run
                for run in runs
                # a pull request from a fork's branch of the same name is listed too
                if run.created_at < before and run.event in ("push", "schedule") and run.conclusion in ("success", "failure")
            ),
            None,
        )

    def jobs(self, repository: str, run: int) -> Sequence[WorkflowJob]:
        """See `Api.jobs`."""
        return [
            _read(WorkflowJob, data)
            for data in self._http.pages(f"{_repo(repository)}/actions/runs/{run}/jobs", {"filter": "latest"}, "jobs")
        ]

    def job_log(self, repository: str, job: int) -> str:
        """See `Api.job_log`."""
        return self._http.download(f"{_repo(repository)}/actions/jobs/{job}/logs", LOG_LIMIT).decode("utf-8", errors="replace")

    def artifacts(self, repository: str, run: int) -> Sequence[Artifact]:
        """See `Api.artifacts`."""
        return [_read(Artifact, data) for data in self._http.pages(f"{_repo(repository)}/actions/runs/{run}/artifacts", key="artifacts")]

    def artifact(self, repository: str, artifact: Artifact) -> bytes | None:
        """See `Api.artifact`."""
        if artifact.size > ARTIFACT_LIMIT:
            return None
        return self._http.download(f"{_repo(repository)}/actions/artifacts/{artifact.id}/zip", ARTIFACT_LIMIT)

    def cancel(self, repository: str, run: int) -> bool:
        """See `Api.cancel`."""
        try:
            self._http.ask("POST", f"{_repo(repository)}/actions/runs/{run}/cancel")
        except GitHubError as error:
            if error.status == 409:
                return False
            raise
        return True
