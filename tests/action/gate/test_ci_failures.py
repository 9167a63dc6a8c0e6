"""What GitHub does not hand out of a run of CI."""

from __future__ import annotations

from datetime import timedelta

import pytest

from bot.action.ci.failing_test import Failure
from bot.action.gate.ci_failures import MAX_ARTIFACTS, MAX_JOBS, MAX_RUNS, NOT_ALL, Reader, Subject, examine
from bot.action.github.resources import Artifact, WorkflowJob
from bot.action.github.transport import GitHubError
from tests.action.gate.memory import HEAD, MAIN, NOW, REPO, Memory, zipped

LOST, OTHER = 201, 200


class Partial(Memory):
    """Does not hand out the log of one job, nor artifacts, with the status `answers`."""

    answers = 500

    def job_log(self, repository: str, job: int) -> str:
        if job == LOST:
            raise GitHubError(f"GET: {self.answers}", self.answers)
        return super().job_log(repository, job)

    def artifact(self, repository: str, artifact: Artifact) -> bytes | None:
        raise GitHubError(f"GET: {self.answers}", self.answers)


def partial(status: int, *, log: str | None = "pytest") -> Partial:
    api = Partial(zips={20: {"junit": b""}})
    api.answers = status
    api.add_run(20, log)
    jobs = api.run_jobs[20] if log else []
    api.run_jobs[20] = [WorkflowJob(id=LOST, name="other", conclusion="failure"), *jobs]
    return api


@pytest.mark.parametrize("status", [403, 404, 410, 500, 503])
def test_what_is_not_handed_out_keeps_nothing_else_from_being_read(status: int) -> None:
    found = Reader(partial(status), REPO, "*").failing_tests(20)
    assert "tests/test_models.py::TestCompiled::test_pool" in {failure.test for failure in found}


@pytest.mark.parametrize(("status", "gone"), [(404, True), (410, True), (403, False), (500, False)])
def test_where_nothing_can_be_read_it_is_not_said_that_nothing_failed(status: int, gone: bool) -> None:
    reader = Reader(partial(status, log=None), REPO, "*")
    if gone:
        assert reader.failing_tests(20) == ()
    else:
        with pytest.raises(GitHubError):
            reader.failing_tests(20)


@pytest.mark.parametrize("status", [410, 500])
def test_a_base_that_was_read_in_part_is_none(status: int) -> None:
    """A test of which nothing is said there need not have passed."""
    api = partial(status)
    api.zips.clear()
    api.runs[20] = api.runs[20].model_copy(update={"head_branch": "main", "event": "push", "head_sha": MAIN, "conclusion": "failure"})
    api.run_jobs[20] = [job.model_copy(update={"conclusion": "failure"}) for job in api.run_jobs[20]]
    api.logs[OTHER] = api.logs[OTHER].replace("test_pool", "test_pool_of_another_sort")
    api.add_run(30, "pytest")
    groups = examine(api, REPO, [Subject(30, 3, NOW, "main", source=REPO, commit=HEAD)]).groups
    assert any(group.reason.endswith("no run of the base can be compared with it") for group in groups)
    assert not any("it did not on main" in group.reason for group in groups)


OTHERS = "FAILED tests/test_page.py::test_{} - AssertionError: assert 1 == 2\n"


def crowded(jobs: int) -> Memory:
    """A run whose last job alone names a failure of the compiler."""
    api = Memory()
    api.add_run(20, "pytest")
    api.run_jobs[20] = [WorkflowJob(id=200 + number, name=f"job {number}", conclusion="failure") for number in range(jobs)]
    last = api.logs.pop(200)
    api.logs = {200 + number: OTHERS.format(number) for number in range(jobs - 1)} | {199 + jobs: last}
    return api


def test_a_base_of_which_not_all_jobs_were_read_is_none() -> None:
    api = crowded(MAX_JOBS + 1)
    api.runs[20] = api.runs[20].model_copy(update={"head_branch": "main", "event": "push", "head_sha": MAIN})
    api.add_run(30, "pytest")
    groups = examine(api, REPO, [Subject(30, 3, NOW, "main", source=REPO, commit=HEAD)]).groups
    assert any(group.reason.endswith("no run of the base can be compared with it") for group in groups)
    assert not any("it did not on main" in group.reason for group in groups)


@pytest.mark.parametrize(("jobs", "partly"), [(MAX_JOBS, False), (MAX_JOBS + 1, True)])
def test_where_not_all_was_read_no_more_is_said(jobs: int, partly: bool) -> None:
    examined = examine(crowded(jobs), REPO, [Subject(20, 3, NOW, None)])
    assert examined.partly is partly
    assert any(group.verdict == "suggested" for group in examined.groups) is not partly
    assert (NOT_ALL in examined.refusal) is partly


def test_what_another_run_names_is_found_among_many() -> None:
    api = Memory()
    for run in range(20, 30):
        api.add_run(run, "pytest")
        if run < 29:
            api.logs[run * 10] = OTHERS.format(run)
    examined = examine(api, REPO, [Subject(run, 3, NOW, None) for run in range(20, 30)])
    assert any(group.verdict == "suggested" for group in examined.groups)
    assert not examined.partly
    assert examine(api, REPO, [Subject(20, 3, NOW, None)] * (MAX_RUNS + 1)).partly


