"""Every request of the gate and of the report fails once, in every way that an answer can: one comment, or a clear failure.

The requests are not listed here: a run without a fault shows them, and each is then struck in a run of its own.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr

from bot import cli
from bot.action.__main__ import Edge
from bot.action.github import transport
from bot.action.github.client import GitHub
from bot.action.github.transport import Transport
from bot.action.settings import Settings
from tests.action.gate import memory
from tests.action.github.stub import NOW, Fault, Stub

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]
RESULT = Path(__file__).resolve().parents[2] / "fixtures" / "results" / "lowering"
BOT, RUN = memory.BOT, 77
WHOLE = '{"id": 1, "body": "x"}'
FAULTS = {
    **{str(status): Fault(status) for status in (401, 403, 404, 409, 410, 422, 429, 500, 502)},
    "reset": Fault(0),
    "no answer in time": Fault(-1),
    "half a JSON text": Fault(200, {"Content-Type": "application/json"}, WHOLE[:-4]),
    "null": Fault(200, {"Content-Type": "application/json"}, "null"),
    "an empty 200": Fault(200, {}, ""),
    "a page": Fault(200, {"Content-Type": "text/html"}, "<!DOCTYPE html><title>Unicorn</title>"),
    "moved away": Fault(307, {"Location": "https://elsewhere.example/x"}, ""),
}


class World(Stub):
    """Comments, issues, reactions, a red run. Checked against the documentation of GitHub's REST API, version 2022-11-28."""

    def __init__(self) -> None:
        super().__init__()
        self.issues: dict[int, list[dict[str, Any]]] = {}
        self.opened: list[dict[str, Any]] = []
        self.reactions: list[str] = []
        self.unknown: list[tuple[str, str]] = []
        log = (memory.LOGS / "pytest.txt").read_bytes()
        job = {"id": 200, "name": "tests", "conclusion": "failure", "html_url": "https://github.com/x", "started_at": NOW}
        run = {"id": 20, "workflow_id": 3, "head_sha": memory.HEAD, "head_branch": "main", "event": "push", "created_at": NOW}
        repo = f"/repos/{memory.REPO}"
        self.answers = {
            ("GET", f"{repo}/collaborators/maintainer/permission"): (
                200,
                {"permission": "write", "user": memory.user("maintainer").model_dump()},
            ),
            ("GET", f"{repo}/commits/main"): (200, {"sha": memory.MAIN}),
            ("GET", f"{repo}/actions/runs/20/jobs"): (200, {"total_count": 1, "jobs": [job]}),
            ("GET", f"{repo}/actions/jobs/200/logs"): (200, log),
            ("GET", f"{repo}/actions/runs/20/artifacts"): (200, {"total_count": 0, "artifacts": []}),
            ("GET", f"{repo}/actions/runs/{RUN}/artifacts"): (200, {"total_count": 0, "artifacts": []}),
            ("GET", f"{repo}/actions/runs/{RUN}/jobs"): (200, {"total_count": 0, "jobs": []}),
            ("GET", f"{repo}/actions/runs/20"): (200, run | {"status": "completed", "conclusion": "failure"}),
            ("GET", f"{repo}/actions/workflows/3/runs"): (200, {"total_count": 0, "workflow_runs": []}),
            ("GET", f"{repo}/actions/runs"): (200, {"total_count": 0, "workflow_runs": []}),
            ("GET", f"{repo}/issues/comments"): (200, []),
            ("GET", f"{repo}/pulls"): (200, []),
            ("GET", f"{repo}/commits/{memory.HEAD}/pulls"): (200, []),
            ("GET", f"{repo}/git/trees/{memory.HEAD}"): (200, {"tree": [], "truncated": False}),
        }

    def work(self, verb: str, path: str, body: bytes) -> tuple[int, Any]:
        said = json.loads(body) if body.startswith(b"{") else {}
        *_, parent, last = path.split("/")
        if path.endswith("/reactions"):
            self.reactions.append(said["content"])
            return 201, {"id": len(self.reactions), "content": said["content"]}
        if last == "comments" and parent.isdigit():
            held = self.issues.setdefault(int(parent), [])
            if verb == "GET":
                return 200, held
            made = {
                "id": 5000 + sum(map(len, self.issues.values())),
                "body": said["body"],
                "created_at": NOW,
                "issue_url": path.removesuffix("/comments"),
            }
            held.append(
                made | {"user": {"login": BOT, "id": 2}, "html_url": f"https://github.com/{memory.REPO}/issues/{parent}#c{made['id']}"}
            )
            return 201, held[-1]
        if parent == "comments" and last.isdigit():
            known = next((one for held in self.issues.values() for one in held if str(one["id"]) == last), None)
            if known is None:
                return 404, {"message": "Not Found"}
            known["body"] = said.get("body", known["body"])
            return 200, known
        if last == "issues":
            if verb == "GET":
                return 200, self.opened
            self.opened.append(
                said | {"number": 100 + len(self.opened), "user": {"login": BOT, "id": 2}, "html_url": "https://github.com/x"}
            )
            return 201, self.opened[-1]
        if (verb, path) in self.answers:
            return self.answers[verb, path]
        self.unknown.append((verb, path))
        return 404, {"message": "Not Found"}


