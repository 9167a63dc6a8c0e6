"""What `doctor --github` and `/minify doctor` see of a caller's set-up, and say to change."""

from __future__ import annotations

import io
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from bot.action import request_file
from bot.action.__main__ import Edge
from bot.action.console import Console
from bot.action.gate import gate
from bot.action.gate.comment_event import Conversation
from bot.action.github.resources import Runner, WorkflowJob
from bot.action.github.transport import GitHubError
from bot.action.minify import minify
from bot.action.minify.isolation import Account
from bot.action.minify.machine_report import machine_report
from bot.action.minify.minify import RunnerConfig
from bot.action.report import post
from bot.action.set_up import examine, labels_of, wrong_system
from bot.cli import main as cli
from tests.action.gate.memory import BLOCK, BOT, REPO, Memory, asked, settings


class Listing(Memory):
    """A GitHub whose runners and runs can be listed; a workflow's token may list runs alone (GitHub answers 403 to the other)."""

    runners_known: Sequence[Runner] | None = None

    def runners(self, repository: str) -> Sequence[Runner] | None:
        return self.runners_known

    def recent_runs(self, repository: str) -> Any:
        return sorted(self.runs.values(), key=lambda run: run.id, reverse=True)


def found(what: str, api: Memory, **inputs: Any) -> tuple[bool | None, str]:
    finding = next(each for each in examine(settings(**inputs), api) if each.what.startswith(what))
    return finding.good, finding.words


def took(api: Listing, run: int, *labels: str, runner: str = "gpu-1", status: str = "completed") -> None:
    api.add_run(run, None)
    api.run_jobs[run] = [WorkflowJob(id=run, name="minify / minify 0", labels=labels, runner_name=runner, status=status)]


@pytest.mark.parametrize(
    ("state", "good", "words"),
    [
        ({"archived": True}, False, "it is archived"),
        ({"no_issues": True}, None, "issues are disabled"),
        ({}, True, "not archived, with issues"),
    ],
)
def test_a_repository_in_which_nothing_can_be_told(state: dict[str, bool], good: bool | None, words: str) -> None:
    """`archived` and `has_issues` of GET /repos/{owner}/{repo}, by GitHub's documentation; workflows of an archived one do not run."""
    seen = found("repository", Listing(**state))  # type: ignore[arg-type]
    assert seen[0] is good
    assert words in seen[1]


def test_all_good() -> None:
    api = Listing(protected={"forks"})
    took(api, 20, "self-hosted", "GPU")
    inputs = {"runner_label": "gpu", "image": "none", "fork_environment": "forks", "timeout_minutes": 120.0}
    assert [finding.words for finding in examine(settings(**inputs), api) if not finding.good] == []


@pytest.mark.parametrize(
    ("labels", "status", "runner", "good", "words"),
    [
        (("self-hosted", "gpu"), "completed", "gpu-1", True, "gpu-1 took a job of the run 20"),
        (("gpu",), "queued", "", False, "takes no job of a public repository unless that is set"),
        (("self-hosted", "gpus"), "completed", "gpu-1", None, "Is gpu meant as gpus?"),
        (("linux-x64",), "completed", "other", None, "labels seen: linux-x64"),
    ],
)
def test_the_runner_by_what_runs_did(labels: tuple[str, ...], status: str, runner: str, good: bool | None, words: str) -> None:
    api = Listing()
    took(api, 20, *labels, runner=runner, status=status)
    assert found("runner", api, runner_label="gpu")[0] is good
    assert words in found("runner", api, runner_label="gpu")[1]


@pytest.mark.parametrize(
    ("status", "label", "good", "words"),
    [
        ("online", "gpu", True, "online: a"),
        ("offline", "gpu", False, "offline: a; start it"),
        ("online", "gpuu", False, "Is gpu meant as gpuu?"),
    ],
)
def test_the_runner_by_the_list(status: str, label: str, good: bool, words: str) -> None:
    api = Listing()
    api.runners_known = [Runner.model_validate({"name": "a", "status": status, "labels": [{"name": "self-hosted"}, {"name": label}]})]
    assert found("runner", api, runner_label='["self-hosted", "gpu"]')[0] is good
    assert words in found("runner", api, runner_label='["self-hosted", "gpu"]')[1]


