"""What the flows ask of GitHub. `bot.action.github.client.GitHub` answers it; tests answer it from memory.

`repository` is always `owner/name`. Every method may raise `GitHubError`.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Protocol

from bot.action.github.resources import Artifact, Comment, Issue, Permission, PullRequest, Reaction, Run, WorkflowJob


class Posting(Protocol):
    """What it takes to answer: comments, reactions, issues."""

    def login(self) -> str:
        """Who we are."""

    def comments(self, repository: str, issue: int) -> Sequence[Comment]:
        """All comments, oldest first."""

    def recent_comments(self, repository: str, since: datetime) -> Sequence[Comment]:
        """The comments on all issues that were written or edited since, oldest first."""

    def own_comment(self, repository: str, issue: int, marker: str) -> Comment | None:
        """Our own comment whose body begins with `marker`."""

    def upsert_comment(self, repository: str, issue: int, marker: str, body: str, comment: int | None = None) -> Comment:
        """Write `body` into the comment `comment`, else into the one with the marker, else into a new one; never two.

        The marker is put before the body where it does not begin with it.
        """

    def react(self, repository: str, comment: int, reaction: Reaction) -> None:
        """React to a comment on an issue. Twice is once."""

    def open_issue(self, repository: str, marker: str, title: str, body: str) -> Issue:
        """The open issue of ours whose body begins with `marker`; where there is none, a new one."""

    def put_file(self, repository: str, branch: str, path: str, content: bytes, message: str) -> str:
        """Keep a file on a branch, which is made without history where it is missing. Its URL."""

    def put_asset(self, repository: str, tag: str, name: str, content: bytes) -> str:
        """Keep a file as an asset of a release, which is made where it is missing. Its URL."""


class Asking(Protocol):
    """What it takes to decide: who may, what commit, what failed."""

    def permission(self, repository: str, login: str) -> Permission:
        """What an account may do; `none` for a stranger."""

    def issue(self, repository: str, number: int) -> Issue:
        """An issue, or the issue that a pull request is."""

    def pull_request(self, repository: str, number: int) -> PullRequest:
        """A pull request."""

    def pull_requests_of(self, repository: str, commit: str) -> Sequence[PullRequest]:
        """The open pull requests whose head is that commit."""

    def default_branch(self, repository: str) -> str:
        """Its name."""

    def commit(self, repository: str, ref: str) -> str:
        """The full hash that a branch, tag or hash stands for now."""

    def pushed_at(self, repository: str, pull_request: PullRequest) -> datetime | None:
        """When GitHub received the head of a pull request, by GitHub's own clock; None where it does not say."""

    def environment_protected(self, repository: str, name: str) -> bool:
        """Whether an environment exists and somebody has to approve what runs in it."""

    def run(self, repository: str, run: int) -> Run:
        """A run of a workflow."""

    def runs_of(self, repository: str, commit: str) -> Sequence[Run]:
        """The runs for a commit, newest first."""

    def last_run(self, repository: str, workflow: int, branch: str, before: datetime) -> Run | None:
        """The newest finished run of a workflow on a branch, by a push or a schedule, that began before."""

    def jobs(self, repository: str, run: int) -> Sequence[WorkflowJob]:
        """The jobs of a run's last attempt."""

    def job_log(self, repository: str, job: int) -> str:
        """The end of a job's log: at most `client.LOG_LIMIT` bytes of it."""

    def artifacts(self, repository: str, run: int) -> Sequence[Artifact]:
        """The artifacts of a run."""

    def artifact(self, repository: str, artifact: Artifact) -> bytes | None:
        """A zip file; None where it is larger than `client.ARTIFACT_LIMIT`."""

    def cancel(self, repository: str, run: int) -> bool:
        """Cancel a run; false where it had ended before."""


class Api(Posting, Asking, Protocol):
    """All of it."""
