"""The outermost layer: files, environment, exit status; and the settings."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bot.action import request_file
from bot.action.ci import logs
from bot.action.comment import run_of_comment
from bot.action.console import InputError
from bot.action.gate import gate
from bot.action.gate.ci_event import RedRun
from bot.action.gate.ci_failures import sign
from bot.action.gate.comment_event import Conversation
from bot.action.github.resources import IssueComment, Permission, Repository, User, WorkflowRun
from bot.action.github.transport import GitHubError
from bot.action.report.render.text import marker_line
from bot.action.settings import usable_settings
from bot.cli import main as cli
from bot.models.request import Request
from tests.action.gate.memory import BLOCK, BOT, HEAD, REPO, Memory, asked, finished, settings

TOOLS = Path(__file__).resolve().parents[3] / ".tools"
EXAMPLES = TOOLS / "node_modules" / "@octokit" / "webhooks-examples" / "api.github.com" / "index.json"


def examples(name: str) -> list[dict[str, object]]:
    if not EXAMPLES.exists():
        pytest.skip("scripts/setup-tools has not run")
    found = json.loads(EXAMPLES.read_text(encoding="utf-8"))
    return next(event["examples"] for event in found if event["name"] == name)  # type: ignore[no-any-return]


def test_events_that_github_really_sent_are_read(tmp_path: Path) -> None:
    for name, kind in (("issue_comment", IssueComment), ("workflow_run", WorkflowRun)):
        for number, example in enumerate(examples(name)):
            path = tmp_path / f"{name}-{number}.json"
            path.write_text(json.dumps(example), encoding="utf-8")
            event = gate.read_event(path, name)
            assert isinstance(event, kind)
            assert gate.decide(event, settings(), Memory()).status == "nothing"


def test_an_event_that_github_really_sent_with_a_command_in_it() -> None:
    example = examples("issue_comment")[0]
    comment = example["comment"]
    assert isinstance(comment, dict)
    event = IssueComment.model_validate(example | {"comment": comment | {"body": f"/minify\n{BLOCK}"}})
    assert event.sender.login == "Codertocat"
    api = Memory(permissions={"Codertocat": "admin"})
    outcome = gate.decide(event, settings(), api)
    assert [request.answer.issue for request in outcome.requests] == [1]


def test_another_event_asks_for_nothing(tmp_path: Path) -> None:
    assert gate.read_event(tmp_path / "missing", "push") is None
    assert gate.decide(None, settings(), Memory()).status == "nothing"


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"action": "created", "comment": 5}', "\0"])
def test_a_torn_event_is_an_error_in_one_line(content: str, tmp_path: Path) -> None:
    path = tmp_path / "event.json"
    path.write_text(content)
    with pytest.raises(InputError, match="cannot read the issue_comment event in"):
        gate.read_event(path, "issue_comment")


def test_what_the_jobs_hand_on_is_what_was_decided() -> None:
    outcome = Conversation(asked(f"/minify --stage aot\n{BLOCK}"), settings(), Memory()).outcome()
    assert tuple(Request.model_validate(one) for one in json.loads(request_file.to_json(outcome.requests))) == outcome.requests


def test_the_matrix_says_what_is_checked_out() -> None:
    api = Memory(protected={"forks"})
    api.add_pull(fork="contributor/models")
    event = finished(api.add_run(20, "pytest"), head_repository={"full_name": "contributor/models"})
    made = RedRun(event, settings(fork_environment="forks"), api).outcome().requests
    assert gate.matrix(made) == [{"index": index, "repository": "contributor/models", "commit": HEAD, "fork": True} for index in (0, 1)]
    own = Conversation(asked(f"/minify\n{BLOCK}"), settings(), Memory()).outcome().requests
    assert [(one["repository"], one["fork"]) for one in gate.matrix(own)] == [(REPO, False)]


def test_plain_assertions_of_different_tests_are_different_failures() -> None:
    log = (Path(__file__).resolve().parents[2] / "fixtures/ci/logs/pytest.txt").read_bytes().decode()
    keys = {failure.name: found.fingerprint for failure in logs.failures(log) if (found := sign(failure))}
    assert len({keys[name] for name in ("TestCompiled.test_eager", "TestCompiled.test_numbers", "test_prints_a_traceback")}) == 3


# settings


def unusable() -> str:
    """What is said of the settings that cannot be used, whether the job goes on without them or not."""
    try:
        return usable_settings()[1]
    except InputError as error:
        return str(error)


@pytest.fixture
def environment(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    for name in ("GITHUB_TOKEN", "GITHUB_REPOSITORY", "GITHUB_RUN_ID", "GITHUB_ACTIONS"):
        monkeypatch.delenv(name, raising=False)
    return monkeypatch


def test_inputs_come_with_and_without_dashes_and_an_empty_one_is_none(environment: pytest.MonkeyPatch) -> None:
    for name, value in {"INPUT_RUNNER-LABEL": "gpu", "INPUT_MAX_REQUESTS": "7", "INPUT_BUDGET": "", "INPUT_STAGE": "aot"}.items():
        environment.setenv(name, value)
    found, _ = usable_settings()
    assert (found.runner_label, found.max_requests, found.budget, found.stage) == ("gpu", 7, "30m", "aot")


def test_the_token_is_in_no_text(environment: pytest.MonkeyPatch) -> None:
    environment.setenv("INPUT_GITHUB-TOKEN", "hunter2")
    found, _ = usable_settings()
    assert "hunter2" not in repr(found) + str(found) + found.model_dump_json()
    assert found.token.get_secret_value() == "hunter2"


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("INPUT_STAGE", "foo", "input stage 'foo': Input should be 'auto'"),
        ("INPUT_MAX-REQUESTS", "99", "input max-requests '99'"),
        ("INPUT_WORKING-DIRECTORY", "../x", "outside of the checkout"),
        ("INPUT_ENV", "A=1\nMY_TOKEN=x", "'MY_TOKEN' sounds like a secret"),
        ("INPUT_PASS-ENV", "PIP_INDEX_URL, HF_TOKEN", "'HF_TOKEN' sounds like a secret"),
        ("INPUT_PASS-ENV", "a-b", "is no name of a variable"),
        ("INPUT_BUDGET", "soon", "input budget 'soon'"),
        ("INPUT_RUNNER-LABEL", '["gpu", "linux"', "is no JSON list of labels"),
        ("INPUT_RUNNER-LABEL", "[]", "is no JSON list of labels"),
        ("INPUT_RUNNER-LABEL", '["gpu", 8]', "is no JSON list of labels"),
        ("GITHUB_REPOSITORY", "../x", "is not owner/name"),
        ("GITHUB_RUN_ID", "x", "input github-run-id 'x'"),
    ],
)
def test_an_unusable_input_is_named_with_its_value(environment: pytest.MonkeyPatch, name: str, value: str, words: str) -> None:
    environment.setenv(name, value)
    assert words in unusable()


def test_unusable_input_is_exit_status_2(environment: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["gate", "--event", str(tmp_path / "event.json"), "--event-name", "issue_comment", "--out", str(tmp_path / "out")]
    environment.setenv("INPUT_STAGE", "foo")
    assert cli(arguments) == 2
    environment.delenv("INPUT_STAGE")
    assert cli(arguments) == 2
    assert "torch-minify: cannot read the issue_comment event" in capsys.readouterr().err


# the outcome of the job


def test_the_gate_writes_its_requests_and_says_so(tmp_path: Path) -> None:
    outcome = gate.run(asked(f"/minify\n{BLOCK}"), settings(), Memory(), tmp_path / "request.json")
    (request,) = request_file.read(tmp_path / "request.json")
    assert request.repository == REPO
    assert (outcome.exit_status, outcome.outputs["outcome"], outcome.stdout) == (0, "requests", "requests: 1 requests\n")
    assert json.loads(outcome.outputs["matrix"]) == gate.matrix((request,))


@pytest.mark.parametrize(("body", "status", "word"), [("hello", 6, "nothing"), ("/minify stop", 6, "stop"), ("/minify wat", 7, "refused")])
def test_what_is_no_request_has_an_exit_status_but_not_in_actions(tmp_path: Path, body: str, status: int, word: str) -> None:
    for in_actions, expected in ((False, status), (True, 0)):
        outcome = gate.run(asked(body), settings(in_actions=in_actions), Memory(), tmp_path / "request.json")
        assert (outcome.exit_status, outcome.outputs["outcome"], outcome.outputs["matrix"]) == (expected, word, "[]")
        assert outcome.outputs["request-sha256"] == ""
    assert not (tmp_path / "request.json").exists()


def test_where_github_fails_the_person_is_told() -> None:
    class Down(Memory):
        def permission(self, repository: str, user: User) -> Permission:
            raise GitHubError("GET: 502", 502)

    api = Down()
    for run in (lambda event: gate.run(event, settings(), api, None), lambda event: gate.run(event, settings(), api, Path("none"))):
        outcome = run(asked("/minify stop"))
        assert (outcome.exit_status, outcome.outputs) == (1, {})
        assert outcome.summary == "GitHub did not answer. The log of this job says more.\n"
    assert api.reactions == [(4242, "confused")] * 2
    (comment,) = api.comments(REPO, 7)
    assert comment.body.startswith("<!-- torch-minify:comment-4242 run:77 -->\n### Not taken\n\nGitHub did not answer.")


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (GitHubError("POST /repos/o/r/issues: 410 Issues are disabled for this repo", 410), "Issues are disabled for this repo"),
        (GitHubError("GET /x: 403 Resource not accessible by integration", 403), "403 Resource not accessible"),
        (GitHubError("GET /x: 502", 502), "GitHub did not answer."),
        (GitHubError("GET /x: 403 Resource not accessible by integration", 403), "The token lacks a permission for that"),
        (GitHubError("GET /x: 403 API rate limit exceeded", 403), "API rate limit exceeded`."),
        (GitHubError("GET /x: ConnectionError"), "GitHub did not answer."),
    ],
)
def test_what_github_refuses_is_not_said_to_be_no_answer(error: GitHubError, words: str) -> None:
    said = gate.words_for(error)
    assert words in said
    assert ("did not answer" in said) == ("did not answer" in words)


def test_a_failure_is_not_written_over_an_answer() -> None:
    """An event that is delivered again, to a GitHub that does not answer any more."""

    class Down(Memory):
        def permission(self, repository: str, user: User) -> Permission:
            raise GitHubError("GET: 502", 502)

    api = Down()
    api.add(7, BOT, "<!-- torch-minify:comment-4242 run:70 -->\n### Minimized")
    gate.run(asked(f"/minify\n{BLOCK}"), settings(), api, Path("none"))
    assert [comment.body for comment in api.comments(REPO, 7)] == ["<!-- torch-minify:comment-4242 run:70 -->\n### Minimized"]


@pytest.mark.parametrize("event", [asked("no command, only /minify in the middle"), asked("/minify", by="helper[bot]"), None])
def test_nobody_else_is_told_of_a_failure(event: IssueComment | None) -> None:
    api = Memory()
    assert gate.failed(event, settings(), api, "GitHub did not answer.").exit_status == 1
    assert (api.written, api.reactions) == ({}, [])


def test_the_jobs_can_tell_that_the_file_is_the_gate_s(tmp_path: Path) -> None:
    path = tmp_path / "request.json"
    outcome = gate.run(asked(f"/minify\n{BLOCK}"), settings(), Memory(), path)
    said = outcome.outputs["request-sha256"]
    assert len(request_file.read(path, said)) == 1
    path.write_bytes(path.read_bytes().replace(b'"maintainer"', b'"project-lead"'))
    assert len(request_file.read(path)) == 1
    with pytest.raises(InputError, match="is not the file that the gate wrote"):
        request_file.read_one(path, 0, said)


# the image of the job that minifies


@pytest.mark.parametrize(
    ("inputs", "image"),
    [
        ({"gpu_image": "ours@sha256:1"}, "ours@sha256:1"),
        ({"gpu_image": "ours@sha256:1", "image": "mine"}, "mine"),
        ({"gpu_image": "ours@sha256:1", "image": "none"}, "none"),
        ({"gpu_image": "ours@sha256:1", "cu126_image": "ours@sha256:2", "image": "cu126"}, "ours@sha256:2"),
        ({"image": "none"}, "none"),
    ],
)
def test_the_gate_names_the_image(tmp_path: Path, inputs: dict[str, str], image: str) -> None:
    given = settings(in_actions=True, mode="gate", **inputs)
    outcome = gate.run(asked(f"/minify\n{BLOCK}"), given, Memory(), tmp_path / "request.json")
    assert (outcome.outputs["outcome"], outcome.outputs["image"]) == ("requests", image)


@pytest.mark.parametrize("image", ["", "cu126"])
def test_a_commit_that_is_no_release_has_no_image_and_says_so(tmp_path: Path, image: str) -> None:
    """An empty image would be no container: the program would run on the machine itself, which nobody asked for."""
    api, given = Memory(), settings(in_actions=True, mode="gate", image=image)
    outcome = gate.run(asked(f"/minify\n{BLOCK}"), given, api, tmp_path / "request.json")
    assert outcome.outputs["outcome"] == "refused"
    assert "set the input `image`" in api.comments(REPO, 7)[0].body
    api.add_pull()
    assert gate.run(finished(api.add_run(20, "pytest")), given, api, tmp_path / "request.json").outputs["outcome"] == "nothing"


# several calls in one run


def test_two_calls_in_one_run_answer_in_comments_of_their_own(tmp_path: Path) -> None:
    api = Memory()
    for name in ("cpu", "gpu", "cpu"):
        gate.run(asked(f"/minify\n{BLOCK}"), settings(name=name), api, tmp_path / "request.json")
    markers = [comment.body.splitlines()[0] for comment in api.comments(REPO, 7)]
    assert markers == [f"<!-- torch-minify:{name}-comment-4242 run:77 -->" for name in ("cpu", "gpu")]
    assert [run_of_comment(each) for each in markers] == [77, 77]
    assert marker_line(markers[0])


@pytest.mark.parametrize("name", ["request", "result", "unposted", "comment", "run", "A", "a-b", "1a", "a" * 21, "a/b"])
def test_a_name_that_is_none(environment: pytest.MonkeyPatch, name: str) -> None:
    environment.setenv("INPUT_NAME", name)
    assert "input name" in unusable()


# how tests are run


@pytest.mark.parametrize("command", ["make test T={nodeid}", "pytest", "pip install . && pytest {nodeid}"])
def test_what_the_engine_cannot_run_is_refused_before_a_gpu_is_waited_for(tmp_path: Path, command: str) -> None:
    api, given = Memory(), settings(test_command=command)
    asking = asked("/minify --test tests/test_x.py::test_y")
    assert gate.run(asking, given, api, tmp_path / "request.json").outputs["outcome"] == "refused"
    assert "The workflow's input `test-command`" in api.comments(REPO, 7)[0].body
    api.add_pull()
    outcome = gate.run(finished(api.add_run(20, "pytest")), given, api, tmp_path / "request.json")
    assert outcome.outputs["outcome"] == "nothing"
    assert "test-command" in outcome.summary
    # a script needs no test command
    assert gate.run(asked(f"/minify\n{BLOCK}"), given, api, tmp_path / "request.json").outputs["outcome"] == "requests"


def test_where_and_with_what_a_test_runs(tmp_path: Path) -> None:
    given = settings(test_command="cd python && A=1 uv run pytest {nodeid}", working_directory="sub")
    gate.run(asked("/minify --test t.py::x"), given, Memory(), tmp_path / "request.json")
    (request,) = request_file.read(tmp_path / "request.json")
    assert (request.command, request.directory, request.launcher) == ("A=1 pytest t.py::x", "sub/python", ("uv", "run"))
    gate.run(asked(f"/minify\n{BLOCK}"), given, Memory(), tmp_path / "request.json")
    (request,) = request_file.read(tmp_path / "request.json")
    assert (request.command, request.directory, request.launcher) == (None, "sub", ())


# time


@pytest.mark.parametrize(
    ("body", "minutes", "taken"), [("--budget 6h", 120, False), ("--budget 1h", 120, True), ("", 120, True), ("", 30, False)]
)
def test_a_budget_fits_into_the_job(tmp_path: Path, body: str, minutes: float, taken: bool) -> None:
    api = Memory()
    outcome = gate.run(asked(f"/minify {body}\n{BLOCK}"), settings(timeout_minutes=minutes), api, tmp_path / "request.json")
    assert outcome.outputs["outcome"] == ("requests" if taken else "refused")
    assert ("`timeout-minutes` of the workflow" in api.comments(REPO, 7)[0].body) is not taken


# a fork that is gone


def test_code_of_a_deleted_fork_is_refused_however_it_is_asked_for(tmp_path: Path) -> None:
    """Its commit would be fetched from the repository itself, where it lies as refs/pull/N/head, and run without its reviewers."""
    api = Memory(protected={"forks"})
    api.add_pull(gone=True)
    run, given = api.add_run(20, "pytest"), settings(fork_environment="forks")
    api.runs[20] = run.model_copy(update={"head_repository": None})
    address = f"https://github.com/{REPO}/actions/runs/20"
    for event in (asked(f"/minify\n{BLOCK}", pull=True), asked("/minify", pull=True), asked(f"/minify {address}", pull=True)):
        outcome = gate.run(event, given, api, tmp_path / "request.json")
        assert outcome.outputs["outcome"] == "refused"
        assert "is gone" in outcome.summary
    assert gate.run(finished(api.runs[20]), given, api, tmp_path / "request.json").outputs["outcome"] == "nothing"


@pytest.mark.parametrize("fork", [None, "contributor/models"])
@pytest.mark.parametrize("gone", [False, True])
@pytest.mark.parametrize("way", ["comment", "pull", "run", "red"])
def test_whatever_comes_from_a_fork_runs_in_its_environment(tmp_path: Path, way: str, fork: str | None, gone: bool) -> None:
    api = Memory(protected={"forks"})
    api.add_pull(fork=fork, gone=gone)
    api.runs[20] = api.add_run(20, "pytest").model_copy(update={"head_repository": Repository(full_name=fork or REPO)})
    event: IssueComment | WorkflowRun = {
        "comment": lambda: asked(f"/minify\n{BLOCK}", pull=True),
        "pull": lambda: asked("/minify", pull=True),
        "run": lambda: asked(f"/minify https://github.com/{REPO}/actions/runs/20", pull=True),
        "red": lambda: finished(api.runs[20]),
    }[way]()
    outcome = gate.run(event, settings(fork_environment="forks"), api, tmp_path / "request.json")
    matrix = json.loads(outcome.outputs["matrix"])
    assert bool(matrix) is (not gone or way == "run")  # the code that is gone runs nowhere
    for entry in matrix:
        assert entry["fork"] is (fork is not None)


def test_only_a_comment_can_ask_for_a_stop() -> None:
    assert gate.run(None, settings(), Memory(), None).outputs["outcome"] == "nothing"
    assert gate.run(asked("/minify stop"), settings(), Memory(), None).outputs["outcome"] == "stop"
