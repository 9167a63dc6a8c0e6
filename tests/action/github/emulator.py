"""GitHub's API in memory (`emulator.mjs`), as a process on loopback, and what people and machines do to it."""

from __future__ import annotations

import base64
import json
import socket
import subprocess
import time
from pathlib import Path
from typing import Any

import requests
from typing_extensions import Self

HERE = Path(__file__).resolve().parent
TOOLS = HERE.parents[2] / ".tools"
OWNER, NAME, BOT = "maintainer", "models", "github-actions[bot]"
REPO = f"{OWNER}/{NAME}"
NOTICE = "<!-- torch-minify:done "
TOKENS = {OWNER: "token-of-maintainer", "stranger": "token-of-stranger", BOT: "token-of-workflow"}


class Emulator:
    """Runs while it is entered. One repository, its owner, a stranger and our bot."""

    def __init__(self, where: Path) -> None:
        self._where = where
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        self._port, self.url = port, f"http://127.0.0.1:{port}"

    def __enter__(self) -> Self:
        seed = {
            "tokens": {token: {"login": login, "scopes": ["repo", "user"]} for login, token in TOKENS.items()},
            "github": {"users": [{"login": login} for login in TOKENS], "repos": [{"owner": OWNER, "name": NAME, "auto_init": True}]},
        }
        (self._where / "seed.json").write_text(json.dumps(seed), encoding="utf-8")
        command = ["node", HERE / "emulator.mjs", TOOLS / "node_modules" / "emulate", str(self._port), self._where / "seed.json"]
        with (self._where / "log").open("w") as log:
            self._process = subprocess.Popen(command, stdout=log, stderr=log)
        until = time.monotonic() + 60
        while self._process.poll() is None and time.monotonic() < until:
            if "ready" in (self._where / "log").read_text() and self._listens():
                return self
            time.sleep(0.05)
        self._process.kill()
        raise RuntimeError((self._where / "log").read_text())

    def _listens(self) -> bool:
        with socket.socket() as asked:
            return asked.connect_ex(("127.0.0.1", self._port)) == 0

    def __exit__(self, *_: object) -> None:
        self._process.terminate()
        self._process.wait(10)

    def ask(self, verb: str, path: str, who: str = OWNER, **body: Any) -> Any:
        """What a person does by hand; outside of what is checked."""
        answer = requests.request(
            verb, f"{self.url}{path}", json=body or None, headers={"Authorization": f"Bearer {TOKENS[who]}"}, timeout=30
        )
        answer.raise_for_status()
        return answer.json() if answer.content else None

    def plant(self, **fault: Any) -> None:
        """See `emulator.mjs`."""
        requests.post(f"{self.url}/_test/faults", json=[fault], timeout=30).raise_for_status()

    def add(self, **state: Any) -> None:
        """See `emulator.mjs`."""
        requests.post(f"{self.url}/_test/state", json=state, timeout=30).raise_for_status()

    @property
    def state(self) -> dict[str, Any]:
        found: dict[str, Any] = requests.get(f"{self.url}/_test/state", timeout=30).json()
        return found

    def issue(self, body: str) -> int:
        return int(self.ask("POST", f"/repos/{REPO}/issues", "stranger", title="It fails", body=body)["number"])

    def commented(self, issue: int, body: str, who: str = OWNER) -> dict[str, Any]:
        """The event that GitHub sends for a comment."""
        comment = self.ask("POST", f"/repos/{REPO}/issues/{issue}/comments", who, body=body)
        return {
            "action": "created",
            "comment": comment,
            "issue": self._issue(issue),
            "repository": self.ask("GET", f"/repos/{REPO}"),
            "sender": comment["user"],
        }

    def _issue(self, number: int) -> Any:
        try:
            return self.ask("GET", f"/repos/{REPO}/issues/{number}")
        except requests.HTTPError:  # a pull request, which the emulator does not show as the issue that it is
            return self.ask("GET", f"/repos/{REPO}/pulls/{number}") | {"pull_request": {"url": f"{self.url}/repos/{REPO}/pulls/{number}"}}

    def ours(self, issue: int) -> list[str]:
        """What we wrote there, but for the replies that say that it is done."""
        return [body for body in self._written(issue) if not body.startswith(NOTICE)]

    def notices(self, issue: int) -> list[str]:
        """The replies that say that it is done."""
        return [body for body in self._written(issue) if body.startswith(NOTICE)]

    def _written(self, issue: int) -> list[str]:
        listed = self.ask("GET", f"/repos/{REPO}/issues/{issue}/comments")
        return [comment["body"] for comment in listed if comment["user"]["login"] == BOT]


def encoded(content: bytes) -> str:
    """An artifact for the emulator's state."""
    return base64.b64encode(content).decode()
