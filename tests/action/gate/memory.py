"""A GitHub in memory, which answers as `bot.action.github.client.GitHub` does, and the events that it would send.

Checked against GitHub's own examples of events (@octokit/webhooks-examples): tests/action/gate/test_gate.py reads them by the models that
it is made of. Kinder than GitHub: it always answers, and knows one repository.
"""

from __future__ import annotations

import io
import zipfile
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

from bot.action.github.client import GitHub
from bot.action.github.resources import (
    Artifact,
    Branch,
    Comment,
    Gist,
    Issue,
    IssueComment,
    Permission,
    PullRequest,
    Reaction,
    Repository,
    Run,
    Runner,
    User,
    WorkflowJob,
    WorkflowRun,
)
from bot.action.github.transport import GitHubError, Transport
from bot.action.settings import Settings

REPO, BOT = "octo/models", "github-actions[bot]"
NOW = datetime(2026, 11, 3, 12, 0, tzinfo=timezone.utc)
HEAD, MAIN = "a" * 40, "b" * 40
LOGS = Path(__file__).resolve().parents[2] / "fixtures" / "ci" / "logs"

SCRIPT = "import torch\n\n\ndef f(x):\n    return x + 1\n\n\ntorch.compile(f)(torch.ones(2))\n"
BLOCK = f"```python\n{SCRIPT}```"


def settings(**inputs: Any) -> Settings:
    """Those of a run in the repository."""
    return Settings.model_construct(
        **(Settings.model_construct().model_dump() | {"repository": REPO, "run_id": 77, "in_actions": False} | inputs)
    )


