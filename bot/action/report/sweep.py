"""Comments that still say "queued" although nobody works on them: GitHub waits a day for a runner, and says nothing."""

from __future__ import annotations

import logging
import sys
from collections.abc import Sequence
from datetime import datetime, timedelta, timezone

from bot.action.comment import run_of_comment
from bot.action.github.api import Api
from bot.action.github.client import GitHub
from bot.action.github.resources import Comment, Run, WorkflowJob
from bot.action.github.transport import GitHubError
from bot.action.report.render import progress
from bot.action.settings import Settings

log = logging.getLogger(__name__)

# A run waits one day, and a self-hosted one works five at most.
LOOK_BACK = timedelta(days=7)
_WAITING = frozenset({"queued", "waiting", "pending", "requested"})


def main(settings: Settings) -> int:
    """Exit status 0, 1 where GitHub does not answer."""
    logging.basicConfig(level=logging.INFO, format="%(message)s", stream=sys.stderr)
    api = GitHub(settings.token.get_secret_value(), settings.api_url, login=settings.bot_login)
    try:
        marked = sweep(api, settings.repository, settings.stale_after, datetime.now(timezone.utc))
    except GitHubError as error:
        sys.stderr.write(f"torch-minify: GitHub does not answer: {error}\n")
        return 1
    sys.stdout.write(f"{marked} comments marked\n")
    return 0


def sweep(api: Api, repository: str, stale_after: float, now: datetime) -> int:
    """Mark what waits longer than `stale_after` (hours), or ended without a word; how many.

    Raises:
        GitHubError: GitHub does not answer.
    """
    login, marked = api.login(), 0
    for comment in api.recent_comments(repository, now - LOOK_BACK):
        number = run_of_comment(comment.text)
        if comment.user.login != login or number is None or comment.issue is None or not queued(comment):
            continue
        try:
            run = api.run(repository, number)
            body = said(run, api.jobs(repository, number), stale_after, now)
        except GitHubError as error:
            if error.status != 404:  # the run was deleted
                raise
            body = progress.ended(None, None)
        if body is not None:
            first = comment.text.splitlines()[0]
            api.upsert_comment(repository, comment.issue, first, body, comment.id)
            marked += 1
    return marked


def queued(comment: Comment) -> bool:
    """Whether a comment of ours still says what the gate wrote into it."""
    lines = [line for line in comment.text.splitlines()[1:] if line.strip()]
    return bool(lines) and lines[0] == "### Queued"


def said(run: Run, jobs: Sequence[WorkflowJob], stale_after: float, now: datetime) -> str | None:
    """What is to be said of a run whose comment says "queued"; None while it may still come."""
    if run.status == "completed":
        return progress.ended(run.conclusion, run.html_url)
    waited = (now - run.created_at).total_seconds() / 3600
    if waited >= stale_after and not any(job.status == "in_progress" for job in jobs) and any(job.status in _WAITING for job in jobs):
        return progress.waiting(waited, run.html_url)
    return None
