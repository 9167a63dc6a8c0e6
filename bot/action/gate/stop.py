"""`/minify stop`: cancels the runs for the requests of an issue."""

from __future__ import annotations

import logging
from datetime import datetime, timedelta

from bot.action.comment import Destination, answer, event_of_comment, key, react, run_of_comment
from bot.action.gate import permissions
from bot.action.gate.command import CommandSyntaxError, commands
from bot.action.gate.page import command_lines
from bot.action.gate.requests import Decision
from bot.action.github.client import GitHub
from bot.action.github.resources import IssueComment, Run, User
from bot.action.github.transport import GitHubError
from bot.action.report.render import notes
from bot.action.settings import Settings

log = logging.getLogger(__name__)

# of the last comments; older runs have ended
MOST_RUNS = 20
# A command without an answer after this time will not get one.
UNREAD = timedelta(hours=1)


def stop(event: IssueComment, settings: Settings, api: GitHub) -> Decision:
    """Cancel through `api` what runs for the issue in `event`, except our own run in `settings`, and report it.

    The command and the permission to give it are checked again. Raises GitHubError if GitHub does not answer what must be known.
    """
    author, repository, issue = event.comment.user, event.repository.full_name, event.issue.number
    try:
        verbs = [command.verb for command in commands(event.comment.body)]
    except CommandSyntaxError:
        verbs = []
    if event.action != "created" or not author.id or "stop" not in verbs:
        return Decision("nothing", note="no command to stop")
    permission = "none" if author.is_bot else api.permission(repository, author)
    decision = permissions.may_ask(author, event.sender, permission)
    if isinstance(decision, permissions.Ignored):
        return Decision("nothing", note="not for us: a bot, or words of another")
    if isinstance(decision, permissions.Refused):
        body, reason = notes.refused(decision.reason), decision.reason
    else:
        own = _find(api, repository, settings.run_id)
        stopped, refused = 0, 0
        for run in _runs(api, repository, issue, settings.run_id):
            try:
                stopped += _cancel(api, repository, run, own, event.comment.created_at)
            except GitHubError as error:
                # one that cannot be stopped must not keep the others running
                log.error("the run %d was not stopped: %s", run, error)
                refused += 1
        body = reason = notes.stopped(stopped, refused=refused, unread=_unread(api, event, settings.name))
        react(api, repository, event.comment.id, "rocket" if stopped else "confused")
    answer(api, Destination(repository, issue, key(settings.name, f"comment-{event.comment.id}"), settings.run_id), body)
    return Decision("stop" if isinstance(decision, permissions.Allowed) else "refused", note=reason)


def _runs(api: GitHub, repository: str, issue: int, own: int) -> list[int]:
    """The runs that our comments on an issue name, newest first, without duplicates."""
    named = [run_of_comment(comment.body) for comment in api.comments(repository, issue) if api.is_ours(comment)]
    return list(dict.fromkeys(run for run in reversed(named) if run is not None and run != own))[:MOST_RUNS]


def _unread(api: GitHub, event: IssueComment, name: str) -> bool:
    """Whether a command on the issue in `event` has no answer yet by the call `name`: no comment of ours names its run."""
    repository = event.repository.full_name
    comments = api.comments(repository, event.issue.number)
    answered = {event_of_comment(comment.body) for comment in comments if api.is_ours(comment)}
    return any(
        comment.id != event.comment.id
        and not api.is_ours(comment)
        and abs(event.comment.created_at - comment.created_at) < UNREAD
        and key(name, f"comment-{comment.id}") not in answered
        and command_lines(comment.body)
        # only the first command of people without permission is answered
        and _may_ask(api, repository, comment.user)
        for comment in comments
    )


def _may_ask(api: GitHub, repository: str, user: User) -> bool:
    permission = "none" if user.is_bot else api.permission(repository, user)
    return isinstance(permissions.may_ask(user, user, permission), permissions.Allowed)


def _cancel(api: GitHub, repository: str, run: int, own: Run | None, since: datetime) -> bool:
    """Whether a run ends because of a command at the time `since`: if two calls of the workflow answer it, the
    other may have been first."""
    found = _find(api, repository, run)
    if found is None or not _is_ours(found, own):
        return False
    if found.status == "completed":
        return found.conclusion == "cancelled" and found.updated_at is not None and found.updated_at >= since
    return api.cancel(repository, run)


def _is_ours(run: Run, own: Run | None) -> bool:
    """Whether `run` minifies: other workflows use our login as well, and might name one of their runs.

    It calls the same workflow as ours; if ours calls none, as with the single job, it was triggered in the same way.
    """
    if own is not None and own.called():
        return bool(own.called() & run.called())
    return run.event in ("issue_comment", "workflow_run")


def _find(api: GitHub, repository: str, run: int) -> Run | None:
    try:
        return api.run(repository, run)
    except GitHubError as error:
        if error.status == 404:  # deleted
            return None
        raise
