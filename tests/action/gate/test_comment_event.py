"""From a comment to requests, or to words for the person who wrote it."""

from __future__ import annotations

import shlex
from datetime import timedelta
from typing import Any

import pytest

from bot.action.gate.ci_event import RedRun
from bot.action.gate.comment_event import Conversation
from bot.action.gate.gate import matrix
from bot.action.gate.requests import Decision
from bot.action.github.resources import Issue, IssueComment, PullRequest, Repository, Run, WorkflowJob
from bot.action.github.transport import GitHubError
from bot.action.settings import Settings
from bot.models.failure import Stage
from bot.models.request import Request
from tests.action.gate.memory import BLOCK, BOT, HEAD, MAIN, NOW, REPO, SCRIPT, Memory, asked, finished, settings, zipped


def outcome(event: IssueComment, api: Memory, given: Settings | None = None) -> Decision:
    return Conversation(event, given or settings(), api).outcome()


def only(made: Decision) -> Request:
    assert made.status == "requests", made
    (request,) = made.requests
    return request


def said(api: Memory, issue: int = 7) -> str:
    """The one comment of ours."""
    (comment,) = [comment for comment in api.comments(REPO, issue) if comment.user.login == BOT]
    return comment.body


def test_code_in_the_comment_is_what_runs() -> None:
    api = Memory()
    made = only(outcome(asked(f"Look:\n\n/minify --stage aot --budget 10m\n\n{BLOCK}", issue_body=BLOCK.replace("x + 1", "x + 2")), api))
    assert (made.script, made.command, made.commit, made.repository) == (SCRIPT, None, MAIN, REPO)
    assert (made.options.stage, made.options.budget, made.options.accuracy) == (Stage.AOT, 600.0, "auto")
    assert (made.code.where, made.code.author, made.code.trusted) == ("comment", "maintainer", True)
    assert made.answer.comment == 1000
    assert made.answer.trigger == 4242
    assert api.reactions == [(4242, "eyes")]
    assert said(api).startswith("<!-- torch-minify:comment-4242 run:77 -->\n")
    assert f"https://github.com/{REPO}/actions/runs/77" in said(api)


def test_code_of_the_issue_is_a_stranger_s_and_says_so() -> None:
    api = Memory()
    made = only(outcome(asked("/minify", issue_body=f"It fails:\n```\nlog\n```\n{BLOCK}"), api))
    assert made.script == SCRIPT
    assert (made.code.where, made.code.author, made.code.trusted) == ("issue", "reporter", False)
    assert made.code.note == "the second of 2 code blocks, the only one that imports torch and compiles"
    api.permissions["reporter"] = "admin"
    assert only(outcome(asked("/minify", issue_body=BLOCK), api)).code.trusted


def test_code_that_the_issue_shows_on_a_click_is_said_to_be_and_shown_once() -> None:
    api = Memory()
    folded = f"<details><summary>Minified repro</summary>\n\n{BLOCK}\n</details>\n"
    made = outcome(asked("/minify --stage aot\n/minify", issue_body=folded), api)
    assert [(request.script, request.code.folded) for request in made.requests] == [(SCRIPT, True)] * 2
    assert "Taken: `the code block in the closed fold “Minified repro”`." in said(api)
    assert said(api).count(SCRIPT) == 1
    outcome(asked("/minify", issue_body=BLOCK), api)
    assert SCRIPT not in said(api)


def test_a_test_runs_by_the_repository_s_template_as_one_word() -> None:
    made = only(
        outcome(
            asked("""/minify --test "tests/test_x.py::test_y[a b; c]" """), Memory(), settings(test_command="python -m pytest -x {nodeid}")
        )
    )
    assert made.command is not None
    assert shlex.split(made.command) == ["python", "-m", "pytest", "-x", "tests/test_x.py::test_y[a b; c]"]


def test_three_commands_are_three_requests_and_one_comment() -> None:
    api = Memory()
    made = outcome(asked(f"/minify --stage aot\n/minify --stage dynamo\n/minify\n\n{BLOCK}"), api)
    assert [request.options.stage for request in made.requests] == [Stage.AOT, Stage.DYNAMO, None]
    assert len({request.id for request in made.requests}) == 3
    assert {request.answer.comment for request in made.requests} == {1000}
    assert len(api.comments(REPO, 7)) == 1


