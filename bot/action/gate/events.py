"""The events that start something, in the parts that are read. What they hold is hostile text; only its types are checked.

Their parts are the resources of the API, as they were when the event was sent.
"""

from __future__ import annotations

from bot.action.github.resources import Comment, Issue, Repository, Resource, Run, User


class IssueComment(Resource):
    """`issue_comment`."""

    action: str
    comment: Comment
    issue: Issue
    repository: Repository
    sender: User


class WorkflowRun(Resource):
    """`workflow_run`."""

    action: str
    workflow_run: Run
    repository: Repository


EVENTS: dict[str, type[IssueComment] | type[WorkflowRun]] = {"issue_comment": IssueComment, "workflow_run": WorkflowRun}