@pytest.mark.parametrize("listed", [[], [Runner.model_validate({"name": "a", "status": "online", "labels": [{"name": "cpu"}]})]])
def test_a_runner_of_the_organization_is_known_by_what_runs_did(listed: list[Runner]) -> None:
    """GitHub lists those of the repository alone (documentation of "List self-hosted runners for a repository")."""
    api = Listing()
    api.runners_known = listed
    assert found("runner", api, runner_label="gpu")[0] is (False if listed else None)
    took(api, 20, "self-hosted", "gpu", runner="of-all-1")
    good, words = found("runner", api, runner_label="gpu")
    assert (good, "of-all-1 took a job of the run 20" in words) == (True, True)


def test_the_labels_of_the_input() -> None:
    assert labels_of("gpu") == ("gpu",)
    assert labels_of('["a", "b"]') == ("a", "b")
    assert labels_of("[a") == ("[a",)
    assert found("runner", Listing(), runner_label="ubuntu-latest")[0] is True


@pytest.mark.parametrize(
    ("what", "inputs", "words"),
    [
        ("image", {"mode": "gate", "in_actions": True}, "set the input `image`"),
        ("test-command", {"test_command": "make {nodeid}"}, "is no Python program"),
        ("budget", {"timeout_minutes": 30.0}, "raise `timeout-minutes`"),
        ("fork-environment", {"fork_environment": "forks"}, "has no required reviewers"),
    ],
)
def test_what_is_to_change(what: str, inputs: dict[str, Any], words: str) -> None:
    good, said = found(what, Listing(), **inputs)
    assert good is False
    assert words in said


@pytest.mark.parametrize(
    ("status", "good"),
    [
        (403, [False, False, None]),
        (404, [False, False, None]),
        (502, [None, None, None]),
        (409, [None, None, None]),
        (None, [None, None, None]),
    ],
)
def test_where_github_does_not_answer_it_says_so(status: int | None, good: list[bool | None]) -> None:
    class Down(Listing):
        def recent_runs(self, *asked: object) -> Any:
            raise GitHubError("GET: no", status)

        commit = jobs = environment_protected = runners = recent_runs  # type: ignore[assignment]

    findings = examine(settings(runner_label="gpu", fork_environment="forks"), Down())  # type: ignore[abstract]
    assert [finding.good for finding in findings[:3]] == good
    assert ("actions: write" in findings[1].words) is (status in (403, 404))
    assert ("name is wrong" in findings[0].words) is (status == 404)


@pytest.mark.parametrize(
    ("status", "said", "good"),
    [(401, "Bad credentials", False), (403, "API rate limit exceeded", None), (403, "a secondary rate limit", None)],
)
def test_a_permission_is_not_to_blame_for_a_token_or_a_limit(status: int, said: str, good: bool | None) -> None:
    class Down(Listing):
        def recent_runs(self, *asked: object) -> Any:
            raise GitHubError(f"GET: {status} {said}", status)

        commit = recent_runs  # type: ignore[assignment]

    first, second, *_ = examine(settings(runner_label="gpu"), Down())  # type: ignore[abstract]
    for found in (first, second):
        assert found.good is good
        assert said in found.words
        assert "give" not in found.words


