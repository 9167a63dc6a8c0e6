"""The parts that we read of GitHub's API answers and events. Unknown keys are ignored, since the API grows.

The text in them is hostile: only types are checked.
"""

from __future__ import annotations

import re
from typing import Any, Literal

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, model_validator

_MERGE_QUEUE = re.compile(r"gh-readonly-queue/.+/pr-([0-9]{1,9})-[0-9a-f]{40}")
Permission = Literal["admin", "write", "read", "none"]
Reaction = Literal["eyes", "rocket", "confused"]


class Resource(BaseModel):
    """Base of all resources: immutable; unknown keys are ignored, and null counts as a missing key."""

    model_config = ConfigDict(frozen=True, extra="ignore", populate_by_name=True)

    @model_validator(mode="before")
    @classmethod
    def _without_null(cls, given: Any) -> Any:
        return {key: value for key, value in given.items() if value is not None} if isinstance(given, dict) else given


class User(Resource):
    """An account. GitHub shows a deleted account as null; here it becomes `ghost`."""

    login: str = "ghost"
    id: int = 0
    type: str = "User"

    @property
    def is_bot(self) -> bool:
        """Whether the account is not a person's. Bots that answer each other would never stop."""
        return self.type != "User" or self.login.endswith("[bot]")


class Authored(Resource):
    """What somebody wrote."""

    user: User = User()


class Comment(Authored):
    """A comment on an issue or pull request."""

    id: int
    body: str = ""
    created_at: AwareDatetime
    html_url: str = ""
    issue_url: str = ""

    @property
    def issue(self) -> int | None:
        """The number of the issue or pull request that it was written on."""
        number = self.issue_url.rpartition("/")[2]
        return int(number) if number.isdecimal() else None


class Issue(Authored):
    """An issue; a pull request is one too, with `pull_request` set."""

    id: int = 0
    number: int
    title: str = ""
    body: str = ""
    html_url: str = ""
    pull_request: dict[str, Any] | None = None
    locked: bool = False


class Repository(Resource):
    """A repository."""

    id: int = 0
    full_name: str
    default_branch: str = "main"
    archived: bool = False
    has_issues: bool = True

    def is_same(self, other: Repository | None) -> bool:
        """Whether it is the `other`, which may have been read under an earlier name. Compares names if an id is not known."""
        if other is None:
            return False
        return self.id == other.id if self.id and other.id else self.full_name.lower() == other.full_name.lower()


class Branch(Resource):
    """One end of a pull request. `repo` is null if the fork was deleted."""

    ref: str
    sha: str
    repo: Repository | None = None


class PullRequest(Authored):
    """A pull request."""

    number: int
    state: str = "open"
    head: Branch
    base: Branch
    html_url: str = ""

    @property
    def from_fork(self) -> bool:
        """Whether its commits come from another repository, or from one that no longer exists."""
        return self.head.repo is None or not self.head.repo.is_same(self.base.repo)


class ReferencedWorkflow(Resource):
    """A workflow that a run calls, as `owner/name/.github/workflows/file.yml@ref`."""

    path: str = ""


class Run(Resource):
    """A run of a workflow."""

    id: int
    name: str | None = None
    workflow_id: int = 0
    event: str = ""
    status: str | None = None
    conclusion: str | None = None  # success, failure, cancelled, timed_out, ...: GitHub adds to them
    head_sha: str
    head_branch: str | None = None
    head_repository: Repository | None = None
    repository: Repository | None = None
    run_attempt: int = 1
    created_at: AwareDatetime
    run_started_at: AwareDatetime | None = None  # of its last attempt, where GitHub says so
    updated_at: AwareDatetime | None = None
    html_url: str = ""
    actor: User = User()
    referenced_workflows: tuple[ReferencedWorkflow, ...] = ()

    @property
    def queued_pull_request(self) -> int | None:
        """The pull request that a merge queue tries in this run: its branch is `gh-readonly-queue/BASE/pr-NUMBER-COMMIT`."""
        found = _MERGE_QUEUE.fullmatch(self.head_branch or "") if self.event == "merge_group" else None
        return int(found[1]) if found else None

    def called(self) -> frozenset[str]:
        """The workflows that it calls, at any commit."""
        return frozenset(each.path.partition("@")[0].lower() for each in self.referenced_workflows)


class Step(Resource):
    """A step of a job: of the workflow, or one of the runner's own like `Initialize containers`."""

    name: str = ""
    conclusion: str | None = None


class WorkflowJob(Resource):
    """A job of a run. If it has no steps and no `runner_name`, no runner took it."""

    id: int
    name: str
    status: str = ""
    conclusion: str | None = None
    runner_name: str = ""
    run_attempt: int = 1
    labels: tuple[str, ...] = ()
    steps: tuple[Step, ...] = ()
    started_at: AwareDatetime | None = None
    completed_at: AwareDatetime | None = None


class RunnerLabel(Resource):
    """A label of a runner."""

    name: str = ""


class Runner(Resource):
    """A machine for jobs."""

    name: str = ""
    status: str = ""  # online, offline
    labels: tuple[RunnerLabel, ...] = ()

    @property
    def label_names(self) -> tuple[str, ...]:
        """Its labels."""
        return tuple(label.name for label in self.labels)


class Artifact(Resource):
    """An artifact of a run."""

    id: int
    name: str
    size: int = Field(default=0, alias="size_in_bytes")
    expired: bool = False
    created_at: AwareDatetime | None = None
    expires_at: AwareDatetime | None = None


class Gist(Resource):
    """A gist: the `texts` of the files that GitHub delivers whole, by file name, and when it was last changed."""

    texts: dict[str, str]
    updated_at: AwareDatetime


class IssueComment(Resource):
    """The event `issue_comment`."""

    action: str
    comment: Comment
    issue: Issue
    repository: Repository
    sender: User


class WorkflowRun(Resource):
    """The event `workflow_run`."""

    action: str
    workflow_run: Run
    repository: Repository
