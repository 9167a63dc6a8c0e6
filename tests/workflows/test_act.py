"""The three workflows, run: comment and red CI through gate, minify and report, and stop, against GitHub's API in memory."""

from __future__ import annotations

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
    print(ran.log)
    assert ran.status == 0
    (answer,) = forge.answers(event)
    print(answer)
    assert "Minimized" in answer
