"""GitHub's REST API, limited to the calls that are made here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from contextlib import suppress
from datetime import datetime, timezone
from typing import Any, get_args
from urllib.parse import quote

from pydantic import AwareDatetime, TypeAdapter, ValidationError

from bot.action.github import storage
from bot.action.github.answers import R, account_of, missing, number_of, read, wrong_keys
from bot.action.github.resources import (
    Artifact,
    Comment,
    Gist,
    Issue,
    Permission,
    PullRequest,
    Reaction,
    Repository,
    Run,
    Runner,
    User,
    WorkflowJob,
)
from bot.action.github.transport import GitHubError, Transport

LOG_LIMIT = 32 << 20
ARTIFACT_LIMIT = 64 << 20
# Comments of ours with one marker that somebody may have deleted while the list still shows them.
_MOST_DELETED = 5
# GITHUB_TOKEN may not ask who it is.
ACTIONS_LOGIN = "github-actions[bot]"

_MOMENT = TypeAdapter[datetime](AwareDatetime)


def _open_at(listed: Sequence[PullRequest], commit: str) -> Sequence[PullRequest]:
    return [pull for pull in listed if pull.state == "open" and pull.head.sha == commit]


def _repo(repository: str) -> str:
    owner, _, name = repository.partition("/")
    return f"/repos/{quote(owner, safe='')}/{quote(name, safe='')}"


class GitHub:
    """All requests to GitHub, through `http`. `login` is the owner of the token; GitHub is asked if it is not given.

    Everywhere, `repository` is `owner/name`, `issue` the number of an issue or pull request, `comment` the id of a comment, `marker` the
    hidden first line by which our comments are found again, `body` Markdown, `run` the id of a workflow run, `commit` a full hash. Every
    method may raise `GitHubError`.
    """

    def __init__(self, http: Transport, login: str | None = None) -> None:
        self._http, self._login = http, login

    def at_once(self) -> GitHub:
        """The same GitHub, asked only once and given up on soon: for decoration."""
        return GitHub(self._http.at_once(), self._login)

    def _all(self, kind: type[R], path: str, parameters: Mapping[str, Any] | None = None, key: str = "", limit: int = 10) -> list[R]:
        return [read(kind, data) for data in self._http.pages(path, parameters, key, limit)]

    def now(self) -> datetime:
        """The time by GitHub's clock, which can be compared with its timestamps; this machine's may be wrong."""
        return datetime.fromtimestamp(self._http.now(), timezone.utc)

    # answering

    def login(self) -> str:
        """Who we are: `github-actions[bot]` if the token may not ask."""
        if self._login is None:
            try:
                self._login = read(User, self._http.ask("GET", "/user")).login
            except GitHubError as error:
                if error.status not in (401, 403, 404):
                    raise
                # an App's token may only ask there, like that of a workflow
                self._login = self._http.viewer() or ACTIONS_LOGIN
        return self._login

    def is_ours(self, comment: Comment) -> bool:
        """Whether we wrote `comment`. GitHub accepts a login in any case, so an input may have it in another case, or an App's name for
        it.

        No App has the name of somebody else's account (GitHub's documentation of registering an App).
        """
        ours = self.login().lower()
        return comment.user.login.lower() in (ours, f"{ours}[bot]")

    def comments(self, repository: str, issue: int) -> Sequence[Comment]:
        """All comments, oldest first."""
        return self._all(Comment, f"{_repo(repository)}/issues/{issue}/comments", limit=50)

    def recent_comments(self, repository: str, since: datetime) -> Sequence[Comment]:
        """The comments on all issues that were written or edited since `since`, newest first; not all of them if there are very many."""
        wanted = {"since": since.astimezone(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"), "sort": "created", "direction": "desc"}
        return self._all(Comment, f"{_repo(repository)}/issues/comments", wanted, limit=100)

    def own_comment(self, repository: str, issue: int, marker: str, hint: int | None = None) -> Comment | None:
        """Our own comment whose body begins with `marker`.

        `hint` is its possible id, which may come from others: that one is tried first, since a list may lag behind.
        """
        return self._own(repository, issue, marker, hint)

    def _own(self, repository: str, issue: int, marker: str, hint: int | None = None, gone: Set[int] = frozenset()) -> Comment | None:
        if hint is not None and hint not in gone:
            with suppress(GitHubError):  # then by the list
                held = read(Comment, self._http.ask("GET", f"{_repo(repository)}/issues/comments/{hint}"))
                if held.issue == issue and self.is_ours(held) and held.body.startswith(marker):
                    return held
        listed = (comment for comment in self.comments(repository, issue) if comment.id not in gone)
        return next((comment for comment in listed if self.is_ours(comment) and comment.body.startswith(marker)), None)

    def upsert_comment(
        self, repository: str, issue: int, marker: str, body: str, comment: int | None = None, hint: int | None = None
    ) -> Comment:
        """Write `body` into the comment `comment`, otherwise into the one with the marker, otherwise into a new one; never into two.

        The marker is put before the body unless it begins with it; `hint` is as for `own_comment`.
        """
        text = body if body.startswith(marker) else f"{marker}\n{body}"
        at, gone = f"{_repo(repository)}/issues", set[int]()

        def edited(known: int) -> Comment | None:
            for _ in range(2):  # what GitHub calls missing once may be there
                with missing():
                    return read(Comment, self._http.ask("PATCH", f"{at}/comments/{known}", body={"body": text}))
            gone.add(known)  # somebody deleted it, though a list may still show it
            return None

        def find() -> Any:
            found = self._own(repository, issue, marker, gone=gone)
            return found.model_dump() if found else None

        if comment is not None and (written := edited(comment)) is not None:
            return written
        for _ in range(_MOST_DELETED):
            known = self._own(repository, issue, marker, hint, gone)
            if known is None:
                known = read(Comment, self._http.create(f"{at}/{issue}/comments", {"body": text}, find))
                if known.user.id:  # our own comment says who we are, if no input does, or if the input is only an App's name
                    self._login = known.user.login
            if known.body == text:
                return known
            if (written := edited(known.id)) is not None:
                return written
        raise GitHubError("its comments are deleted as soon as they are there", 404)

    def delete_comment(self, repository: str, comment: int) -> None:
        """Delete a comment; it may be gone already."""
        with missing():
            self._http.ask("DELETE", f"{_repo(repository)}/issues/comments/{comment}", kind=object)

    def react(self, repository: str, comment: int, reaction: Reaction) -> None:
        """Add `reaction` to a comment on an issue. Twice has no effect."""
        self._http.ask("POST", f"{_repo(repository)}/issues/comments/{comment}/reactions", body={"content": reaction}, kind=object)

    def open_issue(self, repository: str, marker: str, title: str, body: str) -> Issue:
        """Our open issue whose body begins with `marker`; if there is none, a new one with `title` and `body`.

        Of two that are created at the same moment, the older stays open.
        """
        at = f"{_repo(repository)}/issues"

        def find() -> Any:
            # The list, not the search, which lags by minutes. Its end first: it may be long if others write under our login.
            wanted = {"state": "open", "creator": self.login(), "sort": "created", "direction": "desc"}
            listed = (data for data in self._http.pages(at, wanted, limit=30) if isinstance(data, dict))
            return min((data for data in listed if str(data.get("body") or "").startswith(marker)), key=number_of, default=None)

        if (found := find()) is not None:
            return read(Issue, found)
        made = read(Issue, self._http.create(at, {"title": title, "body": f"{marker}\n{body}"}, find))
        with suppress(GitHubError):  # one issue too many does little harm, and the list may lag
            first = read(Issue, find())
            if first.number != made.number:
                with suppress(GitHubError):
                    self._http.ask("PATCH", f"{at}/{made.number}", body={"state": "closed", "state_reason": "not_planned"})
                return first
        return made

    def put_file(self, repository: str, branch: str, path: str, content: bytes, message: str) -> str:
        """Write `content` as the file `path` on `branch`, replacing an existing one, in a commit with `message`. Returns its URL.

        A missing branch is created without history.
        """
        with wrong_keys():
            return storage.put_file(self._http, _repo(repository), branch, path, content, message)

    def put_asset(self, repository: str, tag: str, name: str, content: bytes) -> str:
        """Write `content` as the asset `name`, replacing an existing one, of the release with the tag `tag`, which is created if missing.
        Returns its URL."""
        with wrong_keys():
            return storage.put_asset(self._http, _repo(repository), tag, name, content)

    # asking

    def permission(self, repository: str, user: User) -> Permission:
        """What the account `user` may do; `none` for a stranger. As in GitHub's answer, maintain counts as write, triage as read.

        GitHub's question is by name. An account may have been renamed, and its old name taken by somebody else. So an answer counts only
        if it is about this very account, or, if it does not say, about the name that GitHub says this account has now.
        """
        data = self._permission_of(repository, user.login)
        if account_of(data) != user.id:
            name = self._name_now(user)
            if name is None:
                return "none"
            if name.lower() != user.login.lower():
                data = self._permission_of(repository, name)
        said: Any = data.get("permission")
        return said if said in get_args(Permission) and account_of(data) in (None, user.id) else "none"

    def _name_now(self, user: User) -> str | None:
        """The current login of an account, which may have changed; None if GitHub knows none, or does not tell."""
        try:
            found = self._http.find(f"/user/{user.id}")
        except GitHubError as error:
            if error.status not in (401, 403):
                raise
            return None
        now = read(User, found or {})
        return now.login if now.id == user.id else None

    def _permission_of(self, repository: str, login: str) -> Mapping[str, Any]:
        return self._http.find(f"{_repo(repository)}/collaborators/{quote(login, safe='')}/permission") or {}

    def repository(self, repository: str) -> Repository:
        """The repository itself."""
        return read(Repository, self._http.ask("GET", _repo(repository)))

    def issue(self, repository: str, number: int) -> Issue:
        """The issue, or pull request, with that `number`; if it was transferred, the current one."""
        return read(Issue, self._http.ask("GET", f"{_repo(repository)}/issues/{number}"))

    def pull_request(self, repository: str, number: int) -> PullRequest:
        """The pull request with that `number`."""
        return read(PullRequest, self._http.ask("GET", f"{_repo(repository)}/pulls/{number}"))

    def pull_requests_of(self, repository: str, commit: str) -> Sequence[PullRequest]:
        """The open pull requests with that `commit` as their head, if it was pushed to the repository itself: GitHub finds none from a
        fork."""
        try:
            listed = self._all(PullRequest, f"{_repo(repository)}/commits/{quote(commit, safe='')}/pulls")
        except GitHubError as error:
            if error.status != 422:  # the repository has no such commit any more
                raise
            return []
        return _open_at(listed, commit)

    def pull_requests_from(self, repository: str, owner: str, branch: str, commit: str) -> Sequence[PullRequest]:
        """The open pull requests from a `branch` of the fork of `owner` whose head is `commit`."""
        listed = self._all(PullRequest, f"{_repo(repository)}/pulls", {"state": "open", "head": f"{owner}:{branch}"}, limit=1)
        return _open_at(listed, commit)

    def files_at(self, repository: str, commit: str) -> Sequence[str]:
        """The paths of the files at a `commit`; an error for a very large repository, of which GitHub lists only some."""
        data = self._http.ask("GET", f"{_repo(repository)}/git/trees/{quote(commit, safe='')}", {"recursive": "1"})
        if data.get("truncated"):
            raise GitHubError(f"GitHub does not list all files at {commit}")
        listed = data.get("tree")
        entries = listed if isinstance(listed, list) else []
        return [str(entry["path"]) for entry in entries if isinstance(entry, dict) and entry.get("type") == "blob" and "path" in entry]

    def commit(self, repository: str, ref: str) -> str:
        """The full hash that `ref`, a branch, tag or hash, refers to now."""
        sha = self._http.ask("GET", f"{_repo(repository)}/commits/{quote(ref, safe='')}").get("sha")
        if not isinstance(sha, str):
            raise GitHubError(f"GitHub names no commit for {ref!r}")
        return sha

    def stands_on(self, repository: str, commit: str, branch: str) -> bool:
        """Whether the first parent of `commit` is on `branch`."""
        at = _repo(repository)
        with wrong_keys():
            parents = self._http.ask("GET", f"{at}/commits/{quote(commit, safe='')}")["parents"]
            first = str(parents[0]["sha"]) if parents else commit
            found = self._http.find(f"{at}/compare/{quote(first, safe='')}...{quote(branch, safe='')}", {"per_page": 1}) or {}
            return found.get("status") in ("ahead", "identical")

    def pushed_at(self, repository: str, pull_request: PullRequest) -> datetime | None:
        """When GitHub received the head of `pull_request`, by GitHub's own clock; None if it does not say.

        From the activity of the head's repository, otherwise from the first run that it triggered, unless the branch was elsewhere since
        then: a commit may be pushed, replaced and pushed again. A commit's own dates are chosen by its author.
        """
        head = pull_request.head
        moments: list[datetime] = []
        try:
            if head.repo is not None:
                listed = self._http.ask(
                    "GET", f"{_repo(head.repo.full_name)}/activity", {"ref": f"refs/heads/{head.ref}", "per_page": 100}, kind=list
                )
                mine = (data for data in listed if isinstance(data, dict) and data.get("after") == head.sha)
                moments = [_MOMENT.validate_python(data["timestamp"]) for data in mine]
        except (GitHubError, KeyError, ValidationError):
            pass  # the runs show it as well
        if moments:
            return max(moments)
        first = min((run.created_at for run in self.runs_of(repository, head.sha)), default=None)
        branch = self._all(Run, f"{_repo(repository)}/actions/runs", {"branch": head.ref}, "workflow_runs", limit=1)
        moved = any(first is not None and run.created_at > first and run.head_sha != head.sha for run in branch)
        return None if moved else first

    def environment_protected(self, repository: str, name: str) -> bool:
        """Whether the environment `name` exists and runs in it need approval."""
        data = self._http.find(f"{_repo(repository)}/environments/{quote(name, safe='')}") or {}
        rules = data.get("protection_rules")
        return isinstance(rules, list) and any(isinstance(rule, dict) and rule.get("type") == "required_reviewers" for rule in rules)

    def run(self, repository: str, run: int) -> Run:
        """A workflow run."""
        return read(Run, self._http.ask("GET", f"{_repo(repository)}/actions/runs/{run}"))

    def runs_of(self, repository: str, commit: str) -> Sequence[Run]:
        """The runs for a commit, newest first."""
        return self._all(Run, f"{_repo(repository)}/actions/runs", {"head_sha": commit}, "workflow_runs")

    def recent_runs(self, repository: str) -> Sequence[Run]:
        """The last runs of all workflows, newest first."""
        return self._all(Run, f"{_repo(repository)}/actions/runs", key="workflow_runs", limit=1)

    def runners(self, repository: str) -> Sequence[Runner] | None:
        """The runners of the repository itself; None if the token may not ask, like that of a workflow."""
        try:
            return self._all(Runner, f"{_repo(repository)}/actions/runners", key="runners")
        except GitHubError as error:
            if error.status not in (401, 403, 404):
                raise
            return None

    def last_run(self, repository: str, workflow: int, branch: str, before: datetime) -> Run | None:
        """The newest finished run of a `workflow` (id) on a `branch`, by a push or a schedule, that began before `before`.

        Also None if the repository has no such workflow, for example because an organization's rule runs it, or its file was deleted.
        """
        at, found = f"{_repo(repository)}/actions/workflows/{workflow}/runs", []
        wanted = {"branch": branch, "status": "completed", "created": f"<{before.astimezone(timezone.utc):%Y-%m-%dT%H:%M:%SZ}"}
        for event in ("push", "schedule"):  # a page of all may be full of later runs, and of those of same-named branches in forks
            try:
                found += [run for run in self._all(Run, at, wanted | {"event": event}, "workflow_runs", limit=1) if run.event == event]
            except GitHubError as error:
                if error.status != 404:
                    raise
        ended = (run for run in found if run.created_at < before and run.conclusion in ("success", "failure"))
        return max(ended, key=lambda run: run.created_at, default=None)

    def jobs(self, repository: str, run: int, *, every: bool = False) -> Sequence[WorkflowJob]:
        """The jobs of a run's last attempt; with `every` those of all attempts: more than a thousand for a large repository."""
        wanted = {"filter": "all" if every else "latest"}
        return self._all(WorkflowJob, f"{_repo(repository)}/actions/runs/{run}/jobs", wanted, "jobs", limit=50)

    def job_log(self, repository: str, job: int) -> str:
        """The end of the log of `job` (id): at most `LOG_LIMIT` bytes of it."""
        return self._http.download(f"{_repo(repository)}/actions/jobs/{job}/logs", LOG_LIMIT).decode("utf-8", errors="replace")

    def artifacts(self, repository: str, run: int) -> Sequence[Artifact]:
        """The artifacts of a run."""
        return self._all(Artifact, f"{_repo(repository)}/actions/runs/{run}/artifacts", key="artifacts", limit=50)

    def artifact(self, repository: str, artifact: Artifact) -> bytes | None:
        """The zip file of `artifact`; None if it is larger than `ARTIFACT_LIMIT` bytes."""
        if artifact.size > ARTIFACT_LIMIT:
            return None
        return self._http.download(f"{_repo(repository)}/actions/artifacts/{artifact.id}/zip", ARTIFACT_LIMIT)

    def attachment(self, url: str, limit: int) -> bytes | None:
        """The attached file at `url`; None if it has more than `limit` bytes."""
        return self._http.fetch(url, limit)

    def gist(self, name: str, revision: str | None = None) -> Gist:
        """The gist `name`, as it is or as it was in a `revision`. GitHub leaves out what exceeds a megabyte."""
        with wrong_keys():
            data = self._http.ask("GET", "/".join(["/gists", *(quote(part, safe="") for part in (name, revision) if part)]))
            files = data["files"].values()
            texts = {str(file["filename"]): str(file["content"]) for file in files if file is not None and not file.get("truncated")}
            return read(Gist, {"texts": texts, "updated_at": data["updated_at"]})

    def cancel(self, repository: str, run: int) -> bool:
        """Cancel a run; returns false if it had ended before, and raises an error if GitHub refuses although it has not."""
        try:
            self._http.ask("POST", f"{_repo(repository)}/actions/runs/{run}/cancel", kind=object)
        except GitHubError as error:
            # it conflicts with the end of the run; also with a start that GitHub has not processed yet, and that would go on
            if error.status != 409 or self.run(repository, run).status != "completed":
                raise
            return False
        return True
