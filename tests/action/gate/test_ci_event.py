"""From a red run of CI to requests, without anybody asking."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

import pytest

from bot.action.ci.failing_test import Failure
from bot.action.comment import event_of_comment, failures_of_comment, marker
from bot.action.gate import ci_failures
from bot.action.gate.ci_event import RedRun
from bot.action.gate.comment_event import Conversation
from bot.action.gate.gate import matrix
from bot.action.gate.requests import Decision
from bot.action.github.resources import Artifact, Comment, Permission, Repository, WorkflowRun
from bot.action.github.transport import GitHubError
from bot.models.failure import Phase
from tests.action import canaries
from tests.action.gate.memory import BOT, HEAD, LOGS, MAIN, NOW, REPO, Memory, asked, finished, settings, user, zipped


def outcome(event: WorkflowRun, api: Memory, **given: object) -> Decision:
    return RedRun(event, settings(**given), api).outcome()


def test_a_pull_request_gets_a_request_for_each_cause() -> None:
    api = Memory()
    api.add_pull()
    made = outcome(finished(api.add_run(20, "pytest-xdist")), api)
    assert [(request.command, len(request.tests)) for request in made.requests] == [
        ("pytest tests/test_models.py::TestCompiled::test_pool", 7),
        ("pytest tests/test_models.py::TestCompiled::test_class_in_function", 1),
    ]
    (comment,) = api.comments(REPO, 7)
    shown = [request.shown.fingerprint for request in made.requests if request.shown]
    assert comment.body.startswith(f"<!-- torch-minify:run-20-1 run:77 failures:{shown[0][:8]}.{shown[1][:8]} -->\n")
    assert {request.answer.marker for request in made.requests} == {comment.body.partition("\n")[0]}
    for words in ("suggested, taken", "possible", "not a candidate", "fails outside the compiler", "wrong numbers"):
        assert words in comment.body
    assert {(request.answer.issue, request.answer.comment, request.commit, request.code.where) for request in made.requests} == {
        (7, comment.id, HEAD, "pull_request")
    }


def test_what_fails_on_the_base_as_well_is_not_suggested() -> None:
    api = Memory()
    api.add_pull()
    api.add_run(10, "unittest", sha=MAIN, branch="main", event="push", hours=5)
    # on the base TestCompiled fails, under unittest; here the parameters of test_params too
    made = outcome(finished(api.add_run(20, "pytest")), api)
    assert [(request.command, len(request.tests)) for request in made.requests] == [
        ("pytest 'tests/test_params.py::test_pool_by_name[[x]]'", 5)
    ]
    assert "fails in the same way on main" in api.comments(REPO, 7)[0].body
    assert shlex.split(str(made.requests[0].command)) == ["pytest", "tests/test_params.py::test_pool_by_name[[x]]"]


def test_a_green_base_is_said() -> None:
    api = Memory()
    api.add_pull()
    api.add_run(10, None, sha=MAIN, branch="main", event="push", hours=5)
    assert outcome(finished(api.add_run(20, "pytest")), api).status == "requests"
    assert "it did not on main" in api.comments(REPO, 7)[0].body


def test_the_default_branch_gets_one_issue_for_each_signature() -> None:
    api = Memory()
    for run in (20, 21):
        api.add_run(run, "pytest", sha=MAIN, branch="main", event="push", hours=1 - run / 100)
    first = outcome(finished(api.runs[20]), api)
    assert [request.answer.issue for request in first.requests] == [500, 501]
    assert api.issues[500].title.startswith("CI: exception in inductor_lowering: InductorError")
    assert len({request.id for request in first.requests}) == 2
    # the next red run finds them; since it fails as the last one did, there is nothing new to say
    assert outcome(finished(api.runs[21]), api).status == "nothing"
    del api.runs[20]
    again = outcome(finished(api.runs[21]), api)
    assert [request.answer.issue for request in again.requests] == [500, 501]
    assert [len(api.comments(REPO, issue)) for issue in (500, 501)] == [2, 2]
    assert all(comment.user.login == BOT for comment in api.comments(REPO, 500))


def test_the_largest_causes_come_first_and_are_bounded() -> None:
    api = Memory()
    api.add_pull()
    made = outcome(finished(api.add_run(20, "pytest")), api, max_requests=1)
    assert len(made.requests) == 1
    assert len(made.requests[0].tests) == 7


@pytest.mark.parametrize(
    ("changes", "branch"),
    [
        ({"conclusion": "success"}, "topic"),
        ({"conclusion": "cancelled"}, "topic"),
        ({"id": 77}, "topic"),
        ({"head_sha": "c" * 40}, "topic"),
    ],
    ids=["green", "cancelled", "our own", "a head that moved"],
)
def test_silence(changes: dict[str, object], branch: str) -> None:
    api = Memory()
    api.add_pull()
    assert outcome(finished(api.add_run(20, "pytest", branch=branch), **changes), api).status == "nothing"
    assert api.written == {}


def test_a_fork_is_passed_over_in_silence_until_the_repository_opts_in() -> None:
    api = Memory(protected={"forks"})
    api.add_pull(fork="contributor/models")
    event = finished(api.add_run(20, "pytest"), head_repository={"full_name": "contributor/models"})
    assert outcome(event, api).status == "nothing"
    assert api.written == {}
    made = outcome(event, api, fork_environment="forks")
    assert made.requests[0].repository == "contributor/models"
    assert (made.requests[0].code.trusted, made.requests[0].code.note) == (False, "from the fork contributor/models")


def test_junit_xml_comes_before_the_log_and_its_artifact_is_chosen_by_name() -> None:
    api = Memory()
    api.add_pull()
    run = api.add_run(20, "pytest")
    api.logs = {}  # expired
    xml = (LOGS.parent / "junit" / "pytest.xml").read_bytes()
    api.zips[20] = {"reports-linux": zipped({"a/pytest.xml": xml, "notes.txt": b"no"})}
    assert outcome(finished(run), api, junit_artifacts="coverage-*").status == "nothing"
    assert len(outcome(finished(run), api, junit_artifacts="reports-*").requests) == 2


def test_reports_of_an_earlier_attempt_say_nothing_of_this_one() -> None:
    """GitHub lists the artifacts of all attempts of a run; what is uploaded again under a name stays beside the first."""
    api = Memory()
    api.add_pull()
    run = api.add_run(20, "pytest")
    api.logs = {}  # expired
    old = (LOGS.parent / "junit" / "pytest.xml").read_bytes()
    new = b'<testsuite><testcase classname="tests.test_a" name="test_b"><failure>AssertionError: no</failure></testcase></testsuite>'
    api.zips = {1: {"junit": zipped({"a.xml": old})}, 2: {"junit": zipped({"a.xml": new})}, 3: {"junit-1": zipped({"a.xml": old})}}
    first, second = NOW - timedelta(hours=2), NOW - timedelta(hours=1)
    artifact = {number: Artifact(id=number, name=name, created_at=at) for number, name, at in ((1, "junit", first), (2, "junit", second))}
    reader = ci_failures.Reader(api, REPO, "*")

    def named() -> set[str]:
        return {failure.name for failure in reader.failing_tests(20)}

    for listed in ([artifact[1], artifact[2]], [artifact[2], artifact[1]]):
        api.reruns[20] = listed
        assert named() == {"test_b"}
    assert outcome(finished(run), api).status == "nothing"

    # under another name, by a job that ran again; not where one that did not could have left it
    api.reruns[20] = [Artifact(id=3, name="junit-1", created_at=first), artifact[2]]
    (job,) = api.run_jobs[20]
    again = job.model_copy(update={"started_at": second - timedelta(minutes=9), "completed_at": second + timedelta(seconds=5)})
    api.run_jobs[20] = [again]
    assert named() == {"test_b"}
    once = again.model_copy(update={"id": 201, "conclusion": "success", "started_at": first - timedelta(minutes=9), "completed_at": first})
    api.run_jobs[20] = [again, once]
    assert len(named()) > 1
    # where GitHub does not say when, all are read
    api.run_jobs[20] = [job]
    assert len(named()) > 1


@pytest.mark.parametrize("branch", ["topic", "main"])
def test_no_part_of_a_secret_is_shown_where_a_message_is_cut(branch: str) -> None:
    secret = canaries.TOKENS["GitHub, installation"]
    head = HEAD if branch == "topic" else MAIN
    for before in range(100, 200):
        api = Memory()
        api.add_pull()
        run = api.add_run(20, "pytest", sha=head, branch=branch, event="pull_request" if branch == "topic" else "push")
        said = f"tests/test_a.py::test_a - torch._inductor.exc.InductorError: RuntimeError: {'x' * before} {secret} is refused"
        api.logs[200] = f"=========================== short test summary info ============================\nFAILED {said}\n"
        made = outcome(finished(run), api)
        assert len(made.requests) == 1
        titles = [issue.title for issue in api.issues.values()]
        shown = [made.requests[0].expected or "", made.note, *titles, *(one.body for some in api.written.values() for one in some)]
        assert not any(secret[start : start + 12] in text for text in shown for start in range(len(secret) - 12)), (before, shown)


def test_hostile_names_stay_text() -> None:
    api = Memory()
    api.add_pull()
    run = api.add_run(20, "pytest")
    api.logs[200] = api.logs[200].replace("test_class_in_function", "test_@maintainer_$(touch_pwned)_</td>")
    made = outcome(finished(run), api)
    assert [len(shlex.split(str(request.command))) for request in made.requests] == [2, 2]
    assert "</td>_" not in api.comments(REPO, 7)[0].body
    assert "test_@maintainer_$(touch_pwned)_&lt;/td&gt;" in api.comments(REPO, 7)[0].body


def test_pushes_that_fail_in_the_same_ways_are_one_thread() -> None:
    api = Memory()
    api.add_pull()
    made = [outcome(finished(api.add_run(run, "pytest")), api) for run in range(20, 26)]
    assert [len(each.requests) for each in made] == [2, 0, 0, 0, 0, 0]
    assert len(api.comments(REPO, 7)) == 1
    # another call of the workflow asks for itself
    assert len(outcome(finished(api.runs[25]), api, name="cpu").requests) == 2
    del api.written[7][1]
    # delivered again, it is answered again, in the same comment
    assert len(outcome(finished(api.runs[20]), api).requests) == 2
    assert len(api.comments(REPO, 7)) == 1
    # a failure that is new is asked for alone
    run = api.add_run(26, "pytest")
    api.logs[260] = api.logs[260].replace("max not supported for zero-dimension tensors", "this is another failure")
    (request,) = outcome(finished(run), api).requests
    assert request.shown is not None
    assert "another failure" in request.shown.message
    assert len(api.comments(REPO, 7)) == 2


class Meeting(Memory):
    """Another run, whose id is `other`, is answered while the first one that looks has looked and not written so far."""

    other: int | None = None

    def recent_comments(self, repository: str, since: datetime) -> Sequence[Comment]:
        found, other, self.other = list(super().recent_comments(repository, since)), self.other, None
        if other is not None:
            outcome(finished(self.runs[other]), self)
        return found


def test_of_runs_that_are_red_at_the_same_moment_one_asks() -> None:
    api = Meeting()
    api.add_pull()
    api.add_run(20, "pytest")
    api.add_run(21, "pytest")
    api.other = 21
    made = outcome(finished(api.runs[20]), api)
    assert (made.status, "at the same moment" in made.note) == ("nothing", True)
    (comment,) = api.comments(REPO, 7)
    assert event_of_comment(comment.body) == "run-21-1"


@pytest.mark.parametrize("meets", [False, True])
def test_of_two_workflows_that_are_red_on_the_default_branch_for_one_push_one_asks(meets: bool) -> None:
    """Each has a base of its own, which need not have failed: the same causes would be minimized twice, in two comments on their issues."""
    api = Meeting()
    for number, workflow in ((20, 3), (21, 4)):
        made = api.add_run(number, "pytest", sha=MAIN, branch="main", event="push")
        api.runs[number] = made.model_copy(update={"workflow_id": workflow})
    api.other = 21 if meets else None
    if not meets:
        assert len(outcome(finished(api.runs[21]), api).requests) == 2
    second = outcome(finished(api.runs[20]), api)
    assert (second.status, "asked for the same" in second.note) == ("nothing", True)
    for attempt in (21, 20):
        ran_again = api.runs[attempt].model_copy(update={"run_attempt": 2})
        assert outcome(finished(ran_again), api).status == "nothing"
    assert [[event_of_comment(each.body) for each in api.comments(REPO, issue)] for issue in (500, 501)] == [["run-21-1"]] * 2
    # a later commit that meets it anew is told of there
    later = api.add_run(22, "pytest", sha="c" * 40, branch="main", event="push", hours=2.0)
    assert len(outcome(finished(later), api).requests) == 2


def test_what_only_one_of_such_runs_met_is_asked_for() -> None:
    api = Meeting()
    api.add_pull()
    api.add_run(20, "pytest")
    api.add_run(21, "pytest")
    api.logs[200] = api.logs[200].replace("max not supported for zero-dimension tensors", "this is another failure")
    api.other = 21
    (request,) = outcome(finished(api.runs[20]), api).requests
    assert request.shown is not None
    assert "another failure" in request.shown.message
    assert request.causes
    first, second = api.comments(REPO, 7)
    assert [len(failures_of_comment(each.body)) for each in (first, second)] == [2, 1]
    assert request.answer.marker == second.body.splitlines()[0]


def test_a_comment_that_the_list_does_not_show_yet_is_written_once() -> None:
    class Lagging(Meeting):
        def comments(self, repository: str, issue: int) -> Sequence[Comment]:
            return [each for each in super().comments(repository, issue) if event_of_comment(each.body) != "run-20-1"]

    api = Lagging()
    api.add_pull()
    api.add_run(20, "pytest")
    api.add_run(21, "pytest")
    api.logs[200] = api.logs[200].replace("max not supported for zero-dimension tensors", "this is another failure")
    api.other = 21
    (request,) = outcome(finished(api.runs[20]), api).requests
    first, second = api.written[7]
    assert request.answer.comment == second.id
    assert [len(failures_of_comment(each.body)) for each in (first, second)] == [2, 1]


def test_words_of_others_hide_no_failure() -> None:
    api = Memory()
    api.add_pull()
    made = outcome(finished(api.add_run(20, "pytest")), api)
    said = api.written.pop(7)[0].body
    api.add(7, "stranger", said)
    api.add(7, BOT, "Quoted:\n" + said)
    assert len(outcome(finished(api.add_run(21, "pytest")), api).requests) == len(made.requests) == 2


def test_requests_of_a_day_are_bounded() -> None:
    api = Memory()
    for number in range(1, 8):
        pull = api.add_pull(number)
        api.pulls[number] = pull.model_copy(update={"head": pull.head.model_copy(update={"sha": f"{number}" * 40})})
    runs = [api.add_run(20 + number, "pytest", sha=f"{number}" * 40) for number in range(1, 8)]
    made = [outcome(finished(run), api, max_requests=2) for run in runs]
    assert [len(each.requests) for each in made] == [2, 2, 2, 2, 0, 0, 0]
    assert "8 requests were made" in made[4].note
    for comments in api.written.values():
        comments[:] = [each.model_copy(update={"created_at": NOW - timedelta(hours=25)}) for each in comments]
    assert len(outcome(finished(runs[5]), api, max_requests=2).requests) == 2


def test_more_failures_than_a_marker_has_room_for_are_counted() -> None:
    api = Memory()
    api.add_pull()
    told = [f"{number:08x}" for number in range(40)]
    api.add(9, BOT, marker("run-1-1", 70, told) + "\n### Minimized")
    assert outcome(finished(api.add_run(20, "pytest")), api, max_requests=10).status == "nothing"
    assert len(outcome(finished(api.runs[20]), api, max_requests=11).requests) == 2


def test_the_command_of_a_log_and_its_variables() -> None:
    api = Memory()
    api.add_pull()
    run = api.add_run(20, "pytest")
    api.logs[200] = (LOGS.parent / "run-test.txt").read_text(encoding="utf-8")
    (request,) = outcome(finished(run), api).requests
    assert request.command == "PYTORCH_TEST_WITH_SLOW=1 python test/inductor/test_pool.py CpuTests.test_pool_cpu"
    api.written.clear()
    # what somebody wrote into the input comes first
    (request,) = outcome(finished(run), api, test_command="python -m pytest -x {nodeid}").requests
    assert request.command == "PYTORCH_TEST_WITH_SLOW=1 python -m pytest -x test/inductor/test_pool.py::CpuTests::test_pool_cpu"


def test_paths_are_those_of_the_commit_that_ran() -> None:
    api = Memory(tree=["python/tests/test_models.py", "tests/other.py"])
    api.add_pull()
    made = outcome(finished(api.add_run(20, "pytest-xdist")), api)
    assert made.requests[0].command == "pytest python/tests/test_models.py::TestCompiled::test_pool"
    assert api.asked_for_files == [(REPO, HEAD)]
    api.written.clear()
    made = outcome(finished(api.runs[20]), api, working_directory="python")
    assert (made.requests[0].command, made.requests[0].directory) == ("pytest tests/test_models.py::TestCompiled::test_pool", "python")


@pytest.mark.parametrize("parts", [("failures_short",), ("failures_long",), ("failures_long", "failures_short")], ids="+".join)
def test_text_reports_count_beside_junit(parts: tuple[str, ...]) -> None:
    """What a part shows is shown once, in the longer form where there are both."""
    api = Memory()
    api.add_pull()
    run = api.add_run(20, "pytest")
    api.logs = {}  # expired
    shape = (LOGS.parent / "shapes" / "transformers-short-reports.txt").read_text(encoding="utf-8")
    head, _, summary = shape.partition("=========================== short")
    files = {"summary_short": summary, **dict.fromkeys(parts, head)}
    if len(parts) == 2:
        files["failures_short"] = head.replace("test_generate_compile", "test_of_the_short_form")
    api.zips[20] = {"reports": zipped({f"reports/tiny_{part}.txt": text.encode() for part, text in files.items()})}
    (request,) = outcome(finished(run), api).requests
    assert request.command == "pytest tests/models/tiny/test_modeling_tiny.py::TinyModelTest::test_generate_compile"
    assert len(request.tests) == 1
    # of the part, not of the summary alone, which does not say where it was raised
    assert request.shown is not None
    assert request.shown.phase is Phase.DYNAMO


def test_reading_ends_with_its_time() -> None:
    api = Memory()
    api.add_run(20, "pytest")
    api.run_jobs[20] *= 3
    ticks = iter([0.0, 1.0, ci_failures.READING + 1, ci_failures.READING + 2])
    read: list[int] = []
    api.job_log = lambda _, job: read.append(job) or ""  # type: ignore[method-assign, func-returns-value]
    ci_failures.Reader(api, REPO, "*", lambda: next(ticks)).failing_tests(20)
    assert read == [200]


def test_signatures_are_read_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """A log of eight megabytes names 2,000 failures, whose messages are slow to read: thirty of them outlasted the job."""
    ticks, signed = iter(range(0, 100_000, 100)), []
    monkeypatch.setattr(ci_failures, "sign", signed.append)
    reader = ci_failures.Reader(Memory(), REPO, "*", lambda: next(ticks))
    failures = [Failure(str(number), f"test_a.py::test_{number}", "") for number in range(9)]
    assert reader.signed(failures) == tuple(failures[:3])
    assert reader.signed(failures[:3]) == tuple(failures[:3])
    assert signed == failures[:3]


def test_a_merge_queue_answers_on_the_pull_request_that_it_tries() -> None:
    """Its branch is named after the number; its commit is the head of no pull request (GitHub's documentation of `merge_group`)."""
    api = Memory()
    api.add_pull(number=123)
    branch = f"gh-readonly-queue/release/2.0/pr-123-{MAIN}"
    run = api.add_run(20, "pytest", sha="c" * 40, branch=branch, event="merge_group")
    made = outcome(finished(run), api)
    assert {(request.answer.issue, request.commit, request.fork) for request in made.requests} == {(123, "c" * 40, False)}
    assert len(api.comments(REPO, 123)) == 1
    api.pulls[123] = api.pulls[123].model_copy(update={"state": "closed"})
    assert outcome(finished(run), api).status == "nothing"


BEFORE = "with what may be before it in the merge queue"


@pytest.mark.parametrize("may", ["write", "read"])
def test_a_maintainer_who_works_in_a_fork_is_not_said_to_have_no_permission(may: Permission) -> None:
    api = Memory(protected={"forks"}, permissions={"maintainer": "write", "contributor": may, "pusher": may})
    api.add_pull(fork="contributor/models")
    run = api.add_run(20, "pytest")
    fork = Repository(full_name="contributor/models")
    api.runs[20] = run = run.model_copy(update={"head_repository": fork, "actor": user("pusher")})
    given = settings(fork_environment="forks")
    by_comment = [Conversation(asked(body, pull=True), given, api).outcome() for body in ("/minify", f"/minify {run.html_url}")]
    for made in (*by_comment, outcome(finished(run), api, fork_environment="forks")):
        assert made.requests
        # whose permission it is does not change who has to approve it
        assert {(each.code.trusted, each.fork) for each in made.requests} == {(may == "write", True)}


def test_a_fork_s_code_in_a_merge_queue_is_a_fork_s() -> None:
    """Its branch, and so the run, is the repository's own (GitHub's documentation of `merge_group`)."""
    api = Memory()
    api.add_pull(number=123, fork="stranger/fork")
    run = api.add_run(20, "pytest", sha="c" * 40, branch=f"gh-readonly-queue/main/pr-123-{MAIN}", event="merge_group")
    asking = asked(f"/minify {run.html_url}")
    assert outcome(finished(run), api).status == "nothing"
    assert Conversation(asking, settings(), api).outcome().status == "refused"
    api.protected.add("forks")
    asked_for = Conversation(asking, settings(fork_environment="forks"), api).outcome()
    for made in (asked_for, outcome(finished(run), api, fork_environment="forks")):
        facts = {(each.fork, each.repository, each.code.author, each.code.trusted, each.code.note) for each in made.requests}
        assert facts == {(True, REPO, "contributor", False, f"from the fork stranger/fork, {BEFORE}")}
        assert all(row["fork"] for row in matrix(made.requests))


def test_what_is_before_it_in_a_merge_queue_may_be_a_fork_s() -> None:
    """The branch of one pull request holds all that is queued before it, of whoever that is."""
    api = Memory(stacked={"c" * 40})
    api.add_pull(number=123)
    run = api.add_run(20, "pytest", sha="c" * 40, branch=f"gh-readonly-queue/main/pr-123-{MAIN}", event="merge_group")
    asking = asked(f"/minify {run.html_url}")
    refusals = [outcome(finished(run), api), Conversation(asking, settings(), api).outcome()]
    assert [made.status for made in refusals] == ["nothing", "refused"]
    # the pull request itself comes from no fork
    assert all(made.note.startswith("What the merge queue tried may hold code from a fork, and this") for made in refusals)
    api.protected.add("forks")
    asked_for = Conversation(asking, settings(fork_environment="forks"), api).outcome()
    for made in (asked_for, outcome(finished(run), api, fork_environment="forks")):
        # one author is named, and it may be another's program
        assert {(each.code.author, each.code.note) for each in made.requests} == {("contributor", BEFORE)}
        assert all(row["fork"] for row in matrix(made.requests))


def test_a_fork_with_the_same_head_is_not_the_pull_request_that_ran() -> None:
    api = Memory()
    api.add_pull(number=8, fork="stranger/fork")
    api.add_pull(number=9)
    # whether GitHub names the fork's as well where both have the commit is not documented
    api.pull_requests_of = lambda *_: list(api.pulls.values())  # type: ignore[method-assign, assignment]
    made = outcome(finished(api.add_run(20, "pytest")), api)
    assert {request.answer.issue for request in made.requests} == {9}


@pytest.mark.parametrize("branch", ["gh-readonly-queue/main/pr-7", f"x/pr-7-{'a' * 40}", f"gh-readonly-queue/main/pr-x-{'a' * 40}"])
@pytest.mark.parametrize("event", ["merge_group", "push"])
def test_what_is_no_branch_of_a_merge_queue(branch: str, event: str) -> None:
    api = Memory()
    api.add_pull(number=7)
    assert outcome(finished(api.add_run(20, "pytest", sha="c" * 40, branch=branch, event=event)), api).status == "nothing"


@pytest.mark.parametrize("event", ["issue_comment", "issues", "workflow_run", "discussion_comment", "fork", "watch"])
def test_what_anybody_can_set_off_says_nothing_about_the_default_branch(event: str) -> None:
    """Such runs have the head of the default branch, whatever they fetch and run: somebody's fork, for instance, or its artifact."""
    api = Memory()
    assert outcome(finished(api.add_run(20, "pytest", sha=MAIN, branch="main", event=event)), api).status == "nothing"
    assert api.issues == {}


@pytest.mark.parametrize("event", ["push", "schedule", "workflow_dispatch", "repository_dispatch"])
def test_what_takes_rights_or_the_clock_says_something(event: str) -> None:
    api = Memory()
    assert outcome(finished(api.add_run(20, "pytest", sha=MAIN, branch="main", event=event)), api).status == "requests"


@pytest.mark.parametrize("pull", [True, False])
def test_what_cannot_be_told_of_is_not_done(pull: bool) -> None:
    """Of a locked pull request, for instance: each push would have it minimized again, and no comment would count that."""
    api = Memory(silent=True)
    if pull:
        api.add_pull()
    run = api.add_run(20, "pytest") if pull else api.add_run(20, "pytest", sha=MAIN, branch="main", event="push")
    made = outcome(finished(run), api)
    assert (made.status, made.requests) == ("nothing", ())
    assert "no comment" in made.note


def test_of_an_issue_on_which_nothing_can_be_written_the_summary_says_so() -> None:
    class Locked(Memory):
        def upsert_comment(self, repository: str, issue: int, *told: Any, **more: Any) -> Comment:
            if issue == 500:
                raise GitHubError("POST: 403 Unable to create comment because issue is locked.", 403)
            return super().upsert_comment(repository, issue, *told, **more)

    api = Locked()
    made = outcome(finished(api.add_run(20, "pytest", sha=MAIN, branch="main", event="push")), api)
    assert [request.answer.issue for request in made.requests] == [501]
    assert "\n\nOn #500 no comment could be written" in made.note


def test_where_issues_are_disabled_nothing_is_done() -> None:
    """GitHub answers 410 there (documentation of creating an issue). It is no fault: most forks are so."""
    api = Memory(no_issues=True)
    run = api.add_run(20, "pytest", sha=MAIN, branch="main", event="push")
    made = outcome(finished(run), api)
    assert (made.status, "issues are disabled" in made.note) == ("nothing", True)
    api.add_pull()
    assert outcome(finished(api.add_run(21, "pytest")), api).status == "requests"