def zipped(files: dict[str, bytes]) -> bytes:
    """An artifact."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return buffer.getvalue()


def user(login: str) -> User:
    return User(login=login, id=zlib.crc32(login.encode()))


class Nowhere(Transport):
    """A question that `Memory` does not answer itself must not go out to GitHub."""

    def __init__(self) -> None:
        pass

    def __getattribute__(self, name: str) -> Any:
        raise AssertionError(f"Memory has no answer for Transport.{name}")


@dataclass
class Memory(GitHub):
    """What is there, and what was done to it."""

    permissions: dict[str, Permission] = field(default_factory=lambda: {"maintainer": "write"})
    written: dict[int, list[Comment]] = field(default_factory=dict)
    reactions: list[tuple[int, Reaction]] = field(default_factory=list)
    pulls: dict[int, PullRequest] = field(default_factory=dict)
    runs: dict[int, Run] = field(default_factory=dict)
    run_jobs: dict[int, list[WorkflowJob]] = field(default_factory=dict)
    logs: dict[int, str] = field(default_factory=dict)
    zips: dict[int, dict[str, bytes]] = field(default_factory=dict)
    reruns: dict[int, list[Artifact]] = field(default_factory=dict)  # artifacts of all attempts of a run, whose zips have the same numbers
    issues: dict[int, Issue] = field(default_factory=dict)
    protected: set[str] = field(default_factory=set)
    pushed: datetime | None = NOW - timedelta(hours=1)
    stacked: set[str] = field(default_factory=set)  # commits of a merge queue that are made upon others of it
    tree: list[str] = field(default_factory=list)
    asked_for_files: list[tuple[str, str]] = field(default_factory=list)
    cancelled: list[int] = field(default_factory=list)
    silent: bool = False  # takes no comment
    no_issues: bool = False  # they are disabled: 410 (REST documentation, "Create an issue")
    archived: bool = False
    earlier_names: set[str] = field(default_factory=set)  # a renamed one: GitHub answers 301, which is followed (REST, "Follow redirects")
    others: set[str] = field(default_factory=set)  # repositories that may be read as well
    files: dict[str, bytes] = field(default_factory=dict)  # what is attached, by its address
    gists: dict[str, dict[str, str]] = field(default_factory=dict)
    gists_changed: datetime = NOW - timedelta(hours=1)

    def __post_init__(self) -> None:
        super().__init__(Nowhere(), BOT)

    def now(self) -> datetime:
        return NOW

    def at_once(self) -> Memory:
        return self

    def attachment(self, url: str, limit: int) -> bytes | None:
        if url not in self.files:
            raise GitHubError("404", 404)
        return self.files[url] if len(self.files[url]) <= limit else None

    def gist(self, name: str, revision: str | None = None) -> Gist:
        name = f"{name}/{revision}" if revision else name
        if name not in self.gists:
            raise GitHubError("404", 404)
        return Gist(texts=self.gists[name], updated_at=self.gists_changed)

    def comments(self, repository: str, issue: int) -> Sequence[Comment]:
        return list(self.written.get(issue, []))

    def recent_comments(self, repository: str, since: datetime) -> Sequence[Comment]:
        return [comment for comments in self.written.values() for comment in comments if comment.created_at >= since]

    def own_comment(self, repository: str, issue: int, marker: str, hint: int | None = None) -> Comment | None:
        # asked for by its id, a comment is there at once; a list may lag behind
        held = next((comment for comment in self.written.get(issue, []) if comment.id == hint), None)
        if held is not None and self.is_ours(held) and held.body.startswith(marker):
            return held
        return super().own_comment(repository, issue, marker)

    def add(self, issue: int, login: str, body: str) -> Comment:
        number = 1000 + sum(map(len, self.written.values()))
        at = f"https://api.github.com/repos/{REPO}/issues/{issue}"
        url = f"https://github.com/{REPO}/issues/{issue}#c{number}"
        comment = Comment(id=number, body=body, user=user(login), created_at=NOW, html_url=url, issue_url=at)
        self.written.setdefault(issue, []).append(comment)
        return comment

    def upsert_comment(
        self, repository: str, issue: int, marker: str, body: str, comment: int | None = None, hint: int | None = None
    ) -> Comment:
        if self.silent:
            raise GitHubError("POST: 502", 502)
        text = body if body.startswith(marker) else f"{marker}\n{body}"
        held = next((c for c in self.written.get(issue, []) if c.id == comment), None)
        known = held or self.own_comment(repository, issue, marker, hint)
        if known is None:
            return self.add(issue, BOT, text)
        changed = known.model_copy(update={"body": text})
        self.written[issue][self.written[issue].index(known)] = changed
        return changed

    def delete_comment(self, repository: str, comment: int) -> None:
        for held in self.written.values():
            held[:] = [each for each in held if each.id != comment]

    def react(self, repository: str, comment: int, reaction: Reaction) -> None:
        self.reactions.append((comment, reaction))

    def open_issue(self, repository: str, marker: str, title: str, body: str) -> Issue:
        if self.no_issues:
            raise GitHubError("POST: 410 Issues has been disabled in this repository.", 410)
        found = next((issue for issue in self.issues.values() if issue.body.startswith(marker)), None)
        if found is None:
            found = Issue(number=500 + len(self.issues), title=title, body=f"{marker}\n{body}", user=user(BOT))
            self.issues[found.number] = found
        return found

    def put_file(self, repository: str, branch: str, path: str, content: bytes, message: str) -> str:
        raise NotImplementedError

    def put_asset(self, repository: str, tag: str, name: str, content: bytes) -> str:
        raise NotImplementedError

    def permission(self, repository: str, user: User) -> Permission:
        return self.permissions.get(user.login, "none")

    def repository(self, repository: str) -> Repository:
        return Repository(full_name=repository, archived=self.archived, has_issues=not self.no_issues)

    def issue(self, repository: str, number: int) -> Issue:
        return asked("", issue=number).issue

    def pull_request(self, repository: str, number: int) -> PullRequest:
        if number not in self.pulls:
            raise GitHubError("GET: 404", 404)
        return self.pulls[number]

    def pull_requests_of(self, repository: str, commit: str) -> Sequence[PullRequest]:
        # GitHub answers [] for a commit that was pushed to a fork alone (TooTallNate/nx.js#410 measured it; quarkusio/pt.quarkus.io#389)
        return [pull for pull in self.pulls.values() if pull.head.sha == commit and not pull.from_fork]

    def pull_requests_from(self, repository: str, owner: str, branch: str, commit: str) -> Sequence[PullRequest]:
        # `head` of GET /repos/{owner}/{repo}/pulls is `user:ref-name`, by GitHub's documentation; a fork that is gone has no user
        heads = [(pull, pull.head.repo.full_name.partition("/")[0]) for pull in self.pulls.values() if pull.head.repo is not None]
        return [pull for pull, user in heads if (user, pull.head.ref, pull.head.sha) == (owner, branch, commit)]

    def files_at(self, repository: str, commit: str) -> Sequence[str]:
        self.asked_for_files.append((repository, commit))
        return self.tree

    def commit(self, repository: str, ref: str) -> str:
        return MAIN

    def stands_on(self, repository: str, commit: str, branch: str) -> bool:
        return commit not in self.stacked

    def pushed_at(self, repository: str, pull_request: PullRequest) -> datetime | None:
        return self.pushed

    def environment_protected(self, repository: str, name: str) -> bool:
        return name in self.protected

    def run(self, repository: str, run: int) -> Run:
        if run not in self.runs or repository not in (REPO, *self.earlier_names, *self.others):
            raise GitHubError("GET: 404", 404)
        of = REPO if repository in self.earlier_names else repository
        return self.runs[run].model_copy(update={"repository": Repository(full_name=of)})

    def runs_of(self, repository: str, commit: str) -> Sequence[Run]:
        return [run for run in self.runs.values() if run.head_sha == commit]

    def recent_runs(self, repository: str) -> Sequence[Run]:
        return list(self.runs.values())

    def runners(self, repository: str) -> Sequence[Runner] | None:
        # GITHUB_TOKEN may not list them: GitHub answers 403, and the client gives None
        return None

    def last_run(self, repository: str, workflow: int, branch: str, before: datetime) -> Run | None:
        found = [run for run in self.runs.values() if run.head_branch == branch and run.created_at < before and run.event == "push"]
        return max(found, key=lambda run: run.created_at, default=None)

    def jobs(self, repository: str, run: int, *, every: bool = False) -> Sequence[WorkflowJob]:
        jobs = self.run_jobs.get(run, [])
        last = max((job.run_attempt for job in jobs), default=1)
        return [job for job in jobs if every or job.run_attempt == last]

    def job_log(self, repository: str, job: int) -> str:
        if job not in self.logs:
            raise GitHubError("GET: 410", 410)
        return self.logs[job]

    def artifacts(self, repository: str, run: int) -> Sequence[Artifact]:
        once = [Artifact(id=run, name=name, size=len(content)) for name, content in self.zips.get(run, {}).items()]
        return [*once, *self.reruns.get(run, [])]

    def artifact(self, repository: str, artifact: Artifact) -> bytes | None:
        return self.zips[artifact.id][artifact.name]

    def cancel(self, repository: str, run: int) -> bool:
        self.cancelled.append(run)
        return True

    # what the tests put there

    def add_pull(self, number: int = 7, fork: str | None = None, *, gone: bool = False) -> PullRequest:
        # null where a fork was deleted (GitHub's description of the API: `head.repo` is nullable)
        head = Branch(ref="topic", sha=HEAD, repo=None if gone else Repository(full_name=fork or REPO))
        base = Branch(ref="main", sha=MAIN, repo=Repository(full_name=REPO))
        self.pulls[number] = PullRequest(
            number=number, head=head, base=base, user=user("contributor"), html_url=f"https://github.com/{REPO}/pull/{number}"
        )
        return self.pulls[number]

    def add_run(
        self, run: int, log: str | None, *, sha: str = HEAD, branch: str = "topic", event: str = "pull_request", hours: float = 1.0
    ) -> Run:
        """A finished run with one job; red where there is the name of a recorded log."""
        conclusion = "failure" if log else "success"
        self.runs[run] = Run(
            id=run, workflow_id=3, event=event, status="completed", conclusion=conclusion, head_sha=sha, head_branch=branch,
            head_repository=Repository(full_name=REPO), created_at=NOW - timedelta(hours=hours), html_url=f"https://github.com/{REPO}/actions/runs/{run}",
        )  # fmt: skip
        self.run_jobs[run] = [WorkflowJob(id=run * 10, name="tests", run_id=run, conclusion=conclusion)]
        if log:
            self.logs[run * 10] = (LOGS / f"{log}.txt").read_bytes().decode()
        return self.runs[run]


def asked(
    body: str,
    *,
    by: str = "maintainer",
    sender: str | None = None,
    issue: int = 7,
    issue_body: str = "",
    issue_title: str = "",
    pull: bool = False,
    **comment: Any,
) -> IssueComment:
    """The event of a comment."""
    return IssueComment.model_validate(
        {
            "action": "created",
            "comment": {
                "id": 4242,
                "body": body,
                "user": user(by).model_dump(),
                "created_at": NOW,
                "html_url": f"https://github.com/{REPO}/issues/{issue}#c",
            }
            | comment,
            "issue": {
                "id": 7_000 + issue,
                "number": issue,
                "title": issue_title,
                "body": issue_body,
                "user": user("reporter").model_dump(),
                "html_url": f"https://github.com/{REPO}/issues/{issue}",
            }
            | ({"pull_request": {"url": "x"}} if pull else {}),
            "repository": {"full_name": REPO, "default_branch": "main"},
            "sender": user(sender or by).model_dump(),
        }
    )


def finished(run: Run, **changes: Any) -> WorkflowRun:
    """The event of a finished run."""
    told = run.model_dump(exclude={"actor"}) | {"name": "tests", "actor": user("pusher").model_dump()} | changes
    return WorkflowRun.model_validate(
        {"action": "completed", "workflow_run": told, "repository": {"full_name": REPO, "default_branch": "main"}}
    )