def test_artifacts_of_other_names_leave_room_for_reports() -> None:
    api = crowded(1)
    report = zipped(
        {"junit.xml": b'<testsuite><testcase classname="tests.test_x" name="test_y"><failure>E</failure></testcase></testsuite>'}
    )
    api.zips[20] = {f"wheel-{number}": b"" for number in range(MAX_ARTIFACTS)} | {"junit-1": report}
    assert "tests/test_x.py::test_y" in {failure.test for failure in Reader(api, REPO, "junit-*").failing_tests(20)}


def test_of_an_attempt_its_own_reports_are_read() -> None:
    """Another one came after it, whose reports have the same name."""
    wrong = "<failure>Traceback (most recent call last):\nRuntimeError: no</failure>"
    api = Memory()
    api.add_run(20, None)
    api.run_jobs[20] = []
    for attempt, test in ((1, "test_one"), (2, "test_two")):
        began = NOW + timedelta(hours=attempt)
        ended = began + timedelta(minutes=5)
        xml = f'<testsuite><testcase classname="tests.test_x" name="{test}">{wrong}</testcase></testsuite>'
        api.zips[attempt] = {"reports": zipped({"junit.xml": xml.encode()})}
        api.reruns.setdefault(20, []).append(Artifact(id=attempt, name="reports", created_at=ended))
        job = WorkflowJob(id=attempt, name="tests", conclusion="success", run_attempt=attempt, started_at=began, completed_at=ended)
        api.run_jobs[20].append(job)
    for asked, test in ((1, "test_one"), (2, "test_two"), (None, "test_two")):
        found = Reader(api, REPO, "*").failing_tests(20, attempt=asked)
        assert [failure.test for failure in found] == [f"tests/test_x.py::{test}"]


@pytest.mark.parametrize("reports", ["junit", "texts"])
def test_one_artifact_does_not_take_all_the_time(reports: str) -> None:
    """It unpacks to much more than it is sent as, and what a pull request's own jobs leave is what its author wants."""
    wrong = "Traceback (most recent call last):\nRuntimeError: no"
    files: dict[str, bytes] = {}
    for part in range(20):
        if reports == "junit":
            xml = f'<testcase classname="tests.test_x" name="test_{part}"><failure>{wrong}</failure></testcase>'
            files[f"junit-{part}.xml"] = f"<testsuite>{xml}</testsuite>".encode()
        else:
            summary = f"FAILED tests/test_x.py::test_{part} - RuntimeError: no\n"
            files[f"job_{part}/failures_long.txt"] = f"=== FAILURES ===\n___ test_{part} ___\nE   RuntimeError: no\n".encode()
            files[f"job_{part}/summary_short.txt"] = f"=== short test summary info ===\n{summary}".encode()
    api = Memory(zips={20: {"reports": zipped(files)}})
    api.add_run(20, None)
    assert len(Reader(api, REPO, "*").failing_tests(20)) == 20
    seconds = iter(range(0, 1_000_000, 30 if reports == "junit" else 6))
    assert 0 < len(Reader(api, REPO, "*", clock=lambda: float(next(seconds))).failing_tests(20)) < 20


def test_a_log_of_which_the_beginning_is_missing_is_said_to_be(monkeypatch: pytest.MonkeyPatch) -> None:
    api = Memory()
    api.add_run(20, "pytest")
    api.logs[200] = "made up\n" * 100
    assert not examine(api, REPO, [Subject(20, 3, NOW, None)]).partly
    monkeypatch.setattr("bot.action.gate.ci_failures.LOG_LIMIT", len(api.logs[200]))
    assert "Not all of it was read" in examine(api, REPO, [Subject(20, 3, NOW, None)]).refusal


def test_one_test_that_is_named_from_two_directories_is_one() -> None:
    """A report of pytest's counts from its root, a log from where it was started."""
    api = Memory(tree=["packages/core/tests/test_a.py"])
    failures = [Failure("t", test, "") for test in ("packages/core/tests/test_a.py::t", "tests/test_a.py::t")]
    located = Reader(api, REPO, "*").located(failures, Subject(20, 3, NOW, None, source=REPO, commit=HEAD))
    assert [each.test for each in located] == ["packages/core/tests/test_a.py::t"]


@pytest.mark.parametrize("conclusion", ["success", "cancelled"])
def test_the_log_of_a_job_that_somebody_names_is_read(conclusion: str) -> None:
    """A step may go on though it failed, and a run be ended in the middle."""
    api = Memory()
    api.add_run(20, "pytest")
    api.run_jobs[20] = [job.model_copy(update={"conclusion": conclusion}) for job in api.run_jobs[20]]
    examined = examine(api, REPO, [Subject(20, 3, NOW, None)])
    assert not examined.groups
    assert examined.refusal.startswith("No job there failed.")
    examined = examine(api, REPO, [Subject(20, 3, NOW, None, job=200)])
    assert examined.groups
    api.logs[200] = "made up\n"
    assert examine(api, REPO, [Subject(20, 3, NOW, None, job=200)]).refusal.startswith("No failing test is named")
