"""The events that start something, in the parts that are read. What they hold is hostile text; only its types are checked."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

from bot.action.github.resources import Repository


class Event(BaseModel):
    """Base: immutable, unknown keys ignored, since GitHub adds to its payloads."""

    model_config = ConfigDict(frozen=True, extra="ignore")


class Actor(Event):
    """Who did something."""

    login: str
    id: int
    type: str = "User"

    @property
    def is_bot(self) -> bool:
        """Whether it is no person: a bot that answers bots never ends."""
        return self.type != "User" or self.login.endswith("[bot]")


class CommentText(Event):
    """The comment as it was when the event was sent."""

    id: int
    body: str | None = None
    user: Actor | None = None
    created_at: datetime
    html_url: str = ""


class IssueText(Event):
    """The issue as it was when the event was sent. `pull_request` is set where it is one."""

    number: int
    body: str | None = None
    user: Actor | None = None
    html_url: str = ""
    pull_request: dict[str, Any] | None = None


class IssueComment(Event):
    """`issue_comment`."""

    action: str
    comment: CommentText
    issue: IssueText
    repository: Repository
    sender: Actor


class FinishedRun(Event):
    """The run that `workflow_run` is about."""

    id: int
    name: str | None = None
    workflow_id: int
    event: str
    conclusion: str | None = None
    head_sha: str
    head_branch: str | None = None
    head_repository: Repository | None = None
    run_attempt: int = 1
    created_at: datetime
    html_url: str = ""
    actor: Actor | None = None


class WorkflowRun(Event):
    """`workflow_run`."""

    action: str
    workflow_run: FinishedRun
    repository: Repository


EventName = Literal["issue_comment", "workflow_run"]
EVENTS: dict[str, type[IssueComment] | type[WorkflowRun]] = {"issue_comment": IssueComment, "workflow_run": WorkflowRun}
