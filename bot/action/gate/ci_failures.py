"""What failed in a run of CI: its failing tests by cause, compared with its target branch."""

from __future__ import annotations

import fnmatch
import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial

from bot.action.ci import groups, junit, logs, text_reports
from bot.action.ci.failing_test import Failure
from bot.action.ci.judge import fault, sign
from bot.action.ci.paths import CheckoutPaths
from bot.action.gate.requests import Refusal
from bot.action.github.client import LOG_LIMIT, GitHub
from bot.action.github.resources import Artifact, WorkflowJob
from bot.action.github.transport import GitHubError
from bot.models.failure import Signature

log = logging.getLogger(__name__)

# A run may have hundreds of jobs, a commit dozens of runs; most causes show in the first of them.
MAX_JOBS = 30
MAX_ARTIFACTS = 30
MAX_RUNS = 20
# Seconds for reading; the job has some minutes, within which it has to answer.
READING = 300.0
# Allowance for differences between GitHub's clocks.
SLACK = timedelta(minutes=1)
_GONE = (404, 410)
FAILED = ("failure", "timed_out")


# A log may be gone, and reports are only kept for a while.
NOTHING_NAMED = "No failing test is named in what can still be read of the run."
NOTHING_FAILED = "No job there failed. With the address of a job its log is read, whatever became of it."
NOT_ALL = "Not all of it was read: there is too much, or GitHub does not hand it out. With the address of a job that one alone is read."


@dataclass(frozen=True)
class Subject:
    """A run, or an `attempt` of it or a `job` in it, and the branch whose last run it is compared with.

    `source` and `commit` are the code it ran, where its paths are looked up.
    """

    run: int
    workflow: int
    created_at: datetime
    base: str | None
    job: int | None = None
    source: str | None = None
    commit: str | None = None
    attempt: int | None = None


class Reader:
    """Reads what failed in runs of `repository` through `api`: from artifacts whose names match `junit_artifacts`, and from logs.

    Programs run in the `directory` of the checkout. It reads until `clock` (seconds) has advanced by `READING`; the rest is not read,
    which is logged, and shown by `partly`. `red`: there were jobs whose logs to read.
    """

    def __init__(
        self, api: GitHub, repository: str, junit_artifacts: str, clock: Callable[[], float] = time.monotonic, directory: str = ""
    ) -> None:
        self._api, self._repository, self._junit_artifacts, self._directory = api, repository, junit_artifacts, directory
        self._clock, self._until = clock, clock() + READING
        self._paths: dict[tuple[str, str], CheckoutPaths] = {}
        self._signed: dict[Failure, Signature | None] = {}
        self.partly = self.red = False

    def failing_tests(self, run: int, job: int | None = None, attempt: int | None = None, *, whole: bool = False) -> tuple[Failure, ...]:
        """The failing tests of the last attempt of `run`, or of another `attempt`, or only of its `job`, as far as GitHub has them.

        Raises:
            Refusal: the run has no such attempt, or job.
            GitHubError: GitHub does not deliver what might name some, and nothing else names any. With `whole`: not all could be read,
                also because it is gone or took too long.
        """
        found: dict[str, Failure] = {}
        unread: list[GitHubError] = []
        # the question may be about what has run again since
        jobs = self._api.jobs(self._repository, run, every=job is not None or attempt is not None)
        jobs = [each for each in jobs if attempt in (None, each.run_attempt)]
        if (job, attempt) != (None, None) and not any(job in (None, each.id) for each in jobs):
            raise Refusal("GitHub knows of no such job, or attempt, of that run.")
        if job is None:
            artifacts = [each for each in _of_attempt(self._api.artifacts(self._repository, run), jobs) if self._may_report(each)]
            self.partly |= len(artifacts) > MAX_ARTIFACTS
            for artifact in artifacts[:MAX_ARTIFACTS]:
                if self._is_late(artifact.name):
                    break
                try:
                    archive = self._api.artifact(self._repository, artifact)
                except GitHubError as error:
                    unread.append(_unread(error, artifact.name))
                    continue
                # with all artifacts selected, one that large is hardly a report
                self.partly |= archive is None and self._junit_artifacts != "*"
                for failure in self._in_archive(archive, artifact.name) if archive is not None else ():
                    found.setdefault(failure.test or failure.name, failure)
        # if somebody names a job, its log is read whatever its conclusion: a step may continue although it failed
        failed = [each for each in jobs if (each.conclusion in FAILED if job is None else each.id == job)]
        self.red |= bool(failed)
        for each in failed[:MAX_JOBS]:
            if self._is_late(each.name):
                break
            try:
                text = self._api.job_log(self._repository, each.id)
            except GitHubError as error:
                unread.append(_unread(error, each.name))
                continue
            # a log of exactly the requested size is hardly complete
            self.partly |= len(text.encode("utf-8", errors="replace")) >= LOG_LIMIT
            for failure in logs.failures(text, each.name):
                found.setdefault(failure.test or failure.name, failure)
        if whole and self._is_late(f"run {run}"):
            unread.append(GitHubError(f"run {run}: reading it took too long"))
        if len(failed) > MAX_JOBS:
            unread.append(GitHubError(f"run {run}: more than {MAX_JOBS} jobs failed", 410))
        self.partly |= bool(unread)
        faults = [error for error in unread if whole or error.status not in _GONE]
        if faults and (whole or not found):
            raise faults[0]
        return tuple(found.values())

    def _may_report(self, artifact: Artifact) -> bool:
        return not artifact.expired and fnmatch.fnmatchcase(artifact.name, self._junit_artifacts)

    def _in_archive(self, archive: bytes, name: str) -> tuple[Failure, ...]:
        # a single artifact may take longer than there is time: it unpacks to as much as eight of the longest logs
        late = partial(self._is_late, name)
        return (*junit.in_archive(archive, name, late), *text_reports.in_archive(archive, name, late))

    def _is_late(self, name: str) -> bool:
        late = self._clock() > self._until
        self.partly |= late
        if late:
            log.warning("%r was not read: reading took more than %d s", name[:200], READING)
        return late

    def located(self, failures: Sequence[Failure], subject: Subject) -> tuple[Failure, ...]:
        """The `failures` with their paths as they are in the checkout of `subject`. Of those of one test, the first."""
        if subject.source is None or subject.commit is None or not any(failure.file for failure in failures):
            return tuple(failures)
        key = (subject.source, subject.commit)
        if key not in self._paths:
            try:
                self._paths[key] = CheckoutPaths(self._api.files_at(*key), self._directory)
            except GitHubError as error:
                log.warning("the files of %s are not known: %s", subject.source, error)
                self._paths[key] = CheckoutPaths(())
        found: dict[str, Failure] = {}
        for failure in map(self._paths[key].locate, failures):
            found.setdefault(failure.test or failure.name, failure)
        return tuple(found.values())

    def signed(self, failures: Sequence[Failure]) -> tuple[Failure, ...]:
        """Those of `failures` whose signatures can be read in time: the worst take a twentieth of a second each."""
        done: list[Failure] = []
        for failure in failures:
            if failure not in self._signed:
                if self._is_late(failure.name):
                    break
                self._signed[failure] = sign(failure)
            done.append(failure)
        return tuple(done)

    def sign(self, failure: Failure) -> Signature | None:
        """The signature of `failure`, one of those that `signed` returned."""
        return self._signed[failure]


