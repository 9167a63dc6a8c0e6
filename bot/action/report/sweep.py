"""Comments that still promise an answer although nobody works on them: GitHub waits a day for a runner, and says nothing."""

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

# A run waits one day, and a self-hosted one works five at most.
LOOK_BACK = timedelta(days=7)
_WAITING = frozenset({"queued", "pending", "requested"})
# GitHub's documentation of protection rules: a job is `waiting` until its environment's reviewers have decided.
_FOR_APPROVAL = "waiting"
# Of one comment: its conversation is locked, it or its issue was deleted. The others can still be edited.
_REFUSALS = frozenset({403, 404, 410, 422})
# Other errors, of a run whose answer cannot be used, say, after which GitHub is taken not to answer at all.
_MOST_ERRORS = 10


def sweep(api: GitHub, repository: str, stale_after: float) -> int:
    """Mark the comments in `repository` whose run waits longer than `stale_after` hours, or ended without a result.

    How many were marked through `api`. Raises GitHubError as `mark_each`.
    """
    ours = (comment for comment in api.recent_comments(repository, api.now() - LOOK_BACK) if api.is_ours(comment))
    # of one red run there may be a comment on many issues
    body_of = cache(lambda run: _body(run, api, repository, stale_after))
    return mark_each(ours, lambda comment: _mark(comment, api, repository, body_of))


def mark_each(comments: Iterable[Comment], mark: Callable[[Comment], bool]) -> int:
    """Call `mark` with each of `comments`; how many it marked, as it says. Raises GitHubError where GitHub does not answer; or something
    was wrong with one of them, after all others were marked."""
    marked = errors = 0
    wrong: GitHubError | None = None
    for comment in comments:
        try:
            marked += mark(comment)
        except GitHubError as error:
            # a locked conversation, for instance: it must not keep their answer from all that were asked before
            log.warning("a comment on #%s cannot be edited: %s", comment.issue, one_line(str(error)))
            wrong = error
            errors += error.status not in _REFUSALS
            if errors >= _MOST_ERRORS:
                break
    if wrong is not None:
        raise wrong
    return marked


def _body(number: int, api: GitHub, repository: str, stale_after: float) -> str | None:
    """What is to be said where a comment promises an answer of the run `number`."""
    try:
        run = api.run(repository, number)
        return said(run, api.jobs(repository, number) if run.status != "completed" else (), stale_after, api.now())
    except GitHubError as error:
        if error.status != 404:  # the run was deleted
            raise
        return notes.ended(None, None)


def _mark(comment: Comment, api: GitHub, repository: str, body_of: Callable[[int], str | None]) -> bool:
    """Whether a comment of ours was marked, with what `body_of` gives for its run."""
    number, title = run_of_comment(comment.body), notes.pending(comment.body)
    if number is None or comment.issue is None or title is None:
        return False
    body = body_of(number)
    # what waits is marked once
    if body is None or body.startswith(title):
        return False
    # the list may be minutes old, and the report has answered since; of a run that is over nobody writes any more
    now_there = next((each for each in api.comments(repository, comment.issue) if each.id == comment.id), None)
    if now_there is None or now_there.body != comment.body:
        return False
    api.upsert_comment(repository, comment.issue, comment.body.splitlines()[0], body, comment.id)
    return True


def said(run: Run, jobs: Sequence[WorkflowJob], stale_after: float, now: datetime) -> str | None:
    """What is to be said of `run`, whose comment promises an answer, by its `jobs`; None while it may still come.

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