def test_an_event_that_comes_again_edits_its_comment() -> None:
    api = Memory()
    outcome(asked(f"/minify\n{BLOCK}"), api)
    outcome(asked(f"/minify\n{BLOCK}"), api, settings(run_id=78))
    assert said(api).startswith("<!-- torch-minify:comment-4242 run:78 -->")


@pytest.mark.parametrize("body", ["no command", "/minifyx", "> /minify", f"```\n/minify\n```\n{BLOCK}"])
def test_silence_for_what_is_no_command(body: str) -> None:
    api = Memory()
    assert outcome(asked(body), api).status == "nothing"
    assert (api.written, api.reactions) == ({}, [])


@pytest.mark.parametrize(
    "event",
    [
        asked(f"/minify\n{BLOCK}", sender="somebody"),
        asked(f"/minify\n{BLOCK}", by="dependabot[bot]"),
        asked(f"/minify\n{BLOCK}").model_copy(update={"action": "edited"}),
        asked(f"/minify\n{BLOCK}", user=None),
    ],
    ids=["sent by another", "a bot", "edited", "a deleted account"],
)
def test_silence_where_nobody_asked(event: IssueComment) -> None:
    api = Memory(permissions={"maintainer": "write", "somebody": "admin", "dependabot[bot]": "admin"})
    assert outcome(event, api).status == "nothing"
    assert (api.written, api.reactions) == ({}, [])


@pytest.mark.parametrize("permission", ["read", "none"])
def test_without_write_permission_one_reply_says_what_is_needed(permission: str) -> None:
    api = Memory(permissions={"maintainer": permission})  # type: ignore[dict-item]
    event = asked(f"/minify\n{BLOCK}")
    assert [outcome(event, api).status for _ in range(2)] == ["refused", "refused"]
    assert "write permission" in said(api)
    assert {reaction for _, reaction in api.reactions} == {"confused"}


def test_anybody_may_ask_for_help() -> None:
    api = Memory(permissions={})
    assert outcome(asked("/minify help"), api).status == "refused"
    assert "--torch-version" in said(api)


def test_an_error_is_answered_with_a_guess_and_the_help() -> None:
    api = Memory()
    assert outcome(asked("/minify --stge aot"), api).status == "refused"
    assert "Did you mean `--stage`?" in said(api)
    assert "--python-version" in said(api)


def test_no_code_is_said() -> None:
    api = Memory()
    assert outcome(asked("/minify", issue_body="```python\nprint('no torch')\n```"), api).status == "refused"
    assert "no code to run" in said(api)
    assert "/minify help says how to ask" in said(api)


def test_stop_is_another_job_s() -> None:
    api = Memory()
    assert outcome(asked("/minify stop"), api).status == "stop"
    assert api.written == {}


def test_a_pull_request_runs_its_head() -> None:
    api = Memory()
    api.add_pull()
    assert only(outcome(asked(f"/minify\n{BLOCK}", pull=True), api)).commit == HEAD


def test_commits_pushed_after_the_comment_are_not_run() -> None:
    api = Memory(pushed=NOW + timedelta(seconds=1))
    api.add_pull()
    assert outcome(asked(f"/minify\n{BLOCK}", pull=True), api).status == "refused"
    assert "after the request" in said(api)


def test_a_run_that_runs_again_and_is_refused_leaves_its_result() -> None:
    """Somebody with write permission may start it again at any time, by the page of the run, and the head has moved since."""
    api = Memory()
    api.add_pull()
    event = asked(f"/minify\n{BLOCK}", pull=True)
    queued = only(outcome(event, api)).answer
    api.upsert_comment(REPO, 7, queued.marker, f"{queued.marker}\n\n### 1. Minimized, interrupted, 42 s\n", queued.comment)
    api.pushed = NOW + timedelta(seconds=1)
    again = outcome(event, api)
    assert (again.status, "pushed after the request" in again.note) == ("refused", True)
    assert said(api).splitlines()[2] == "### 1. Minimized, interrupted, 42 s"