def test_the_command_line(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    for name, value in {
        "GITHUB_REPOSITORY": REPO,
        "GITHUB_TOKEN": "t",
        "INPUT_RUNNER-LABEL": "gpu",
        "INPUT_FORK-ENVIRONMENT": "forks",
    }.items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("GITHUB_ACTIONS", raising=False)
    assert cli(["doctor", "--github"], Edge(connect=lambda token, given: Listing())) == 1
    assert "CHANGE  fork-environment: forks does not exist" in capsys.readouterr().out
    monkeypatch.delenv("GITHUB_REPOSITORY")
    assert cli(["doctor", "--github"], Edge(connect=lambda token, given: Listing())) == 2
    assert "GITHUB_REPOSITORY does not say which repository" in capsys.readouterr().err


ENGINE = 'import sys\nprint("ok   torch: 2.13.0 /home/bob/x")\nprint(" ".join(sys.argv[1:]))\nsys.exit(1)\n'


def test_from_the_comment_to_the_answer(tmp_path: Path) -> None:
    """The gate looks, a job on the machine looks, and there is one comment."""
    api, given = Listing(), settings(runner_label="gpu", image="none")
    took(api, 20, "gpu")
    assert gate.run(asked("/minify doctor"), given, api, tmp_path / "request.json").outputs["outcome"] == "requests"
    (body,) = [comment.body for comment in api.comments(REPO, 7)]
    assert "gpu-1 took a job" in body
    assert "The machine is looked at now" in body

    (request,) = request_file.read(tmp_path / "request.json")
    (tmp_path / "engine.py").write_text(ENGINE)
    (tmp_path / "checkout").mkdir()
    config = RunnerConfig(tmp_path / "checkout", engine=("python3", str(tmp_path / "engine.py")), device="cuda")
    out = tmp_path / "results/result-0"
    assert minify.minify(request, config, out, Console(io.StringIO(), io.StringIO())) == 1

    outcome = post.report([request], [tmp_path / "results"], given, api, api, Console(io.StringIO(), io.StringIO()), tmp_path / "unposted")
    assert outcome.exit_status == 0
    (body,) = [comment.body for comment in api.comments(REPO, 7) if comment.user.login == BOT]
    assert "gpu-1 took a job" in body
    assert "CHANGE  torch-minify doctor: exit status 1" in body
    assert "torch: 2.13.0 ~/x" in body
    assert "doctor --python" in body
    assert body.splitlines()[1].startswith("### Set-up: ")


def test_without_an_image_the_gate_answers_alone(tmp_path: Path) -> None:
    api, given = Listing(), settings(in_actions=True, mode="gate", runner_label="gpu")
    assert gate.run(asked("/minify doctor"), given, api, tmp_path / "request.json").outputs["outcome"] == "refused"
    assert "### Set-up: 1 to change" in api.comments(REPO, 7)[0].body


@pytest.mark.parametrize(
    ("missing", "needed", "line"),
    [
        (None, True, "ok      GPU: visible"),
        ("no GPU is visible", True, "CHANGE  GPU: no GPU"),
        ("no GPU is visible", False, "?       GPU: no GPU"),
    ],
)
def test_what_is_said_of_the_gpu(missing: str | None, needed: bool, line: str) -> None:
    assert machine_report([], 0, missing, Account(), gpu_needed=needed).startswith(line)


def test_a_stranger_s_doctor_is_refused(tmp_path: Path) -> None:
    api = Listing()
    outcome = gate.run(asked("/minify doctor", by="stranger"), settings(image="none"), api, tmp_path / "request.json")
    assert json.loads(outcome.outputs["matrix"]) == []
    assert "write permission" in api.comments(REPO, 7)[0].body


@pytest.mark.parametrize(
    ("runner", "image", "fits"),
    [
        ("windows-latest", "none", False),
        ('["self-hosted", "Windows", "X64"]', "none", False),
        ("macos-15", "", False),
        ("macos-15", "none", True),
        ("ubuntu-latest", "", True),
        ("windows-11-arm", "none", False),
        ("gpu-windows", "", True),
        ("macos-is-built-here", "", True),  # a name of somebody's own says nothing
    ],
)
def test_a_system_on_which_the_job_cannot_run(runner: str, image: str, fits: bool) -> None:
    """GitHub has job containers on Linux alone (documentation of `jobs.<job_id>.container`)."""
    given = settings(runner_label=runner, image=image, mode="gate", gpu_image="x/y@sha256:0")
    assert bool(wrong_system(given)) is not fits
    finding = next(each for each in examine(given, Memory()) if each.what.startswith("runner"))
    assert (finding.good is False) is not fits
    made = Conversation(asked(f"/minify\n\n{BLOCK}"), given, Memory()).outcome()
    assert made.status == ("requests" if fits else "refused")


@pytest.mark.parametrize(
    ("runner", "image", "options", "fits"),
    [
        ("ubuntu-latest", "", "--gpus all", False),
        ("ubuntu-24.04-arm", "x/y", "--gpus=all", False),
        ("ubuntu-latest", "", "", True),
        ("ubuntu-latest", "none", "--gpus all", True),
        ("ubuntu-gpu-4", "", "--gpus all", True),  # a larger machine, whose name is its organization's
        ('["self-hosted", "gpu"]', "", "--gpus all", True),
    ],
)
def test_a_container_that_does_not_start(runner: str, image: str, options: str, fits: bool) -> None:
    """The workflow's default is `--gpus all`; GitHub's standard machines have no GPU (documentation of GitHub-hosted runners)."""
    given = settings(runner_label=runner, image=image, container_options=options, mode="gate", gpu_image="x/y@sha256:0")
    findings = [each.good for each in examine(given, Memory()) if each.what == "container-options"]
    assert findings == ([] if image == "none" or not options else [fits])
    api = Memory()
    made = Conversation(asked(f"/minify\n\n{BLOCK}"), given, api).outcome()
    assert made.status == ("requests" if fits else "refused")
    assert ("container-options" in api.comments(REPO, 7)[0].body) is not fits
