"""What failed in a run of CI: its failing tests by cause, compared with the branch it is meant for."""

from __future__ import annotations

import fnmatch
import logging
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from bot.action.ci import groups, junit, logs
from bot.action.ci.failing_test import Failure
from bot.action.ci.judge import fault, sign
from bot.action.github.client import GitHub
from bot.action.github.transport import GitHubError

log = logging.getLogger(__name__)

# A run may have hundreds of jobs; the causes show in the first of them.
MAX_JOBS = 30
MAX_ARTIFACTS = 30
MAX_RUNS = 5
_GONE = (404, 410)
FAILED = ("failure", "timed_out")


@dataclass(frozen=True)
class Subject:
    """A run, and the branch whose last run it is compared with."""

    run: int
    workflow: int
    created_at: datetime
    base: str | None
    job: int | None = None


def failing_tests(api: GitHub, repository: str, run: int, junit_artifacts: str, job: int | None = None) -> tuple[Failure, ...]:
    """The failing tests of `run` in `repository`, or of its one `job`, as far as `api` has them.

    From the JUnit XML in artifacts whose names match `junit_artifacts`, and from the logs of failing jobs.

    Raises:
        GitHubError: GitHub does not hand them out.
    """
    found: dict[str, Failure] = {}
    if job is None:
        for artifact in api.artifacts(repository, run)[:MAX_ARTIFACTS]:
            if artifact.expired or not fnmatch.fnmatchcase(artifact.name, junit_artifacts):
                continue
            archive = api.artifact(repository, artifact)
            for failure in junit.in_archive(archive, artifact.name) if archive is not None else ():
                found.setdefault(failure.test or failure.name, failure)
    failed = [each for each in api.jobs(repository, run) if each.conclusion in FAILED and job in (None, each.id)]
    for each in failed[:MAX_JOBS]:
        try:
            text = api.job_log(repository, each.id)
        except GitHubError as error:
            if error.status not in _GONE:
                raise
            log.warning("the log of job %d is gone", each.id)
            continue
        for failure in logs.failures(text, each.name):
            found.setdefault(failure.test or failure.name, failure)
    return tuple(found.values())


def base_of(api: GitHub, repository: str, subject: Subject, junit_artifacts: str) -> groups.BaseRun | None:
    """What failed in the last run of the branch that `subject` is compared with; None where there is none, or its logs are gone.

    `api`, `repository` and `junit_artifacts` are as for `failing_tests`.
    """
    if not subject.base:
        return None
    last = api.last_run(repository, subject.workflow, subject.base, subject.created_at)
    if last is None:
        return None
    if last.conclusion == "success":
        return groups.BaseRun(subject.base, frozenset())
    try:
        failures = failing_tests(api, repository, last.id, junit_artifacts)
    except GitHubError as error:
        log.warning("cannot read the last run of %s: %s", subject.base, error)
        return None
    # a red run that names no test says nothing about any
    return groups.BaseRun.of(subject.base, failures, sign) if failures else None


def examine(api: GitHub, repository: str, subjects: Sequence[Subject], junit_artifacts: str = "*") -> tuple[groups.Group, ...]:
    """The causes of the red runs `subjects` of one commit, each once; those worth minimizing first.

    `api`, `repository` and `junit_artifacts` are as for `failing_tests`.

    Raises:
        GitHubError: GitHub does not hand out what is needed.
    """
    found: dict[tuple[str, ...], groups.Group] = {}
    for subject in subjects[:MAX_RUNS]:
        failures = failing_tests(api, repository, subject.run, junit_artifacts, subject.job)
        base = base_of(api, repository, subject, junit_artifacts) if failures else None
        for group in groups.group(failures, base, sign, fault):
            key = (group.signature.fingerprint,) if group.signature else group.tests
            if key not in found or groups.ORDER[group.verdict] < groups.ORDER[found[key].verdict]:
                found[key] = group
    return tuple(sorted(found.values(), key=groups.rank))
