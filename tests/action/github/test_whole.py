"""The whole conversation against GitHub's API in memory: comment, request, result, comment edited, stop; and what goes wrong meanwhile."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr

from bot import cli
from bot.action.__main__ import Edge
from bot.action.github.client import GitHub
from bot.action.github.transport import Transport
from bot.action.settings import Settings
from bot.models.request import Request
from tests.action.github.contract import Contract
from tests.action.github.emulator import BOT, REPO, TOKENS, Emulator, encoded

FIXTURES = Path(__file__).resolve().parents[2] / "fixtures"
CODE = "```python\nimport torch\ntorch.compile(torch.relu)(torch.ones(2))\n```"
AT = "2026-11-03T12:00:00Z"
SECONDARY = '{"message": "You have exceeded a secondary rate limit. Please wait a few minutes before you try again."}'

pytestmark = [pytest.mark.timeout(120), pytest.mark.slow]


@pytest.fixture
def job(emulator: Emulator, contract: Contract, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Job:
    return Job(emulator, contract, tmp_path, monkeypatch)


class Job:
    """A hosted runner's environment, in which the command line runs. No waiting, but how long it would have been."""

    def __init__(self, emulator: Emulator, contract: Contract, where: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.emulator, self._contract, self.where, self._patch = emulator, contract, where, monkeypatch
        self.slept: list[float] = []
        monkeypatch.chdir(where)
        for name in ("CI", "GITHUB_ACTIONS"):
            monkeypatch.delenv(name, raising=False)
        given = {"GITHUB_TOKEN": TOKENS[BOT], "GITHUB_API_URL": emulator.url, "GITHUB_REPOSITORY": REPO, "INPUT_BOT-LOGIN": BOT}
        for name, value in given.items():
            monkeypatch.setenv(name, value)

    def run(self, *arguments: str, event: dict[str, Any] | None = None, name: str = "issue_comment", run: int = 900) -> int:
        """The command line's exit status; every request that it sends is checked."""
        self._patch.setenv("GITHUB_RUN_ID", str(run))
        self._patch.setenv("GITHUB_OUTPUT", str(self.where / "output"))
        self._patch.setenv("GITHUB_STEP_SUMMARY", str(self.where / "summary.md"))
        (self.where / "output").write_text("")
        if event is not None:
            (self.where / "event.json").write_text(json.dumps(event), encoding="utf-8")
            arguments = (*arguments, "--event", "event.json", "--event-name", name)
        with self._contract.watching(self.emulator.url):
            return cli.main(arguments, Edge(connect=self._connect))

    def _connect(self, token: SecretStr, settings: Settings) -> GitHub:
        return GitHub(Transport(token.get_secret_value(), settings.api_url, sleep=self.slept.append), settings.bot_login)

    def gate(self, event: dict[str, Any], **more: Any) -> int:
        return self.run("gate", "--out", "request.json", event=event, **more)

    @property
    def requests(self) -> list[Request]:
        return [Request.model_validate(one) for one in json.loads((self.where / "request.json").read_text())]

    @property
    def outputs(self) -> str:
        return (self.where / "output").read_text()


def conversation(job: Job, run: int, **fault: Any) -> list[str]:
    """From the comment to the answer; what we wrote. The fault strikes us, not the person."""
    emulator = job.emulator
    issue = emulator.issue("It fails, see below.")
    event = emulator.commented(issue, f"/minify --budget 10m\n\n{CODE}")
    emulator.add(runs=[{"id": run, "head_sha": "d" * 40, "status": "in_progress", "conclusion": None}])
    if fault:
        emulator.plant(**fault)
    assert job.gate(event, run=run) == 0
    (request,) = job.requests
    assert request.answer.issue == issue
    assert job.run("report", "--result", str(FIXTURES / "results" / "lowering"), "--request", "request.json", run=run) == 0
    return emulator.ours(issue)


def test_from_the_comment_to_the_answer(job: Job) -> None:
    (body,) = conversation(job, 901)
    issue = job.requests[0].answer.issue
    assert issue is not None
    (notice,) = job.emulator.notices(issue)
    assert "Done: Minimized. [The result](" in notice
    assert job.run("report", "--result", str(FIXTURES / "results" / "flaky"), "--request", "request.json", run=901) == 0
    (notice,) = job.emulator.notices(issue)
    assert "Done: Flaky" in notice
    assert body.startswith("<!-- torch-minify:comment-")
    assert "Minimized" in body
    assert "import torch" in body
    comment = job.requests[0].answer.trigger
    assert [one["content"] for one in job.emulator.state["reactions"] if one["comment"] == comment] == ["eyes", "rocket"]


FAULTS: dict[str, Callable[[str, str], dict[str, Any]]] = {
    "403 secondary limit": lambda method, path: {"status": 403, "body": SECONDARY, "method": method, "path": path},
    "429": lambda method, path: {"status": 429, "method": method, "path": path},
    "502 before": lambda method, path: {"status": 502, "body": "<html></html>", "method": method, "path": path},
    "502 after": lambda method, path: {"status": 502, "body": "<html></html>", "method": method, "path": path, "late": True},
    "reset before": lambda method, path: {"status": 0, "method": method, "path": path},
    "reset after": lambda method, path: {"status": 0, "method": method, "path": path, "late": True},
    "three in a row": lambda method, path: {"status": 503, "method": method, "path": path, "times": 3},
}
PLACES = [("GET", "/permission$"), ("POST", "/reactions$"), ("GET", "/comments$"), ("POST", "/comments$"), ("PATCH", "/comments/[0-9]+$")]


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize(("method", "path"), PLACES, ids=lambda text: text.strip("/$"))
def test_a_fault_changes_nothing_but_the_time(job: Job, fault: str, method: str, path: str) -> None:
    (body,) = conversation(job, 902, **FAULTS[fault](method, path))
    assert "Minimized" in body
    assert job.slept
    assert job.emulator.state["faults"] == []


def test_where_github_stays_away_the_answer_is_in_the_summary(job: Job, caplog: pytest.LogCaptureFixture) -> None:
    emulator = job.emulator
    issue = emulator.issue("x")
    event = emulator.commented(issue, f"/minify\n{CODE}")
    assert job.gate(event, run=903) == 0
    emulator.plant(status=502, method="PATCH", path="/comments/", times=6)
    assert job.run("report", "--result", str(FIXTURES / "results" / "lowering"), "--request", "request.json", run=903) == 8
    assert emulator.state["faults"] == []
    assert "Minimized" in (job.where / "summary.md").read_text()
    assert "gh issue comment" in caplog.text
    assert "Minimized" not in emulator.ours(issue)[0]


@pytest.mark.parametrize("ours", [False, True])
def test_a_gate_that_fails_says_so(job: Job, ours: bool, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    event = job.emulator.commented(job.emulator.issue("x"), f"/minify\n{CODE}")
    if ours:
        monkeypatch.setattr("bot.action.gate.comment_event.code_blocks.find", lambda *_, **__: 1 / 0)
    else:
        job.emulator.plant(status=500, method="GET", path="/permission$", times=6)
    assert job.gate(event) == 1
    assert ("ZeroDivisionError" in caplog.text) == ours
    assert "confused" in [one["content"] for one in job.emulator.state["reactions"] if one["comment"] == event["comment"]["id"]]
    assert (job.where / "summary.md").read_text()
    assert job.emulator.state["faults"] == []


def test_stop(job: Job) -> None:
    emulator = job.emulator
    issue = emulator.issue("x")
    emulator.add(runs=[{"id": 904, "event": "issue_comment", "head_sha": "d" * 40, "status": "queued", "conclusion": None}])
    assert job.gate(emulator.commented(issue, f"/minify\n{CODE}"), run=904) == 0
    stranger = emulator.commented(issue, "/minify stop", "stranger")
    assert job.run("stop", event=stranger, run=905) == 7
    assert 904 not in emulator.state["cancelled"]
    event = emulator.commented(issue, "/minify stop")
    assert job.gate(event, run=906) == 6
    assert "stop" in job.outputs
    assert job.run("stop", event=event, run=906) == 6
    assert 904 in emulator.state["cancelled"]
    assert emulator.ours(issue)[-1].endswith("Stopped 1 run.")
    assert job.run("stop", event=event, run=906) == 6
    assert len(emulator.ours(issue)) == 3, "the event came again: its comment is edited"
    assert emulator.ours(issue)[-1].endswith("Nothing is running for this in this repository.")


def test_a_stranger_is_told_and_a_typing_error_explained(job: Job) -> None:
    emulator = job.emulator
    issue = emulator.issue("x")
    assert job.gate(emulator.commented(issue, f"/minify\n{CODE}", "stranger")) == 7
    assert job.gate(emulator.commented(issue, "/minify --stge aot")) == 7
    assert job.gate(emulator.commented(issue, "thanks")) == 6
    first, second = emulator.ours(issue)
    assert "write permission" in first
    assert "--stage" in second
    assert not (job.where / "request.json").exists()


def test_in_actions_every_outcome_is_green_and_an_output(job: Job, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    issue = job.emulator.issue("x")
    for body, outcome in ((f"/minify\n{CODE}", "requests"), ("/minify wat", "refused"), ("hello", "nothing"), ("/minify stop", "stop")):
        assert job.gate(job.emulator.commented(issue, body)) == 0
        assert f"\n{outcome}\n" in job.outputs
    assert job.run("gate", "--out", "request.json", event={"any": "thing"}, name="push") == 0


def red(emulator: Emulator, run: int, sha: str, log: str = "pytest", **more: Any) -> dict[str, Any]:
    """A red run in the emulator, and the event about it."""
    text = (FIXTURES / "ci" / "logs" / f"{log}.txt").read_bytes().decode()
    jobs = [
        {"id": run * 10, "name": "tests", "conclusion": "failure", "log": text},
        {"id": run * 10 + 1, "name": "lint", "conclusion": "success", "log": ""},
    ]
    told = {
        "id": run,
        "workflow_id": run,
        "head_sha": sha,
        "head_branch": "main",
        "event": "push",
        "conclusion": "failure",
        "name": "tests",
        "created_at": AT,
    } | more
    emulator.add(runs=[told | {"jobs": jobs, "status": "completed"}])
    repository = emulator.ask("GET", f"/repos/{REPO}")
    told |= {
        "head_repository": repository,
        "html_url": f"https://github.com/{REPO}/actions/runs/{run}",
    }
    return {"action": "completed", "workflow_run": told, "repository": repository}


def test_red_ci_on_the_default_branch_opens_an_issue_for_each_signature(job: Job) -> None:
    emulator = job.emulator
    sha = emulator.ask("GET", f"/repos/{REPO}/commits/main")["sha"]
    for _ in range(2):  # sent twice
        assert job.gate(red(emulator, 950, sha), name="workflow_run", run=960) == 0
    issues = [request.answer.issue for request in job.requests]
    assert len(set(issues)) == 2
    assert None not in issues
    assert '"fork": false' in job.outputs
    opened = [emulator.ask("GET", f"/repos/{REPO}/issues/{issue}") for issue in issues]
    assert [one["title"].partition(":")[0] for one in opened] == ["CI", "CI"]
    assert all(one["body"].startswith("<!-- torch-minify:signature-") for one in opened)
    for issue in issues:
        assert issue is not None
        assert len(emulator.ours(issue)) == 1
    listed = emulator.ask("GET", f"/repos/{REPO}/issues?state=open&per_page=100")
    assert sum(one["title"].startswith("CI: ") for one in listed) == 2


def test_red_ci_by_artifact(job: Job) -> None:
    """The JUnit file comes as a zip from a store that refuses our token."""
    import io
    import zipfile

    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("pytest.xml", (FIXTURES / "ci" / "junit" / "pytest.xml").read_bytes())
    emulator = job.emulator
    # of one commit a failure is told once
    put = {"message": "x", "content": encoded(b"x = 1\n"), "branch": "main"}
    sha = emulator.ask("PUT", f"/repos/{REPO}/contents/later.py", **put)["commit"]["sha"]
    event = red(emulator, 951, sha, artifacts=[{"id": 9510, "name": "reports", "zip": encoded(buffer.getvalue())}])
    emulator.plant(status=404, method="GET", path="/jobs/9510/logs$")
    assert job.gate(event, name="workflow_run", run=961) == 0
    assert len(job.requests) == 2


def test_a_request_made_after_a_push_is_refused(job: Job) -> None:
    emulator = job.emulator
    main = emulator.ask("GET", f"/repos/{REPO}/git/ref/heads/main")["object"]["sha"]
    emulator.ask("POST", f"/repos/{REPO}/git/refs", ref="refs/heads/topic", sha=main)
    put = {"message": "x", "content": encoded(b"x = 1\n"), "branch": "topic"}
    head = emulator.ask("PUT", f"/repos/{REPO}/contents/x.py", **put)["commit"]["sha"]
    pull = emulator.ask("POST", f"/repos/{REPO}/pulls", title="x", head="topic", base="main")["number"]
    event = emulator.commented(pull, f"/minify\n{CODE}")
    asked = datetime.fromisoformat(event["comment"]["created_at"].replace("Z", "+00:00")).astimezone(timezone.utc)
    emulator.add(activity=[{"ref": "refs/heads/topic", "after": head, "timestamp": (asked - timedelta(minutes=1)).isoformat()}])
    assert job.gate(event, run=907) == 0
    assert job.requests[0].commit == head
    emulator.add(activity=[{"ref": "refs/heads/topic", "after": head, "timestamp": (asked + timedelta(minutes=1)).isoformat()}])
    assert job.gate(emulator.commented(pull, f"/minify\n{CODE}") | {"comment": event["comment"] | {"id": 99_999}}, run=908) == 7
    assert "after the request" in emulator.ours(pull)[-1]


@pytest.mark.parametrize("size", [1_000, 60_000])
@pytest.mark.parametrize(
    "text", ["\u202eعربي\r\n", "\0\0", "```\nx\n```\n", "@everyone <script> "], ids=["right to left", "nul", "fences", "html"]
)
def test_an_issue_of_any_kind(job: Job, text: str, size: int) -> None:
    issue = job.emulator.issue("x")
    event = job.emulator.commented(issue, "/minify")
    event["issue"]["body"] = text * (size // len(text)) + f"\n\n{CODE}\n"
    event["comment"]["body"] = f"/minify --stage aot\r\n\r\n{text * (size // len(text) // 2)}"
    assert job.gate(event, run=909) == 0
    assert job.requests[0].script is not None
    assert "torch.compile(torch.relu)" in job.requests[0].script