@pytest.mark.parametrize(
    ("environment", "protected", "pushed", "allowed"),
    [("", True, True, False), ("forks", False, True, False), ("forks", True, False, False), ("forks", True, True, True)],
    ids=["no environment", "not protected", "unknown push", "opted in"],
)
def test_a_fork_runs_only_behind_a_protected_environment(environment: str, protected: bool, pushed: bool, allowed: bool) -> None:
    api = Memory(protected={"forks"} if protected else set(), pushed=NOW - timedelta(hours=1) if pushed else None)
    api.add_pull(fork="contributor/models")
    made = outcome(asked(f"/minify\n{BLOCK}", pull=True), api, settings(fork_environment=environment))
    assert (made.status == "requests") == allowed
    if allowed:
        assert only(made).repository == "contributor/models"
        assert "a reviewer of the workflow's `fork-environment` has to approve it first" in said(api)
    else:
        assert "fork" in said(api)


def test_a_pull_request_without_code_is_answered_from_its_red_run() -> None:
    api = Memory()
    api.add_pull()
    api.add_run(20, "pytest")
    made = outcome(asked("/minify --budget 5m", pull=True), api)
    assert [request.command for request in made.requests] == [
        "pytest tests/test_models.py::TestCompiled::test_pool",
        "pytest tests/test_models.py::TestCompiled::test_class_in_function",
    ]
    assert len(made.requests[0].tests) == 7
    assert made.requests[0].expected is not None
    assert "max not supported" in made.requests[0].expected
    assert {request.options.budget for request in made.requests} == {300.0}
    assert "not a candidate" in said(api)
    assert "possible" in said(api)


def test_what_is_possible_is_taken_where_a_person_asks_and_nothing_is_suggested() -> None:
    api = Memory()
    api.add_pull()
    run = api.add_run(20, "pytest")
    api.logs = {}
    wrong = "<failure>Traceback (most recent call last):\nAssertionError: Tensor-likes are not close!</failure>"
    xml = f'<testsuite><testcase classname="tests.test_x" name="test_compiled">{wrong}</testcase></testsuite>'
    api.zips[20] = {"reports": zipped({"junit.xml": xml.encode()})}
    assert outcome(asked("/minify", pull=True), api).requests[0].command == "pytest tests/test_x.py::test_compiled"
    assert RedRun(finished(run), settings(), api).outcome().status == "nothing"


def test_a_job_s_address_names_the_run() -> None:
    api = Memory()
    api.add_pull()
    api.add_run(20, "unittest-file")
    made = outcome(asked(f"/minify https://github.com/{REPO}/actions/runs/20/job/200", pull=True), api)
    assert made.requests[0].command == "pytest tests/test_models.py::TestCompiled::test_pool"
    assert outcome(asked(f"/minify https://github.com/{REPO}/actions/runs/20/job/201", pull=True), api).status == "refused"


@pytest.mark.parametrize(
    ("place", "found"), [("", False), ("/attempts/1", True), ("/attempts/2", False), ("/job/200", True), ("/job/209", False)]
)
def test_what_ran_again_since_can_be_asked_about(place: str, found: bool) -> None:
    """An address of an attempt, or of a job in one, is of that one, though another one came after it and was green."""
    api = Memory()
    api.add_pull()
    api.add_run(20, "pytest")
    api.run_jobs[20].append(WorkflowJob(id=209, name="tests", conclusion="success", run_attempt=2))
    made = outcome(asked(f"/minify https://github.com/{REPO}/actions/runs/20{place}", pull=True), api)
    assert made.status == ("requests" if found else "refused")


@pytest.mark.parametrize("place", ["/attempts/3", "/job/333", "/attempts/1/job/209"])
def test_a_job_or_an_attempt_that_a_run_does_not_have_is_said_to_be_none(place: str) -> None:
    """Nothing of another one is taken for it, reports in artifacts neither."""
    api = Memory()
    api.add_pull()
    api.add_run(20, "pytest")
    api.run_jobs[20].append(WorkflowJob(id=209, name="tests", conclusion="success", run_attempt=2))
    xml = b'<testsuite><testcase name="t" classname="a"><failure>torch._dynamo.exc.Unsupported: x</failure></testcase></testsuite>'
    api.zips[20] = {"reports": zipped({"junit.xml": xml})}
    assert outcome(asked(f"/minify https://github.com/{REPO}/actions/runs/20{place}", pull=True), api).status == "refused"
    assert "GitHub knows of no such job, or attempt, of that run." in said(api)


