"""Comments that still promise an answer although nothing works on it: GitHub waits a day for a runner, without a word."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime, timedelta
from functools import cache

from bot.action.comment import run_of_comment
from bot.action.github.client import GitHub
from bot.action.github.resources import Comment, Run, WorkflowJob
from bot.action.github.transport import GitHubError
from bot.action.report.render import notes
from bot.action.report.render.text import one_line

log = logging.getLogger(__name__)

# A run waits for one day, and a self-hosted one runs for at most five.
LOOK_BACK = timedelta(days=7)
_WAITING = frozenset({"queued", "pending", "requested"})
# GitHub's documentation of protection rules: a job is `waiting` until its environment's reviewers have decided.
_FOR_APPROVAL = "waiting"
# Errors about a single comment: its conversation is locked, or it or its issue was deleted. The others can still be edited.
_REFUSALS = frozenset({403, 404, 410, 422})
# Number of other errors (such as an unusable answer about a run) after which GitHub is considered down.
_MOST_ERRORS = 10


def sweep(api: GitHub, repository: str, stale_after: float) -> int:
    """Mark the comments in `repository` whose run has waited longer than `stale_after` hours, or ended without a result.

    Returns how many were marked through `api`. Raises GitHubError like `mark_each`.
    """
    ours = (comment for comment in api.recent_comments(repository, api.now() - LOOK_BACK) if api.is_ours(comment))
    # one red run may have comments on many issues
    body_of = cache(lambda run: _body(run, api, repository, stale_after))
    return mark_each(ours, lambda comment: _mark(comment, api, repository, body_of))


def mark_each(comments: Iterable[Comment], mark: Callable[[Comment], bool]) -> int:
    """Call `mark` with each of `comments`; returns how many it says it marked. Raises GitHubError if GitHub does not answer, or, after all
    others were marked, if something was wrong with one of them."""
    marked = errors = 0
    wrong: GitHubError | None = None
    for comment in comments:
        try:
            marked += mark(comment)
        except GitHubError as error:
            # for instance a locked conversation: it must not keep the others from getting their answer
            log.warning("a comment on #%s cannot be edited: %s", comment.issue, one_line(str(error)))
            wrong = error
            errors += error.status not in _REFUSALS
            if errors >= _MOST_ERRORS:
                break
    if wrong is not None:
        raise wrong
    return marked


def _body(number: int, api: GitHub, repository: str, stale_after: float) -> str | None:
    """What to say if a comment promises an answer of the run `number`."""
    try:
        run = api.run(repository, number)
        return said(run, api.jobs(repository, number) if run.status != "completed" else (), stale_after, api.now())
    except GitHubError as error:
        if error.status != 404:  # the run was deleted
            raise
        return notes.ended(None, None)


def _mark(comment: Comment, api: GitHub, repository: str, body_of: Callable[[int], str | None]) -> bool:
    """Mark a comment of ours with what `body_of` returns for its run; returns whether it was marked."""
    number, title = run_of_comment(comment.body), notes.pending(comment.body)
    if number is None or comment.issue is None or title is None:
        return False
    body = body_of(number)
    # a waiting comment is marked once
    if body is None or body.startswith(title):
        return False
    # the list may be minutes old, and the report may have answered since; nobody writes for a finished run any more
    now_there = next((each for each in api.comments(repository, comment.issue) if each.id == comment.id), None)
    if now_there is None or now_there.body != comment.body:
        return False
    api.upsert_comment(repository, comment.issue, comment.body.splitlines()[0], body, comment.id)
    return True


def said(run: Run, jobs: Sequence[WorkflowJob], stale_after: float, now: datetime) -> str | None:
    """What to say about `run`, whose comment promises an answer, given its `jobs`; None while the answer may still come.

    It may until its last attempt has waited `stale_after` hours at `now`.
    """
    if run.status == "completed":
        return notes.ended(run.conclusion, run.html_url)
    waited = (now - (run.run_started_at or run.created_at)).total_seconds() / 3600
    if waited >= stale_after and not any(job.status == "in_progress" for job in jobs):
        if any(job.status in _WAITING for job in jobs):
            return notes.waiting(waited, run.html_url)
        if any(job.status == _FOR_APPROVAL for job in jobs):
            return notes.waiting(waited, run.html_url, approval=True)
    return None