Event = Callable[[], tuple[str, dict[str, Any]]]


def comment() -> tuple[str, dict[str, Any]]:
    return "issue_comment", memory.asked(f"/minify\n\n{memory.BLOCK}").model_dump(mode="json")


def red() -> tuple[str, dict[str, Any]]:
    run = memory.Memory().add_run(20, "pytest").model_copy(update={"head_branch": "main", "event": "push"})
    return "workflow_run", memory.finished(run).model_dump(mode="json")


@pytest.fixture
def at(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[Event, World], dict[str, Any]]:
    """Runs the gate and, where it asks for that, the report, against a world; how it ended."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(transport, "TIMEOUT", 1)
    for number in range(5):
        shutil.copytree(RESULT, tmp_path / "results" / f"result-{number}")
    for name in ("CI", "GITHUB_ACTIONS"):
        monkeypatch.delenv(name, raising=False)

    def connect(token: SecretStr, settings: Settings) -> GitHub:
        return GitHub(Transport(token.get_secret_value(), settings.api_url, sleep=lambda _: None), settings.bot_login)

    def run(event: Event, world: World) -> dict[str, Any]:
        for path in ("request.json", "summary.md", "output"):
            Path(path).unlink(missing_ok=True)
        name, told = event()
        Path("event.json").write_text(json.dumps(told), encoding="utf-8")
        given = {"GITHUB_TOKEN": "t", "GITHUB_API_URL": world.url, "GITHUB_REPOSITORY": memory.REPO, "INPUT_BOT-LOGIN": BOT}
        for key, value in {**given, "GITHUB_RUN_ID": str(RUN), "GITHUB_STEP_SUMMARY": "summary.md", "GITHUB_OUTPUT": "output"}.items():
            monkeypatch.setenv(key, value)
        gate = cli.main(("gate", "--out", "request.json", "--event", "event.json", "--event-name", name), Edge(connect=connect))
        told_by_gate = Path("summary.md").read_text() if Path("summary.md").exists() else ""
        report = None
        if Path("request.json").exists() and gate == 0:
            report = cli.main(("report", "--result", "results", "--request", "request.json"), Edge(connect=connect))
        summary = Path("summary.md").read_text() if Path("summary.md").exists() else ""
        return {"gate": gate, "report": report, "gate summary": told_by_gate, "summary": summary}

    return run


def check(ended: dict[str, Any], world: World, *, asked: bool) -> None:
    """One comment or a clear failure."""
    bodies = [one["body"] for held in world.issues.values() for one in held]
    marks = [body.partition("\n")[0] for body in bodies]
    assert len(marks) == len(set(marks)), marks
    assert len({one["title"] for one in world.opened}) == len(world.opened)
    if ended["gate"] != 0:
        words = ("can still be read", "nothing is minimized")
        assert ended["gate"] in (1, 7) or (ended["gate"] == 6 and any(said in ended["gate summary"] for said in words)), ended
        assert ended["gate summary"].strip() or any("could not" in body or "did not" in body for body in bodies), (ended, bodies)
        return
    if ended["report"] is None:
        assert not asked
        return
    answers = [body for body in bodies if "Minimized" in body and "import torch" in body]
    if ended["report"] == 0:
        # of an issue on which nothing can be written the gate says so
        unsaid = ended["gate summary"].count("no comment could be written")
        assert len(answers) == (1 if asked else len(world.issues) - unsaid) > 0, (ended, bodies)
    else:
        assert ended["report"] == 8, ended
        assert "Minimized" in ended["summary"]
        assert "import torch" in ended["summary"]


# A red run takes seconds in each row: those are tried by `--all` alone.
ROWS = [
    pytest.param(event, fault, late, id=f"{event.__name__}-{fault}-{when}", marks=[] if quick else [pytest.mark.all])
    for event in (comment, red)
    for fault in FAULTS
    for late, when in ((False, "before"), (True, "after"))
    for quick in [event is comment and (not late or fault in ("502", "reset", "no answer in time", "null"))]
]


@pytest.mark.parametrize(("event", "fault", "late"), ROWS)
def test_each_request_may_fail_once(at: Callable[[Event, World], dict[str, Any]], event: Event, fault: str, late: bool) -> None:
    with World() as world:
        ended = at(event, world)
        requests = [f"{verb} {path.partition('?')[0]}" for verb, path, _ in world.seen]
        assert ended["gate"] == 0, ended
        assert ended["report"] == 0, ended
        check(ended, world, asked=event is comment)
        assert world.unknown == []
    assert {request.partition(" ")[0] for request in requests} == {"GET", "POST", "PATCH"}
    made = FAULTS[fault]
    for number, request in enumerate(requests):
        if late and request.startswith("GET"):
            continue  # nothing was done that could be done twice
        with World() as world:
            world.silence = 1.3
            world.faults = [Fault(made.status, made.headers, made.body, late, None, number)]
            ended = at(event, world)
            assert world.faults == []
            try:
                check(ended, world, asked=event is comment)
            except AssertionError as error:
                raise AssertionError(f"{fault} at {request}: {error}") from error
