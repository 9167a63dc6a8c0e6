"""The modes of the Action, in a process with the environment that the runner would give it."""

from __future__ import annotations

import json
import logging
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from pydantic import SecretStr

from bot.action import request_file
from bot.action.__main__ import Edge, LogFormatter, main
from bot.action.console import InputError
from bot.action.gate.comment_event import Conversation
from bot.action.github.resources import Permission
from bot.action.github.transport import GitHubError
from bot.action.minify import isolation
from bot.action.settings import Settings, usable_settings
from tests.action.gate.memory import BLOCK, BOT, REPO, Memory, asked, settings


def run(where: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    env = {"PATH": os.environ["PATH"], "GITHUB_ACTIONS": "true", "GITHUB_OUTPUT": str(where / "output")}
    env |= {name.replace("__", "-"): value for name, value in environment.items()}
    return subprocess.run(
        [sys.executable, "-I", "-m", "bot.action"], cwd=where, env=env, capture_output=True, text=True, timeout=60, check=False
    )


def test_an_input_that_is_none(tmp_path: Path) -> None:
    done = run(tmp_path, INPUT_MODE="dance")
    assert done.returncode == 2
    assert "input mode 'dance'" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_token_is_asked_for_before_anything_is_done(tmp_path: Path) -> None:
    done = run(tmp_path, INPUT_MODE="gate")
    assert done.returncode == 2
    assert done.stderr == "torch-minify: input github-token is empty: everything but the mode minify speaks with GitHub\n"


def test_the_token_is_not_printed(tmp_path: Path) -> None:
    done = run(tmp_path, INPUT_MODE="gate", INPUT_GITHUB__TOKEN="secret-token", INPUT_BUDGET="forever")
    assert done.returncode == 2
    assert "secret-token" not in done.stderr + done.stdout


@pytest.mark.parametrize(
    ("label", "words"),
    [
        ("[]", "empty"),
        ('["a"', "is no JSON list"),
        ('["a", ""]', "is no JSON list"),
        ("self-hosted gpu", "names what no runner is labeled"),
        ("gpu Linux", "names what no runner is labeled"),
        ("self-hosted, gpu", "names what no runner is labeled"),
        ('["self-hosted,gpu"]', "names what no runner is labeled"),
        ('{"group": "gpus", "labels": ["a"]}', "names what no runner is labeled"),
        (' ["a"]', "names what no runner is labeled"),
        ('"gpu"', "names what no runner is labeled"),
        ("gpu\n", "no label begins or ends with a blank"),
        ('["self-hosted", " gpu"]', "no label begins or ends with a blank"),
        # as pages hand them out with what is copied from them
        ("gpu\u200b", "holds what is not shown"),
        ('["gpu", "a\\u00a0b"]', "holds what is not shown"),
    ],
)
def test_what_is_no_label_of_a_runner(monkeypatch: pytest.MonkeyPatch, label: str, words: str) -> None:
    """`[]` is what the workflow makes of an empty input, as where a variable of the repository is not set."""
    monkeypatch.setenv("INPUT_RUNNER-LABEL", label)
    wrong = usable_settings()[1]
    assert wrong.startswith(f"input runner-label {label!r} (the workflow's input runner): ")
    assert words in wrong


def test_a_label_may_have_blanks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("INPUT_RUNNER-LABEL", "Big GPU machine")
    assert usable_settings()[1] == ""


def test_a_variable_may_hold_what_ends_lines_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("INPUT_ENV", "A=1\u2028B=2\r\n\n C=3 \x0b")
    given, wrong = usable_settings()
    assert not wrong
    assert given.variables_given == {"A": "1\u2028B=2", "C": "3"}


@pytest.mark.parametrize("budget", ["0", "0m", "\N{FULLWIDTH DIGIT THREE}0m", "1e3", "121h", "9" * 400 + "h"])
def test_what_is_no_time_for_a_request(monkeypatch: pytest.MonkeyPatch, budget: str) -> None:
    monkeypatch.setenv("INPUT_BUDGET", budget)
    given, wrong = usable_settings()
    assert given.budget == "30m"
    assert wrong.startswith("input budget ")


@pytest.mark.parametrize(("name", "value"), [("submodules", "yes"), ("max-parallel", "0"), ("max-parallel", "257")])
def test_what_the_checkout_or_the_matrix_would_not_use(monkeypatch: pytest.MonkeyPatch, name: str, value: str) -> None:
    """actions/checkout takes any other word for false (src/input-helper.ts)."""
    monkeypatch.setenv(f"INPUT_{name.upper()}", value)
    assert usable_settings()[1].startswith(f"input {name} ")


@pytest.mark.parametrize(
    ("given", "image"),
    [
        *(
            (name, name)
            for name in ("mine", "ghcr.io/a/b-c_d:v1.2", "localhost:5000/a/b", "a/b@sha256:" + "0" * 64, "docker://Registry.Example/a")
        ),
        *((name, "none") for name in ("None", "none\n")),
        ("CU126", "cu126"),
        *((name, None) for name in ("ghcr.io/Acme/gpu", "a b", "a/b:", "a//b:c d", "https://ghcr.io/a/b", "--privileged")),
    ],
)
def test_the_name_of_an_image(monkeypatch: pytest.MonkeyPatch, given: str, image: str | None) -> None:
    """What Docker would not read is refused before a machine waits for it; `None` is no image of that name."""
    monkeypatch.setenv("INPUT_IMAGE", given)
    found, wrong = usable_settings()
    assert bool(wrong) is (image is None)
    assert found.image == (image or "")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ("--gpus all --shm-size=8g", ""),
        ("--env 'A=--network'", ""),
        ("--gpus all --network=none", "has --network, which GitHub does not allow"),
        ("--entrypoint sh", "has --entrypoint"),
        ("--env 'A=b", "is not closed"),
    ],
)
def test_options_of_a_container_that_github_or_docker_refuses(monkeypatch: pytest.MonkeyPatch, options: str, words: str) -> None:
    monkeypatch.setenv("INPUT_CONTAINER-OPTIONS", options)
    assert words in usable_settings()[1]
    assert bool(usable_settings()[1]) is bool(words)