def _unread(error: GitHubError, name: str) -> GitHubError:
    """The `error` with which GitHub withheld what is called `name`; it is logged."""
    log.warning("%r was not read: %s", name[:200], error)
    return error


def _of_attempt(artifacts: Sequence[Artifact], jobs: Sequence[WorkflowJob]) -> list[Artifact]:
    """Those of a run's `artifacts` that belong to the attempt with these `jobs`: only those that one of the jobs left, and the last of
    each name.

    A job that did not run again belongs to the last attempt, and so does what it left.
    """
    left = [artifact for artifact in artifacts if not jobs or any(_left(artifact, job) for job in jobs)]
    last = {artifact.name: artifact for artifact in sorted(left, key=lambda artifact: artifact.id)}
    return [artifact for artifact in left if last[artifact.name] is artifact]


def _left(artifact: Artifact, job: WorkflowJob) -> bool:
    """Whether `job` may have left the `artifact`, judging by when it ran."""
    if artifact.created_at is None or job.started_at is None or job.completed_at is None:
        return True
    return job.started_at - SLACK <= artifact.created_at <= job.completed_at + SLACK


def base_of(reader: Reader, api: GitHub, repository: str, subject: Subject) -> groups.BaseRun | None:
    """What failed in the last run of the branch that `subject` is compared with; None if there is none, or if its logs are gone.

    `reader` reads the runs of `repository`, `api` finds them. Raises `GitHubError` if GitHub does not say which run that is.
    """
    if not subject.base:
        return None
    last = api.last_run(repository, subject.workflow, subject.base, subject.created_at)
    if last is None:
        return None
    if last.conclusion == "success":
        return groups.BaseRun(subject.base, frozenset())
    try:
        failures = reader.signed(reader.located(reader.failing_tests(last.id, whole=True), subject))
    except GitHubError as error:
        log.warning("cannot read the last run of %s: %s", subject.base, error)
        return None
    # a red run that names no test says nothing about any
    return groups.BaseRun.of(subject.base, failures, reader.sign) if failures else None


@dataclass(frozen=True)
class Examined:
    """The causes of red runs without duplicates, those worth minimizing first; whether they were read only `partly`, and whether they are
    `red`."""

    groups: tuple[groups.Group, ...]
    partly: bool
    red: bool = True

    @property
    def refusal(self) -> str:
        """Why none of them is minimized, if nobody chose one."""
        nothing = NOTHING_NAMED if self.red else NOTHING_FAILED
        said = "No failing test there looks like a failure of the compiler." if self.groups else nothing
        return f"{said} {NOT_ALL}" if self.partly else said


def examine(api: GitHub, repository: str, subjects: Sequence[Subject], junit_artifacts: str = "*", directory: str = "") -> Examined:
    """The causes of the red runs `subjects` of one commit in `repository`, according to `api`; programs run in its `directory`.

    Reports are read from artifacts whose names match `junit_artifacts`. Raises GitHubError if GitHub does not deliver what is needed.
    """
    reader = Reader(api, repository, junit_artifacts, directory=directory)
    found: dict[tuple[str, ...], groups.Group] = {}
    for subject in subjects[:MAX_RUNS]:
        failures = reader.signed(reader.located(reader.failing_tests(subject.run, subject.job, subject.attempt), subject))
        partly, base = reader.partly, base_of(reader, api, repository, subject) if failures else None
        reader.partly = partly  # nothing is said about the base
        for group in groups.group(failures, base, reader.sign, fault):
            key = (group.signature.fingerprint,) if group.signature else group.tests
            if key not in found or groups.ORDER[group.verdict] < groups.ORDER[found[key].verdict]:
                found[key] = group
    return Examined(tuple(sorted(found.values(), key=groups.rank)), reader.partly or len(subjects) > MAX_RUNS, reader.red)