@pytest.mark.parametrize(
    "address",
    [
        "https://github.com/other/repo/actions/runs/20",
        "https://evil.example/octo/models/actions/runs/20",
        f"https://github.com/{REPO}/actions/runs/21",
    ],
)
def test_a_run_elsewhere_is_refused(address: str) -> None:
    for others in ((), ("other/repo",)):
        api = Memory(others=set(others))
        api.add_run(20, "pytest")
        assert outcome(asked(f"/minify {address}"), api).status == "refused"


def test_of_a_run_that_goes_on_no_more_is_said_than_was_read() -> None:
    api = Memory()
    api.runs[20] = api.add_run(20, None).model_copy(update={"status": "in_progress", "conclusion": None})
    for status, ended in (("in_progress", False), ("completed", True)):
        api.runs[20] = api.runs[20].model_copy(update={"status": status})
        api.written.clear()
        outcome(asked(f"/minify https://github.com/{REPO}/actions/runs/20"), api)
        assert ("has not ended yet" in said(api)) is not ended


@pytest.mark.parametrize(
    "address",
    ["http://github.com/{}/actions/runs/20", "https://www.GitHub.com/{}/actions/runs/20", "<https://github.com/{}/actions/runs/20>"],
)
def test_an_address_is_read_as_people_write_it(address: str) -> None:
    api = Memory()
    api.add_run(20, "pytest")
    assert outcome(asked(f"/minify {address.format(REPO)}"), api).status == "requests"


@pytest.mark.parametrize("address", ["https://github.com/octo/earlier", f"https://GitHub.com/{REPO.upper()}"])
def test_a_run_is_known_by_an_earlier_name_of_the_repository(address: str) -> None:
    """GitHub leads on from the name that a repository had (documentation of renaming one)."""
    api = Memory(earlier_names={"octo/earlier", REPO.upper()})
    api.add_run(20, "pytest")
    assert outcome(asked(f"/minify {address}/actions/runs/20"), api).status == "requests"


NUMBER = 31


class Renamed(Memory):
    """The repository has another name than in the event: GitHub leads there, and calls it so in what it answers; its number stays."""

    def run(self, repository: str, run: int) -> Run:
        return self._now(self.runs[run])

    def runs_of(self, repository: str, commit: str) -> list[Run]:
        return list(map(self._now, self.runs.values()))

    def pull_request(self, repository: str, number: int) -> PullRequest:
        pull = self.pulls[number]
        assert pull.head.repo is not None
        mine = pull.head.repo.full_name == REPO
        head = pull.head.model_copy(update={"repo": Repository(id=NUMBER, full_name="octo/now") if mine else pull.head.repo})
        base = pull.base.model_copy(update={"repo": Repository(id=NUMBER, full_name="octo/now")})
        return pull.model_copy(update={"head": head, "base": base})

    @staticmethod
    def _now(run: Run) -> Run:
        now = Repository(id=NUMBER, full_name="octo/now")
        return run.model_copy(update={"repository": now, "head_repository": now})


@pytest.mark.parametrize(
    "command", ["/minify", f"/minify https://github.com/{REPO}/actions/runs/20", "/minify https://github.com/octo/now/actions/runs/20"]
)
def test_a_repository_that_was_renamed_meanwhile_is_no_fork_of_itself(command: str) -> None:
    api = Renamed()
    api.add_pull()
    api.add_run(20, "pytest")
    event = asked(command, pull=True)
    event = event.model_copy(update={"repository": event.repository.model_copy(update={"id": NUMBER})})
    made = outcome(event, api, settings(fork_environment="forks"))
    assert made.status == "requests"
    assert not any(row["fork"] for row in matrix(made.requests))


def test_one_that_took_its_name_is_another() -> None:
    api = Renamed()
    api.add_run(20, "pytest")
    event = asked("/minify https://github.com/octo/now/actions/runs/20")
    for number, status in ((NUMBER, "requests"), (NUMBER + 1, "refused")):
        repository = Repository(id=number, full_name="octo/now")
        assert outcome(event.model_copy(update={"repository": repository}), api).status == status


