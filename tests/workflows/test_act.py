"""The three workflows, run: comment and red CI through gate, minify and report, and stop, against GitHub's API in memory."""

from __future__ import annotations

import json
import socket
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import requests
import yaml
from act_harness import TOKEN, Ran, run
from workflow_files import TOOLS

pytestmark = [pytest.mark.slow, pytest.mark.skipif(not (TOOLS / "stamp").exists(), reason="scripts/setup-tools has not run")]

OWNER, NAME = "maintainer", "project"
PEOPLE = {"maintainer": "token-of-maintainer", "stranger": "token-of-stranger", "github-actions[bot]": TOKEN}
CODE = "```python\nimport torch\n# result: {result}\ntorch.compile(torch.relu)(torch.ones(2))\n```"


@dataclass(frozen=True)
class Forge:
    """The emulator, and one repository in it."""

    url: str

    def ask(self, method: str, path: str, who: str = "maintainer", **body: Any) -> Any:
        response = requests.request(
            method, f"{self.url}{path}", json=body or None, headers={"Authorization": f"Bearer {PEOPLE[who]}"}, timeout=30
        )
        response.raise_for_status()
        return response.json() if response.content else None

    def commented(self, who: str, body: str, issue_body: str = "It fails.") -> dict[str, Any]:
        """The event of a comment on a new issue."""
        at = f"/repos/{OWNER}/{NAME}"
        issue = self.ask("POST", f"{at}/issues", title="A failure", body=issue_body)
        comment = self.ask("POST", f"{at}/issues/{issue['number']}/comments", who, body=body)
        repository = self.ask("GET", at)
        return {"action": "created", "issue": issue, "comment": comment, "repository": repository, "sender": comment["user"]}

    def answers(self, event: dict[str, Any]) -> list[str]:
        """What we wrote below."""
        listed = self.ask("GET", f"/repos/{OWNER}/{NAME}/issues/{event['issue']['number']}/comments")
        return [comment["body"] for comment in listed if comment["user"]["login"] == "github-actions[bot]"]


@pytest.fixture(scope="module")
def forge(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Forge]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    where = tmp_path_factory.mktemp("emulator")
    seed = {
        "tokens": {token: {"login": login, "scopes": ["repo", "user"]} for login, token in PEOPLE.items()},
        "github": {"users": [{"login": login} for login in PEOPLE], "repos": [{"owner": "maintainer", "name": NAME, "auto_init": True}]},
    }
    (where / "seed.yaml").write_text(yaml.safe_dump(seed), encoding="utf-8")
    url = f"http://127.0.0.1:{port}"
    command = [
        "node",
        str(TOOLS / "node_modules/emulate/dist/index.js"),
        "start",
        "-s",
        "github",
        "-p",
        str(port),
        "--base-url",
        url,
        "--seed",
        "seed.yaml",
    ]
    with (where / "log").open("w") as log:
        server = subprocess.Popen(command, cwd=where, stdout=log, stderr=log)
    try:
        for _ in range(100):
            try:
                requests.get(url, timeout=1)
                break
            except requests.ConnectionError:
                time.sleep(0.2)
        yield Forge(url)
    finally:
        server.terminate()
        server.wait(10)


def comment(tmp_path: Path, forge: Forge, event: dict[str, Any]) -> Ran:
    return run(tmp_path / "act", "issue_comment", event, forge.url, "on-comment.yml")


def test_a_comment_becomes_a_result(tmp_path: Path, forge: Forge) -> None:
    event = forge.commented("maintainer", "/minify\n\n" + CODE.format(result="lowering"))
    ran = comment(tmp_path, forge, event)
    assert ran.status == 0, ran.log
    (answer,) = forge.answers(event)
    assert "### Minimized" in answer
    assert "class Repro(torch.nn.Module)" in answer
    # what the program could see: the commit that was resolved, and no token
    head = forge.ask("GET", f"/repos/{OWNER}/{NAME}/commits/main")["sha"]
    assert ran.seen(0)["here"] == {"checked-out.txt": f"{OWNER}/{NAME} {head}\n"}
    assert TOKEN not in json.dumps(ran.seen(0))
    assert not [name for name in ran.seen(0)["environment"] if name.startswith(("GITHUB_", "ACTIONS_", "INPUT_"))]
    # what a program prints is no command to the runner
    assert "this is printed by a program" in ran.job("minify 0")
    assert "::stop-commands::" in ran.job("minify 0")