@pytest.mark.parametrize("name", ["github-token", "durable-token"])
@pytest.mark.parametrize(
    ("given", "token"), [("hunter-two\n", "hunter-two"), (" hunter-two\r\n", "hunter-two"), ("hunter\ntwo", ""), ("hunter–two", "")]
)
def test_a_token_is_sent_as_it_is_or_not_at_all(monkeypatch: pytest.MonkeyPatch, name: str, given: str, token: str) -> None:
    """A secret is often copied with the end of its line; what no header can hold would be told by who makes the request."""
    monkeypatch.setenv(f"INPUT_{name.upper()}", given)
    found, wrong = usable_settings()
    held = found.token if name == "github-token" else found.durable_token
    assert held.get_secret_value() == token
    assert wrong == ("" if token else f"input {name}: holds what no token has: a blank, or no letter of ASCII")


@pytest.mark.parametrize("name", ["GITHUB_API_URL", "GITHUB_SERVER_URL"])
def test_what_is_no_address_of_github(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    for address in ("https://ghe.example/api/v3", "http://127.0.0.1:8080", "http://[::1]:8080"):
        monkeypatch.setenv(name, address)
        assert not usable_settings()[1]
    monkeypatch.setenv(name, "ghe.example")
    with pytest.raises(InputError, match=r"'ghe\.example'"):
        usable_settings()


@pytest.mark.parametrize("name", ["env", "pass-env"])
@pytest.mark.parametrize("line", ["hunter-two horse", '{"hunter-two": 1}', "A=1\nhunter-two+/"])
def test_half_of_a_secret_in_an_input_is_not_told(monkeypatch: pytest.MonkeyPatch, name: str, line: str) -> None:
    """A key of several lines, for instance: the answer to a comment names the inputs that cannot be used."""
    monkeypatch.setenv(f"INPUT_{name.upper()}", line)
    wrong = usable_settings()[1]
    assert wrong.startswith(f"input {name}: ")
    assert {"env": "is no NAME=value", "pass-env": "is no name of a variable"}[name] in wrong
    assert "hunter" not in wrong


def test_the_job_that_runs_programs_starts_again_without_a_token(tmp_path: Path) -> None:
    """The container of an action is given the runner's token; as the first process of the container it could be read from there."""
    (tmp_path / "request.json").write_text("[]")
    done = run(tmp_path, INPUT_MODE="minify", ACTIONS_RUNTIME_TOKEN="secret", GITHUB_TOKEN="secret")
    # it came as far as the request, so it did not start again for ever
    assert done.returncode == 2
    assert "holds 0 requests" in done.stderr


def test_modules_of_the_workspace_are_not_imported(tmp_path: Path) -> None:
    (tmp_path / "bot").mkdir()
    for name in ("bot/__init__.py", "json.py", "sitecustomize.py"):
        (tmp_path / name).write_text("raise SystemExit('the workspace was imported')")
    done = run(tmp_path, INPUT_MODE="gate", INPUT_GITHUB__TOKEN="t", GITHUB_EVENT_NAME="push", PYTHONPATH=str(tmp_path))
    assert done.returncode == 0, done.stderr
    assert "outcome<<" in (tmp_path / "output").read_text()
    assert "\nnothing\n" in (tmp_path / "output").read_text()


@pytest.mark.parametrize(("body", "outcome"), [(f"/minify\n{BLOCK}", "requests"), ("hello", "nothing"), ("/minify stop", "stop")])
def test_a_mode_is_done_with_the_github_that_is_handed_in(
    body: str, outcome: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in list(os.environ):
        if name.startswith(("GITHUB_", "INPUT_", "ACTIONS_")):
            monkeypatch.delenv(name)
    (tmp_path / "event.json").write_text(asked(body).model_dump_json())
    given = {"GITHUB_EVENT_NAME": "issue_comment", "GITHUB_EVENT_PATH": tmp_path / "event.json", "GITHUB_OUTPUT": tmp_path / "output"}
    given |= {"GITHUB_ACTIONS": "true", "GITHUB_REPOSITORY": REPO, "INPUT_MODE": "gate", "INPUT_REQUEST_FILE": tmp_path / "request.json"}
    given |= {"INPUT_IMAGE": "none"}
    for name, value in given.items():
        monkeypatch.setenv(name, str(value))
    assert main(Edge(connect=lambda token, settings: Memory())) == 0
    assert f"\n{outcome}\n" in (tmp_path / "output").read_text()
    assert (tmp_path / "request.json").exists() == (outcome == "requests")
    assert capsys.readouterr().out.startswith(outcome)


def test_whatever_is_raised_its_words_are_no_commands_and_hold_no_secret(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    secret = "ghp_" + "a1B2" * 9

    def connect(token: SecretStr, given: Settings) -> Memory:
        raise RuntimeError(f"\n::add-mask::x\n::error::{secret}")

    monkeypatch.setenv("INPUT_MODE", "sweep")
    assert main(Edge(connect=connect)) == 1
    (record,) = caplog.records
    said = LogFormatter("%(message)s").format(record)
    assert "a fault of ours" in said
    assert secret not in said
    assert not [line for line in said.splitlines() if line.startswith("::")]


def test_a_report_with_an_input_that_it_cannot_use_writes_its_comment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in list(os.environ):
        if name.startswith(("GITHUB_", "INPUT_", "ACTIONS_")):
            monkeypatch.delenv(name)
    api, file = Memory(), tmp_path / "request.json"
    (request,) = Conversation(asked(f"/minify\n{BLOCK}"), settings(), api).outcome().requests
    file.write_text(request_file.to_json([request]))
    given = {"GITHUB_REPOSITORY": REPO, "GITHUB_RUN_ID": "77", "INPUT_MODE": "report", "INPUT_REQUEST_FILE": str(file)}
    for name, value in (given | {"INPUT_RETENTION-DAYS": "0", "INPUT_DURABLE": "cloud", "INPUT_RESULTS": str(tmp_path)}).items():
        monkeypatch.setenv(name, value)
    assert main(Edge(connect=lambda token, settings: api)) == 2
    (comment,) = (each for each in api.comments(REPO, 7) if "### Could not be minimized" in each.body)
    assert comment.id == request.answer.comment
    said = capsys.readouterr().err
    assert "input retention-days '0'" in said
    assert "input durable 'cloud'" in said


@pytest.mark.parametrize("known", [None, "### Queued", "### Minimized"])
def test_a_report_without_requests_answers_once(known: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As where the gate was cancelled, before or after its comment; an answer that is there already stays."""
    for name in list(os.environ):
        if name.startswith(("GITHUB_", "INPUT_", "ACTIONS_")):
            monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)
    # of a job that was killed, on a machine that is kept
    Path("torch-minify-unposted").mkdir()
    Path("torch-minify-unposted/comment-1.md").write_text("of another run")
    Path("event.json").write_text(asked(f"/minify\n{BLOCK}").model_dump_json())
    given = {"GITHUB_EVENT_NAME": "issue_comment", "GITHUB_EVENT_PATH": "event.json", "GITHUB_RUN_ID": "77"}
    for name, value in (given | {"GITHUB_REPOSITORY": REPO, "INPUT_MODE": "report", "INPUT_REQUEST_FILE": "none.json"}).items():
        monkeypatch.setenv(name, value)
    api = Memory()
    monkeypatch.setattr(api, "recent_comments", lambda *_: api.comments(REPO, 7))
    if known:
        api.add(7, BOT, f"<!-- torch-minify:comment-4242 run:77 -->\n{known}")
    assert main(Edge(connect=lambda token, settings: api)) == 1
    (comment,) = api.comments(REPO, 7)
    title = {None: "### Not taken", "### Queued": "### Ended without a result"}.get(known, known)
    assert comment.body.splitlines()[:2] == ["<!-- torch-minify:comment-4242 run:77 -->", title]
    assert not Path("torch-minify-unposted").exists()


def test_a_report_that_fails_by_a_fault_of_ours_leaves_nobody_waiting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(os.environ):
        if name.startswith(("GITHUB_", "INPUT_", "ACTIONS_")):
            monkeypatch.delenv(name)
    api = Memory()
    (request,) = Conversation(asked(f"/minify\n{BLOCK}"), settings(), api).outcome().requests
    (tmp_path / "request.json").write_text(request_file.to_json([request]))
    given = {"GITHUB_REPOSITORY": REPO, "GITHUB_RUN_ID": "77", "INPUT_MODE": "report", "INPUT_REQUEST_FILE": str(tmp_path / "request.json")}
    for name, value in given.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(api, "recent_comments", lambda *_: api.comments(REPO, 7))
    monkeypatch.setattr(api, "artifacts", lambda *_: 1 / 0)
    assert main(Edge(connect=lambda token, settings: api)) == 1
    (comment,) = api.comments(REPO, 7)
    assert "### Ended without a result" in comment.body


def test_a_machine_with_an_input_that_it_cannot_use_leaves_a_result(tmp_path: Path) -> None:
    """The report of an older gate, or of one's own, shows why."""
    done = run(tmp_path, INPUT_MODE="minify", INPUT_ENV="HF_TOKEN=abc", INPUT_RESULT="made/result-0")
    assert done.returncode == 2
    text = (tmp_path / "made/result-0/result.json").read_text()
    assert "'HF_TOKEN' sounds like a secret" in json.loads(text)["reason"]
    assert "abc" not in text + done.stderr + done.stdout


def _deaf(api: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    def permission(*_: object) -> Permission:
        raise GitHubError("GET: 502", 502)

    api.permission = permission  # type: ignore[method-assign]


def _faulty(api: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bot.action.gate.comment_event.code_blocks.find", lambda *_, **__: 1 / 0)


def _without_accounts(api: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    def identities(*_: object) -> isolation.Identities:
        raise isolation.NoAccountError("this job is root")

    monkeypatch.setattr(isolation, "identities", identities)


def _late(api: Memory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bot.action.auto.minify", lambda *_: 1 / 0)


@pytest.mark.parametrize(
    ("breaks", "title", "words"),
    [
        (_deaf, "### Not taken", "GitHub did not answer."),
        (_faulty, "### Not taken", "A fault of torch-minify."),
        (_without_accounts, "### Not taken", "`this job is root`"),
        (_late, "### Ended without a result", "no result was written here"),
    ],
    ids=["GitHub", "a fault", "no accounts", "a fault behind the comment"],
)
def test_a_single_job_that_cannot_go_on_says_so(
    breaks: Callable[[Memory, pytest.MonkeyPatch], None], title: str, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in list(os.environ):
        if name.startswith(("GITHUB_", "INPUT_", "ACTIONS_")):
            monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "event.json").write_text(asked(f"/minify\n{BLOCK}").model_dump_json())
    given = {"GITHUB_EVENT_NAME": "issue_comment", "GITHUB_EVENT_PATH": "event.json", "GITHUB_STEP_SUMMARY": "summary.md"}
    for name, value in (given | {"GITHUB_REPOSITORY": REPO, "GITHUB_RUN_ID": "77", "INPUT_MODE": "auto"}).items():
        monkeypatch.setenv(name, value)
    api = Memory()
    # written just now, whenever that is
    monkeypatch.setattr(api, "recent_comments", lambda *_: api.comments(REPO, 7))
    breaks(api, monkeypatch)
    assert main(Edge(connect=lambda token, settings: api, fetch=lambda *given: None)) == 1
    (comment,) = (each for each in api.comments(REPO, 7) if each.user.login == BOT)
    assert comment.body.splitlines()[1] == title
    assert words in comment.body
    assert (tmp_path / "summary.md").read_text()


def test_files_are_kept_by_a_client_of_its_own_where_there_is_a_token_for_it() -> None:
    tokens: list[str] = []

    def connect(token: SecretStr, settings: Settings) -> Memory:
        tokens.append(token.get_secret_value())
        return Memory()

    api = Memory()
    edge = Edge(connect=connect)
    assert edge.storage(settings(), api) is api
    assert edge.storage(settings(durable_token=SecretStr("durable")), api) is not api
    assert tokens == ["durable"]


def test_what_is_logged_of_others_is_no_command_and_no_secret() -> None:
    token = "gh" + "s_" + "a1B2" * 9
    try:
        raise ValueError(f"x\n::error title=Minimized::{token}\r##[group]y")
    except ValueError:
        record = logging.LogRecord("a", logging.ERROR, __file__, 1, "bad: %s", ("\n::warning::z",), sys.exc_info())
    shown = LogFormatter("%(message)s").format(record)
    assert token not in shown
    assert "##[" not in shown
    assert not [line for line in shown.splitlines() if line.strip().startswith("::")]
    assert "ValueError" in shown
