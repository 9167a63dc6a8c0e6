"""What GitHub's API answers, in the parts that are read here. Unknown keys are ignored: the API grows."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

Permission = Literal["admin", "write", "read", "none"]
Reaction = Literal["eyes", "rocket", "confused"]
Conclusion = str  # success, failure, cancelled, timed_out, ...: GitHub adds to them


class Resource(BaseModel):
    """Base of every resource: immutable, unknown keys ignored, null where a key is missing and has a default."""

    model_config = ConfigDict(frozen=True, extra="ignore", populate_by_name=True)

    @model_validator(mode="before")
    @classmethod
    def _without_null(cls, given: Any) -> Any:
        return {key: value for key, value in given.items() if value is not None} if isinstance(given, dict) else given


class User(Resource):
    """An account. GitHub shows a deleted one as null: `ghost`."""

    login: str = "ghost"
    id: int = 0


GHOST = User()


class Authored(Resource):
    """What somebody wrote."""

    user: User = GHOST


class Comment(Authored):
    """A comment on an issue or pull request."""

    id: int
    body: str | None = None
    created_at: datetime
    html_url: str = ""
    issue_url: str = ""

    @property
    def text(self) -> str:
        """The body; empty where GitHub says null."""
        return self.body or ""

    @property
    def issue(self) -> int | None:
        """The number of the issue or pull request that it stands under."""
        number = self.issue_url.rpartition("/")[2]
        return int(number) if number.isdecimal() else None


class Issue(Authored):
    """An issue; a pull request is one too, with `pull_request` set."""

    number: int
    title: str = ""
    body: str | None = None
    state: str = "open"
    html_url: str = ""
    pull_request: dict[str, Any] | None = None


class Repository(Resource):
    """A repository."""

    full_name: str
    default_branch: str = "main"


class Branch(Resource):
    """One end of a pull request. `repo` is null where a fork was deleted."""

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
        """Whether its commits come from another repository, or from one that is gone."""
        return self.head.repo is None or self.base.repo is None or self.head.repo.full_name.lower() != self.base.repo.full_name.lower()


class Run(Resource):
    """A run of a workflow."""

    id: int
    name: str | None = None
    workflow_id: int = 0
    event: str = ""
    status: str | None = None
    conclusion: Conclusion | None = None
    head_sha: str
    head_branch: str | None = None
    head_repository: Repository | None = None
    run_attempt: int = 1
    created_at: datetime
    html_url: str = ""
    actor: User = GHOST


class WorkflowJob(Resource):
    """A job of a run."""

    id: int
    name: str
    run_id: int = 0
    status: str = ""
    conclusion: Conclusion | None = None
    html_url: str | None = None


class Artifact(Resource):
    """An artifact of a run."""

    id: int
    name: str
    size: int = Field(default=0, alias="size_in_bytes")
    expired: bool = False
    expires_at: datetime | None = None
    digest: str | None = None
