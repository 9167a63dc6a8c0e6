"""Requests without a result: why, as far as GitHub knows, and the comments that would never be answered."""

from __future__ import annotations

import logging
import re
from collections.abc import Sequence

from bot.action.comment import event_of_comment, run_of_comment
from bot.action.github.client import GitHub
from bot.action.github.resources import Comment, WorkflowJob
from bot.action.github.transport import GitHubError
from bot.action.report.render import notes
from bot.action.report.render.text import one_line
from bot.action.report.sweep import LOOK_BACK, mark_each
from bot.action.set_up import labels_of
from bot.action.settings import Settings

log = logging.getLogger(__name__)

# What a failed step of the job means; the first two are steps of the runner's own (actions/runner, JobExtension.cs).
_STEPS = {
    "Set up job": "an action that the job uses could not be fetched",
    "Initialize containers": "its container was not started: the image could not be pulled, or Docker refused the options",
    "Check out the commit that the gate resolved": "the commit could not be checked out",
    "Take the requests": "the file of requests could not be downloaded",
    "Look for torch-minify": (
        "there was no torch-minify-action on the PATH: install it in the image, or, without one, on the runner, whose PATH is in its file "
        ".path where it is a service"
    ),
    "Hand the result on": "the result could not be uploaded",
    "Hand the result on once more": "the result could not be uploaded",
}
_CONCLUSIONS = {"cancelled": "it was cancelled", "timed_out": "it ran out of time", "skipped": "it was not started"}


def reasons(api: GitHub, settings: Settings, missing: Sequence[int]) -> dict[int, str]:
    """Why the requests with the indices `missing` left nothing, in words for people; only those whose reason `api` knows.

    `settings` name the run. If GitHub does not answer, the result is empty.
    """
    if not missing or not settings.run_id:
        return {}
    try:
        jobs = api.jobs(settings.repository, settings.run_id)
    except GitHubError as error:
        log.warning("the jobs of this run are not known: %s", one_line(str(error)))
        return {}
    return {index: said for index, job in _ours(jobs, settings, missing).items() if (said := reason(job))}


def _ours(jobs: Sequence[WorkflowJob], settings: Settings, indices: Sequence[int]) -> dict[int, WorkflowJob]:
    """Which of `jobs` minify the requests with these `indices`, as far as that is known."""
    found = {index: [job for job in jobs if re.search(rf"(?:^|/ )minify {index}$", job.name)] for index in indices}
    # jobs of two calls in one run have the same name: then the label tells which is ours
    labels = {label.lower() for label in labels_of(settings.runner_label)}
    ours = {i: js if len(js) == 1 else [job for job in js if {label.lower() for label in job.labels} == labels] for i, js in found.items()}
    return {index: js[0] for index, js in ours.items() if len(js) == 1}


def of_earlier_attempts(api: GitHub, settings: Settings, count: int) -> frozenset[int]:
    """Which of `count` requests, by index, have results from an earlier attempt of the run in `settings`, though their jobs ran again.

    A download by name gets the last artifact of that name, from whichever attempt. Empty if `api` does not answer.
    """
    if settings.run_attempt < 2:
        return frozenset()
    try:
        jobs = _ours(api.jobs(settings.repository, settings.run_id), settings, range(count))
        listed = sorted(api.artifacts(settings.repository, settings.run_id), key=lambda artifact: artifact.id)
    except GitHubError as error:
        log.warning("the attempts of this run are not known: %s", one_line(str(error)))
        return frozenset()
    made = {artifact.name: artifact.created_at for artifact in listed}
    # a successful job has left its result, even if it did not run again
    lost = {index: job.started_at for index, job in jobs.items() if job.conclusion != "success"}
    left = ((index, made.get(settings.artifact(f"result-{index}")), began) for index, began in lost.items())
    return frozenset(index for index, at, began in left if at is not None and began is not None and at < began)


def reason(job: WorkflowJob) -> str | None:
    """Why `job`, which minifies, left nothing; None if GitHub does not say."""
    failed = next((step.name for step in job.steps if step.conclusion == "failure"), None)
    if failed is not None:
        return f"in the job {job.name} {_STEPS.get(failed) or f'the step {failed} failed'}"
    if not job.steps and not job.runner_name:
        why = "no runner took it, its environment was not approved, or GitHub could not use an input of the workflow for it"
        return f"the job {job.name} never began: {why}"
    if job.conclusion in _CONCLUSIONS:
        return f"of the job {job.name} GitHub says that {_CONCLUSIONS[job.conclusion]}"
    if job.conclusion == "success":
        return (
            f"the job {job.name} ended well, but no result of it is here: it has expired, was deleted or not downloaded, or none was left"
        )
    return f"the job {job.name} ended without a failed step, as when its runner is lost" if job.conclusion == "failure" else None


def abandon(api: GitHub, settings: Settings, why: str) -> int:
    """Update the comments of this run that still promise an answer: nothing will come, and `why`. Returns their number.

    For a report that has no requests: `settings` name the run, `api` finds its comments among those of the last days. Raises GitHubError
    like `mark_each`.
    """
    try:
        began = api.run(settings.repository, settings.run_id).created_at
    except GitHubError as error:
        log.warning("when this run began is not known: %s", one_line(str(error)))
        began = api.now() - LOOK_BACK
    # a week of a large repository takes a hundred requests, of the thousand per hour
    recent = api.recent_comments(settings.repository, max(began, api.now() - LOOK_BACK))
    return mark_each((comment for comment in recent if api.is_ours(comment)), lambda comment: _end(comment, api, settings, why))


def _end(comment: Comment, api: GitHub, settings: Settings, why: str) -> bool:
    """Replace a comment of ours that promised an answer of this call by the message that there is none, and `why`; returns whether it was
    one."""
    if run_of_comment(comment.body) != settings.run_id or comment.issue is None or not notes.pending(comment.body):
        return False
    # the comments of another call in this run belong to that call
    if not (event_of_comment(comment.body) or "").startswith(f"{settings.name}-" if settings.name else ("comment-", "run-")):
        return False
    marker = comment.body.splitlines()[0]
    api.upsert_comment(settings.repository, comment.issue, marker, notes.ended(None, settings.run_url, why), comment.id)
    return True
