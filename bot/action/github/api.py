"""What the flows ask of GitHub. `bot.action.github.client.GitHub` answers it; tests answer it from memory.

`repository` is always `owner/name`. Every method may raise `GitHubError`.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Protocol

from bot.action.github.resources import Artifact, Comment, Issue, Permission, PullRequest, Reaction, Run, WorkflowJob


class Posting(Protocol):
    """What it takes to answer: comments, reactions, issues.

    Everywhere `repository` is `owner/name`, `issue` the number of an issue or pull request, `comment` the id of a comment,
    `marker` the hidden first line by which ours are found again, and `body` Markdown.
    """

    def login(self) -> str:
        """Who we are."""

    def comments(self, repository: str, issue: int) -> Sequence[Comment]:
        """All comments, oldest first."""

    def recent_comments(self, repository: str, since: datetime) -> Sequence[Comment]:
        """The comments on all issues that were written or edited since `since`, oldest first."""

    def own_comment(self, repository: str, issue: int, marker: str) -> Comment | None:
        """Our own comment whose body begins with `marker`."""

    def upsert_comment(self, repository: str, issue: int, marker: str, body: str, comment: int | None = None) -> Comment:
        """Write `body` into the comment `comment`, else into the one with the marker, else into a new one; never two.

        The marker is put before the body where it does not begin with it.
        """

    def react(self, repository: str, comment: int, reaction: Reaction) -> None:
        """Add `reaction` to a comment on an issue. Twice is once."""

    def open_issue(self, repository: str, marker: str, title: str, body: str) -> Issue:
        """The open issue of ours whose body begins with `marker`; where there is none, a new one with `title` and `body`."""

    def put_file(self, repository: str, branch: str, path: str, content: bytes, message: str) -> str:
        """Keep `content` as the file `path` on `branch`, in a commit with `message`. Its URL.

        A missing branch is created without history.
        """

    def put_asset(self, repository: str, tag: str, name: str, content: bytes) -> str:
        """Keep `content` as the asset `name` of the release with the tag `tag`, which is created where it is missing. Its URL."""


class Asking(Protocol):
    """What it takes to decide: who may, what commit, what failed.

    Everywhere `repository` is `owner/name`, `run` the id of a workflow run, `commit` a full hash.
    """

    def permission(self, repository: str, login: str) -> Permission:
        """What the account `login` may do; `none` for a stranger."""

    def issue(self, repository: str, number: int) -> Issue:
        """The issue with that `number`, or the issue that a pull request is."""

    def pull_request(self, repository: str, number: int) -> PullRequest:
        """The pull request with that `number`."""

    def pull_requests_of(self, repository: str, commit: str) -> Sequence[PullRequest]:
        """The open pull requests whose head is that commit."""

    def default_branch(self, repository: str) -> str:
        """The name of its default branch."""

    def commit(self, repository: str, ref: str) -> str:
        """The full hash that `ref`, a branch, tag or hash, stands for now."""

    def pushed_at(self, repository: str, pull_request: PullRequest) -> datetime | None:
        """When GitHub received the head of `pull_request`, by GitHub's own clock; None where it does not say."""

    def environment_protected(self, repository: str, name: str) -> bool:
        """Whether the environment `name` exists and somebody has to approve what runs in it."""

    def run(self, repository: str, run: int) -> Run:
        """A run of a workflow."""

    def runs_of(self, repository: str, commit: str) -> Sequence[Run]:
        """The runs for a commit, newest first."""

    def last_run(self, repository: str, workflow: int, branch: str, before: datetime) -> Run | None:
        """The newest finished run of a `workflow` (id) on a `branch`, by a push or a schedule, that began before `before`."""

    def jobs(self, repository: str, run: int) -> Sequence[WorkflowJob]:
        """The jobs of a run's last attempt."""

    def job_log(self, repository: str, job: int) -> str:
        """The end of the log of `job` (id): at most `client.LOG_LIMIT` bytes of it."""

    def artifacts(self, repository: str, run: int) -> Sequence[Artifact]:
        """The artifacts of a run."""

    def artifact(self, repository: str, artifact: Artifact) -> bytes | None:
        """The zip file of `artifact`; None where it is larger than `client.ARTIFACT_LIMIT`."""

    def cancel(self, repository: str, run: int) -> bool:
        """Cancel a run; false where it had ended before."""


class Api(Posting, Asking, Protocol):
    """All of it."""