def test_again_does_the_last_command_of_somebody_who_may() -> None:
    api = Memory()
    api.add(7, "maintainer", f"/minify --stage aot --accuracy off\n\n{BLOCK}")
    api.add(7, "stranger", f"/minify --stage dynamo\n\n{BLOCK.replace('x + 1', 'evil()')}")
    api.add(7, "maintainer", "thanks")
    made = only(outcome(asked("/minify again --accuracy strict"), api))
    assert (made.script, made.options.stage, made.options.accuracy) == (SCRIPT, Stage.AOT, "strict")
    assert outcome(asked("/minify again"), Memory()).status == "refused"


@pytest.mark.parametrize(
    ("first", "again", "command"),
    [
        ("ADDRESS", "--test tests/x.py::test_y", "pytest tests/x.py::test_y"),
        ("--test tests/x.py::test_y", "ADDRESS", "pytest tests/test_models.py::TestCompiled::test_pool"),
        ("--test tests/x.py::test_y", "--device cpu", "pytest tests/x.py::test_y"),
    ],
)
def test_what_again_names_takes_the_place_of_what_was_asked_about(first: str, again: str, command: str) -> None:
    api = Memory()
    api.add_pull()
    run = api.add_run(20, "pytest")
    api.add(7, "maintainer", f"/minify {first}".replace("ADDRESS", run.html_url))
    made = outcome(asked(f"/minify again {again}".replace("ADDRESS", run.html_url), pull=True), api)
    assert made.requests[0].command == command


def test_a_stage_that_is_asked_for_is_taken_though_it_be_auto() -> None:
    api = Memory()
    given = settings(stage="aot")
    assert only(outcome(asked(f"/minify\n{BLOCK}"), api, given)).options.stage is Stage.AOT
    assert only(outcome(asked(f"/minify --stage auto\n{BLOCK}"), api, given)).options.stage is None
    api.add(7, "maintainer", f"/minify --stage dynamo\n{BLOCK}")
    assert only(outcome(asked("/minify again"), api)).options.stage is Stage.DYNAMO
    assert only(outcome(asked("/minify again --stage auto"), api)).options.stage is None


def test_requests_survive_a_comment_that_cannot_be_written() -> None:
    api = Memory(silent=True)
    made = only(outcome(asked(f"/minify\n{BLOCK}"), api))
    assert made.answer.comment is None


def issue(**changes: Any) -> Issue:
    return asked("").issue.model_copy(update=changes)


@pytest.mark.parametrize(
    ("there", "begun"),
    [
        (issue(locked=True), False),
        (issue(id=8), False),
        (GitHubError("GET: 301", 301), False),
        (GitHubError("GET: 404", 404), False),
        (GitHubError("GET: 410", 410), False),
        (issue(), True),
        (GitHubError("GET: 502", 502), True),
    ],
    ids=["locked", "handed over", "handed over to a stranger", "gone", "deleted", "there", "unknown"],
)
@pytest.mark.parametrize("asked_for", ["/minify", "/minify doctor"])
def test_a_conversation_in_which_nothing_can_be_posted_costs_no_machine(there: Issue | GitHubError, begun: bool, asked_for: str) -> None:
    """However it was when the event was sent. Where GitHub does not answer, it may when there is a result.

    GitHub's documentation of locking: who may write to the repository may go on commenting; any other token is answered 403. Of an issue
    that was handed over, the event `issues.transferred` shows the new one, with an id of its own (@octokit/webhooks-examples).
    """

    class There(Memory):
        def issue(self, repository: str, number: int) -> Issue:
            if isinstance(there, GitHubError):
                raise there
            return there

    event, given = asked(f"{asked_for}\n\n{BLOCK}"), settings(image="none")
    assert outcome(event, There(silent=True), given).status == ("requests" if begun else "refused")
    assert outcome(event, There(), given).status == "requests"