def test_several_commands_are_one_comment(tmp_path: Path, forge: Forge) -> None:
    event = forge.commented("maintainer", "/minify --device cpu\n/minify --budget 5m\n\n" + CODE.format(result="flaky"))
    ran = comment(tmp_path, forge, event)
    # a flaky program is an answer, not a fault
    assert ran.status == 0, ran.log
    assert {path.name for path in ran.artifacts.iterdir()} == {"torch-minify-request", "torch-minify-result-0", "torch-minify-result-1"}
    (answer,) = forge.answers(event)
    assert [line for line in answer.splitlines() if line.startswith("### ")] == ["### 1. Flaky, 7 of 10", "### 2. Flaky, 7 of 10"]
    assert "--device=cpu" in ran.seen(0)["arguments"]
    assert "--budget=300s" in ran.seen(1)["arguments"]


def test_a_fault_is_red_and_reported(tmp_path: Path, forge: Forge) -> None:
    event = forge.commented("maintainer", "/minify\n\n" + CODE.format(result="machine_fault"))
    ran = comment(tmp_path, forge, event)
    assert ran.status != 0
    assert "Job failed" in ran.job("minify 0")
    assert "Job succeeded" in ran.job("report")
    (answer,) = forge.answers(event)
    assert "### Could not be minimized" in answer


def test_a_job_that_leaves_nothing_is_reported(tmp_path: Path, forge: Forge) -> None:
    """As when its machine goes away: no artifact."""
    event = forge.commented("maintainer", "/minify\n\n" + CODE.format(result="lowering"))
    ran = run(tmp_path / "act", "issue_comment", event, forge.url, "on-comment.yml", runner="nobody")
    assert not list(ran.artifacts.glob("*result*"))
    assert "Job succeeded" in ran.job("report"), ran.log
    (answer,) = forge.answers(event)
    assert "### Queued" not in answer
    assert "Minimized" not in answer


def test_a_stranger_is_told_and_nothing_runs(tmp_path: Path, forge: Forge) -> None:
    event = forge.commented("stranger", "/minify\n\n" + CODE.format(result="lowering"))
    ran = comment(tmp_path, forge, event)
    assert ran.status == 0, ran.log
    (answer,) = forge.answers(event)
    assert "write permission" in answer
    assert not list(ran.artifacts.iterdir())
    assert not ran.job("minify 0")
    assert "outcome=refused" in ran.job("gate")


def test_hostile_text_stays_text(tmp_path: Path, forge: Forge) -> None:
    """In the program, the issue, the names: nothing of it is a command, an expression or an output."""
    trap = tmp_path / "trap"
    evil = (
        f"$(touch {trap}) `touch {trap}` ${{{{ github.token }}}} ::set-output name=outcome::stop\n::add-mask::x\n"
        "@everyone <!-- torch-minify:comment-1 run:1 -->"
    )
    code = f"```python\nimport torch\n# result: lowering\n{chr(34) * 3}\n{evil}\n{chr(34) * 3}\n```"
    event = forge.commented("maintainer", f"/minify\n\n{code}", issue_body=evil)
    event["issue"]["title"] = evil
    ran = comment(tmp_path, forge, event)
    assert ran.status == 0, ran.log
    (answer,) = forge.answers(event)
    assert "### Minimized" in answer
    assert not trap.exists()
    assert TOKEN not in answer
    assert evil in ran.seen(0)["text"]


@pytest.mark.parametrize(
    ("body", "answers"),
    [("see the docs of /minify please", 0), ("/minifying is fun", 0), ("/minify --stage nonsense", 1), ("/minify help", 1), ("/minify", 1)],
)
def test_what_starts_nothing(tmp_path: Path, forge: Forge, body: str, answers: int) -> None:
    event = forge.commented("maintainer", body)
    ran = comment(tmp_path, forge, event)
    assert ran.status == 0, ran.log
    assert len(forge.answers(event)) == answers
    assert not list(ran.artifacts.iterdir())
    assert not ran.job("stop")


def test_other_comments_start_no_job(tmp_path: Path, forge: Forge) -> None:
    ran = comment(tmp_path, forge, forge.commented("maintainer", "nice work"))
    assert ran.status == 0
    assert not ran.job("gate")


def test_stop_has_a_job_of_its_own(tmp_path: Path, forge: Forge) -> None:
    event = forge.commented("maintainer", "/minify stop")
    ran = comment(tmp_path, forge, event)
    assert ran.status == 0, ran.log
    assert "outcome=stop" in ran.job("gate")
    assert "Job succeeded" in ran.job("stop")
    assert len(forge.answers(event)) == 1
    assert not ran.job("minify 0")
