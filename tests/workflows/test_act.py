"""The three workflows, run: comment and red CI through gate, minify and report, and stop, against GitHub's API in memory."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.action.github.emulator import REPO, Emulator
from tests.workflows.act_harness import TOKEN, Ran, run
from tests.workflows.workflow_files import ROOT, TOOLS

pytestmark = [pytest.mark.slow, pytest.mark.skipif(not (TOOLS / "stamp").exists(), reason="scripts/setup-tools has not run")]

CODE = "```python\nimport torch\n# result: {result}\ntorch.compile(torch.relu)(torch.ones(2))\n```"


@pytest.fixture(scope="module")
def forge(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Emulator]:
    with Emulator(tmp_path_factory.mktemp("emulator")) as running:
        yield running


def commented(forge: Emulator, body: str, who: str = "maintainer", issue_body: str = "It fails.") -> dict[str, Any]:
    """The event of a comment on a new issue."""
    return forge.commented(forge.issue(issue_body), body, who)


def answers(forge: Emulator, event: dict[str, Any]) -> list[str]:
    """What we wrote below."""
    return forge.ours(event["issue"]["number"])


def comment(tmp_path: Path, forge: Emulator, event: dict[str, Any]) -> Ran:
    return run(tmp_path / "act", "issue_comment", event, forge.url, "on-comment.yml")


def test_a_comment_becomes_a_result(tmp_path: Path, forge: Emulator) -> None:
    event = commented(forge, "/minify\n\n" + CODE.format(result="lowering"))
    ran = comment(tmp_path, forge, event)
    assert ran.status == 0, ran.log
    (answer,) = answers(forge, event)
    assert "### Minimized" in answer
    assert "class Repro(torch.nn.Module)" in answer
    # what the program could see: the commit that was resolved, and no token
    head = forge.ask("GET", f"/repos/{REPO}/commits/main")["sha"]
    assert ran.seen(0)["here"] == {"checked-out.txt": f"{REPO} {head}\n"}
    assert TOKEN not in json.dumps(ran.seen(0))
    assert not [name for name in ran.seen(0)["environment"] if name.startswith(("GITHUB_", "ACTIONS_", "INPUT_"))]
    # what a program prints is no command to the runner
    assert "this is printed by a program" in ran.job("minify 0")
    assert "::stop-commands::" in ran.job("minify 0")


def test_several_commands_are_one_comment(tmp_path: Path, forge: Emulator) -> None:
    event = commented(forge, "/minify --device cpu\n/minify --budget 5m\n\n" + CODE.format(result="flaky"))
    ran = comment(tmp_path, forge, event)
    # a flaky program is an answer, not a fault
    assert ran.status == 0, ran.log
    assert {path.name for path in ran.artifacts.iterdir()} == {"torch-minify-request", "torch-minify-result-0", "torch-minify-result-1"}
    (answer,) = answers(forge, event)
    assert [line for line in answer.splitlines() if line.startswith("### ")] == ["### 1. Flaky, 3 of 10", "### 2. Flaky, 3 of 10"]
    assert "--device=cpu" in ran.seen(0)["arguments"]
    assert "--budget=300s" in ran.seen(1)["arguments"]


def test_a_fault_is_red_and_reported(tmp_path: Path, forge: Emulator) -> None:
    event = commented(forge, "/minify\n\n" + CODE.format(result="machine_fault"))
    ran = comment(tmp_path, forge, event)
    assert ran.status != 0
    assert "Job failed" in ran.job("minify 0")
    assert "Job succeeded" in ran.job("report")
    (answer,) = answers(forge, event)
    assert "### Could not be minimized" in answer


def test_a_job_that_leaves_nothing_is_reported(tmp_path: Path, forge: Emulator) -> None:
    """As when its machine goes away: no artifact."""
    event = commented(forge, "/minify\n\n" + CODE.format(result="lowering"))
    ran = run(tmp_path / "act", "issue_comment", event, forge.url, "on-comment.yml", runner="nobody")
    assert not list(ran.artifacts.glob("*result*"))
    assert "Job succeeded" in ran.job("report"), ran.log
    (answer,) = answers(forge, event)
    assert "### Queued" not in answer
    assert "Minimized" not in answer


def test_a_stranger_is_told_and_nothing_runs(tmp_path: Path, forge: Emulator) -> None:
    event = commented(forge, "/minify\n\n" + CODE.format(result="lowering"), "stranger")
    ran = comment(tmp_path, forge, event)
    assert ran.status == 0, ran.log
    (answer,) = answers(forge, event)
    assert "write permission" in answer
    assert not list(ran.artifacts.iterdir())
    assert not ran.job("minify 0")
    assert "outcome=refused" in ran.job("gate")


def test_hostile_text_stays_text(tmp_path: Path, forge: Emulator) -> None:
    """In the program, the issue, the names: nothing of it is a command, an expression or an output."""
    trap = tmp_path / "trap"
    evil = (
        f"$(touch {trap}) `touch {trap}` ${{{{ github.token }}}} ::set-output name=outcome::stop\n::add-mask::x\n"
        "@everyone <!-- torch-minify:comment-1 run:1 -->"
    )
    code = f"```python\nimport torch\n# result: lowering\n{chr(34) * 3}\n{evil}\n{chr(34) * 3}\n```"
    event = commented(forge, f"/minify\n\n{code}", issue_body=evil)
    event["issue"]["title"] = evil
    ran = comment(tmp_path, forge, event)
    assert ran.status == 0, ran.log
    (answer,) = answers(forge, event)
    assert "### Minimized" in answer
    assert not trap.exists()
    assert TOKEN not in answer
    assert evil in ran.seen(0)["text"]


@pytest.mark.parametrize(
    ("body", "count"),
    [("see the docs of /minify please", 0), ("/minifying is fun", 0), ("/minify --stage nonsense", 1), ("/minify help", 1), ("/minify", 1)],
)
def test_what_starts_nothing(tmp_path: Path, forge: Emulator, body: str, count: int) -> None:
    event = commented(forge, body)
    ran = comment(tmp_path, forge, event)
    assert ran.status == 0, ran.log
    assert len(answers(forge, event)) == count
    assert not list(ran.artifacts.iterdir())
    assert not ran.job("stop")


def test_other_comments_start_no_job(tmp_path: Path, forge: Emulator) -> None:
    ran = comment(tmp_path, forge, commented(forge, "nice work"))
    assert ran.status == 0
    assert not ran.job("gate")


def test_stop_has_a_job_of_its_own(tmp_path: Path, forge: Emulator) -> None:
    event = commented(forge, "/minify stop")
    ran = comment(tmp_path, forge, event)
    assert ran.status == 0, ran.log
    assert "outcome=stop" in ran.job("gate")
    assert "Job succeeded" in ran.job("stop")
    assert len(answers(forge, event)) == 1
    assert not ran.job("minify 0")


def red(forge: Emulator, run_id: int, log: str, **more: Any) -> dict[str, Any]:
    """A red run of CI, on the default branch unless there is `more` to say, and the event about it."""
    sha = forge.ask("GET", f"/repos/{REPO}/commits/main")["sha"]
    text = (ROOT / f"tests/fixtures/ci/logs/{log}.txt").read_bytes().decode()
    job = {"id": run_id * 10, "name": "tests", "conclusion": "failure", "log": text}
    told = {"id": run_id, "workflow_id": run_id, "name": "CI", "event": "push", "conclusion": "failure", "status": "completed"}
    told |= {"head_sha": sha, "head_branch": "main", "created_at": "2026-11-03T12:00:00Z"} | more
    forge.add(runs=[told | {"jobs": [job]}])
    repository = forge.ask("GET", f"/repos/{REPO}")
    told |= {"head_repository": repository, "html_url": f"https://github.com/{REPO}/actions/runs/{run_id}"}
    return {"action": "completed", "workflow_run": told, "repository": repository}


def test_red_ci_becomes_results(tmp_path: Path, forge: Emulator) -> None:
    inputs = {"test-command": "python -m pytest -x {nodeid}"}
    ran = run(tmp_path / "act", "workflow_run", red(forge, 950, "pytest"), forge.url, "on-red-ci.yml", **inputs)
    assert ran.status == 0, ran.log
    requests = json.loads((ran.artifacts / "torch-minify-request/request.json").read_text(encoding="utf-8"))
    assert len(requests) == 2
    for index, request in enumerate(requests):
        # the template of the workflow, with the test in it as one word
        assert f"--command={request['command']}" in ran.seen(index)["arguments"]
        assert request["command"].startswith("python -m pytest -x ")
        (answer,) = forge.ours(request["answer"]["issue"])
        assert "### Queued" not in answer
        assert "Minimized" in answer


def test_green_ci_starts_no_job(tmp_path: Path, forge: Emulator) -> None:
    event = red(forge, 951, "pytest")
    event["workflow_run"]["conclusion"] = "success"
    ran = run(tmp_path / "act", "workflow_run", event, forge.url, "on-red-ci.yml")
    assert ran.status == 0
    assert not ran.job("gate")


def test_the_sweep(tmp_path: Path, forge: Emulator) -> None:
    """A queued comment whose run was cancelled says so after the sweep."""
    issue = forge.issue("It fails.")
    body = "<!-- torch-minify:comment-77 run:970 -->\n\n### Queued\n\nWaiting."
    forge.ask("POST", f"/repos/{REPO}/issues/{issue}/comments", "github-actions[bot]", body=body)
    sha = forge.ask("GET", f"/repos/{REPO}/commits/main")["sha"]
    forge.add(runs=[{"id": 970, "workflow_id": 1, "head_sha": sha, "status": "completed", "conclusion": "cancelled", "jobs": []}])
    event = {"schedule": "17 5 * * *", "repository": forge.ask("GET", f"/repos/{REPO}")}
    ran = run(tmp_path / "act", "schedule", event, forge.url, "sweep.yml")
    assert ran.status == 0, ran.log
    (answer,) = forge.ours(issue)
    assert "### Ended without a result" in answer
    assert answer.startswith("<!-- torch-minify:comment-77 run:970 -->")