def test_an_issue_that_switches_a_test_off_is_enough() -> None:
    api = Memory(tree=["test/inductor/test_pool.py"])
    body = "Platforms: linux\n\nTest file path: `inductor/test_pool.py`\n"
    title = "DISABLED test_pool_cpu (__main__.CpuTests)"
    made = only(outcome(asked("/minify --budget 10m", issue_title=title, issue_body=body), api))
    assert made.command == "pytest test/inductor/test_pool.py::CpuTests::test_pool_cpu"
    assert (made.commit, made.code.where, made.shown, made.options.budget) == (MAIN, "push", None, 600.0)
    assert api.asked_for_files == [(REPO, MAIN)]
    hint = "    PYTORCH_TEST_WITH_DYNAMO=1 LD_PRELOAD=x python test/inductor/test_pool.py CpuTests.test_pool_cpu"
    made = only(outcome(asked("/minify", issue_title=title, issue_body=f"```\n{hint}\n```"), Memory()))
    assert made.command == "PYTORCH_TEST_WITH_DYNAMO=1 python test/inductor/test_pool.py CpuTests.test_pool_cpu"
    # what somebody wrote comes first
    assert only(outcome(asked(f"/minify\n\n{BLOCK}", issue_title=title, issue_body=body), Memory())).script == SCRIPT
    api = Memory()
    assert outcome(asked("/minify", issue_title=title, issue_body="it fails"), api).status == "refused"
    assert "names its file" in said(api)


def test_a_test_that_is_named_stands_before_the_code_beside_it_and_that_is_said() -> None:
    api = Memory()
    made = outcome(asked(f"/minify --test tests/test_a.py::test_b\n{BLOCK}"), api)
    assert [request.command for request in made.requests] == ["pytest tests/test_a.py::test_b"]
    assert "Taken: `the test that the command names, not the code in the comment`." in said(api)


@pytest.mark.parametrize("pull", [False, True])
@pytest.mark.parametrize("code", ["```python\nmodel(x\n```", "```\nx = 1\n```", "```\nimport torch\nmodel(x\n```"])
def test_a_block_that_is_not_taken_is_not_said_to_be_missing(code: str, pull: bool) -> None:
    api = Memory()
    api.add_pull()
    assert outcome(asked(f"/minify\n\n{code}", pull=pull), api).status == "refused"
    assert "the comment has no fenced block that reads as Python and is marked so, or imports torch and is not marked" in said(api)
    # red checks of others are not looked at
    assert ("no run of GitHub Actions for the head of this pull request is red" in said(api)) is pull


@pytest.mark.parametrize("status", ["in_progress", "queued", "completed"])
def test_a_run_with_a_red_job_is_not_said_to_be_none_before_it_has_ended(status: str) -> None:
    api = Memory()
    api.add_pull()
    api.add_run(20, "pytest")
    api.runs[20] = api.runs[20].model_copy(update={"status": status, "conclusion": None if status != "completed" else "success"})
    assert outcome(asked("/minify", pull=True), api).status == "refused"
    assert ("CI has not ended yet." in said(api)) is (status != "completed")


def test_what_ci_showed_goes_with_the_request() -> None:
    api = Memory()
    api.add_pull()
    api.add_run(20, "pytest")
    made = outcome(asked("/minify", pull=True), api).requests
    assert made
    assert all(request.shown is not None and request.expected == request.shown.line() for request in made)


def test_who_may_not_ask_is_answered_once_on_an_issue() -> None:
    api = Memory()
    for number, body in ((11, "/minify"), (12, "/minify"), (13, "/minify help")):
        api.written.setdefault(7, []).append(asked(body, by="stranger", id=number).comment)
        assert outcome(asked(body, by="stranger", id=number), api).status == "refused"
    assert len([comment for comment in api.comments(REPO, 7) if comment.user.login == BOT]) == 1
    # somebody else, and the same person elsewhere
    outcome(asked("/minify", by="another", id=14), api)
    outcome(asked("/minify", by="stranger", id=15, issue=8), api)
    assert len([comment for comment in api.comments(REPO, 7) if comment.user.login == BOT]) == 2
    assert len(api.comments(REPO, 8)) == 1


def test_a_bot_s_command_is_not_done_again() -> None:
    api = Memory(permissions={"maintainer": "write", "helper[bot]": "write"})
    api.add(7, "helper[bot]", f"/minify --stage dynamo\n\n{BLOCK}")
    assert outcome(asked("/minify again", id=5000), api).status == "refused"
    assert "no earlier command" in said(api)
