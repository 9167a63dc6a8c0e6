"""Each job of the workflow asks GitHub for no more than its token may: on GitHub the rest is 403 or, in a private repository, 404.

Checked against github/docs, src/github-apps/data/fpt-2026-03-10/server-to-server-permissions.json: what an app's token, as that of a
workflow, needs for each request. `metadata` every token has; where two permissions are listed for issues and pull requests either will do.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bot.action.__main__ import Edge, main
from bot.action.github.client import GitHub
from bot.action.github.transport import Transport
from tests.action.gate import memory
from tests.action.github.test_fault_table import RUN, World, comment, red
from tests.workflows.workflow_files import workflow

REPO = f"/repos/{memory.REPO}"
# What a request needs: a permission and its level; none, where every token may; or one that a workflow cannot have, whose refusal is met.
NEEDS: tuple[tuple[str, str, tuple[str, str] | None], ...] = (
    ("GET", "", None),
    ("GET", r"/user(?:/\d+)?", None),
    ("GET", r"/gists/\w+(?:/\w+)?", None),
    ("GET", r"/collaborators/[^/]+/permission", None),
    ("GET", r"/actions/runners", None),
    ("GET", r"/commits/[^/]+/pulls", ("pull-requests", "read")),
    ("GET", r"/pulls(?:/\d+)?", ("pull-requests", "read")),
    ("GET", r"/commits/[^/]+|/git/trees/[^/]+|/activity", ("contents", "read")),
    ("GET", r"/environments/[^/]+", ("actions", "read")),
    ("GET", r"/actions/.+", ("actions", "read")),
    ("POST", r"/actions/runs/\d+/cancel", ("actions", "write")),
    ("GET", r"/issues(?:/.+)?", ("issues", "read")),
    ("POST|PATCH|DELETE", r"/issues(?:/.+)?", ("issues", "write")),
)
LEVELS = ("none", "read", "write")


def needed(verb: str, path: str) -> tuple[str, str] | None:
    for verbs, pattern, need in NEEDS:
        if re.fullmatch(verbs, verb) and re.fullmatch(pattern, path.removeprefix(REPO)):
            return need
    raise AssertionError(f"look up what {verb} {path} needs")


Told = tuple[str, dict[str, Any]]


def asked(body: str, **more: Any) -> Callable[[], Told]:
    return lambda: ("issue_comment", memory.asked(body, **more).model_dump(mode="json"))


QUEUED = f"<!-- torch-minify:comment-1 run:{RUN} -->\n\n### Queued\n\nWaiting."
# The job, the mode of our program in it, and what sets it off.
JOBS: dict[str, tuple[str, str, Callable[[], Told]]] = {
    "a comment": ("gate", "gate", comment),
    "an attached gist": ("gate", "gate", asked("/minify\n\nhttps://gist.github.com/a/0123456789abcdef0123")),
    "a pull request": ("gate", "gate", asked("/minify", pull=True)),
    "the address of a run": ("gate", "gate", asked(f"/minify https://github.com/{memory.REPO}/actions/runs/20")),
    "again": ("gate", "gate", asked("/minify again")),
    "doctor": ("gate", "gate", asked("/minify doctor")),
    "red CI": ("gate", "gate", red),
    "a result": ("report", "report", comment),
    "a request that was lost": ("report", "report", asked(f"/minify\n{memory.BLOCK}")),
    "stop": ("stop", "stop", asked("/minify stop")),
    "the sweep": ("sweep", "sweep", comment),
}


def world() -> World:
    """Everything is there that a job could ask for: a pull request of a fork, a run that can be cancelled, a comment that waits."""
    made = World()
    run = {"id": RUN, "head_sha": memory.HEAD, "created_at": "2026-11-01T00:00:00Z", "event": "issue_comment"}
    head = {"ref": "topic", "sha": memory.HEAD, "repo": {"full_name": "fork/models"}}
    base = {"ref": "main", "sha": memory.MAIN, "repo": {"full_name": memory.REPO}}
    held = {"id": 9, "body": QUEUED, "user": {"login": memory.BOT, "id": 2}, "created_at": "2026-11-03T10:00:00Z"}
    made.issues[7] = [held, held | {"id": 10, "body": QUEUED.replace(f"run:{RUN}", "run:78")}]
    made.answers |= {
        ("GET", f"{REPO}/pulls/7"): (200, {"number": 7, "head": head, "base": base}),
        ("GET", f"{REPO}/environments/forks"): (200, {"protection_rules": [{"type": "required_reviewers"}]}),
        ("GET", f"{REPO}/actions/runs/{RUN}"): (200, run | {"status": "completed", "conclusion": "cancelled"}),
        ("GET", f"{REPO}/actions/runs/78"): (200, run | {"id": 78, "status": "queued"}),
        ("POST", f"{REPO}/actions/runs/78/cancel"): (202, {}),
        ("GET", f"{REPO}/issues/comments"): (200, [each | {"issue_url": f"{REPO}/issues/7"} for each in made.issues[7]]),
    }
    return made


@pytest.mark.parametrize("what", JOBS)
def test_a_job_asks_for_no_more_than_its_token_may(what: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    job, mode, told = JOBS[what]
    file = "sweep.yml" if job == "sweep" else "minify.yml"
    may = workflow(file)["jobs"][job]["permissions"]
    name, event = told()
    monkeypatch.chdir(tmp_path)
    Path("event.json").write_text(json.dumps(event), encoding="utf-8")
    with world() as github:
        given = {"GITHUB_API_URL": github.url, "GITHUB_REPOSITORY": memory.REPO, "GITHUB_RUN_ID": str(RUN), "GITHUB_TOKEN": "t"}
        given |= {"GITHUB_EVENT_NAME": name, "GITHUB_EVENT_PATH": "event.json", "INPUT_BOT-LOGIN": memory.BOT}
        for key, value in (given | {"INPUT_FORK-ENVIRONMENT": "forks", "INPUT_IMAGE": "none", "INPUT_RUNNER-LABEL": "gpu"}).items():
            monkeypatch.setenv(key, value)
        edge = Edge(connect=lambda token, settings: GitHub(Transport("t", settings.api_url, sleep=lambda _: None), settings.bot_login))
        if what == "a result":
            monkeypatch.setenv("INPUT_MODE", "gate")
            assert main(edge) == 0
            github.seen.clear()
        monkeypatch.setenv("INPUT_MODE", mode)
        main(edge)
        requests = [(verb, path.partition("?")[0]) for verb, path, _ in github.seen]
    assert requests
    for verb, path in requests:
        scope, level = needed(verb, path.replace("/repos/fork/models", REPO)) or ("metadata", "none")
        assert LEVELS.index(may.get(scope, "none")) >= LEVELS.index(level), f"{verb} {path} needs {scope}: {level}"
    done = {"stop": ("POST", f"{REPO}/actions/runs/78/cancel"), "the sweep": ("PATCH", f"{REPO}/issues/comments/9")}
    done |= {"a request that was lost": ("PATCH", f"{REPO}/issues/comments/9"), "doctor": ("GET", f"{REPO}/actions/runners")}
    done |= {"a pull request": ("GET", f"{REPO}/environments/forks"), "an attached gist": ("GET", "/gists/0123456789abcdef0123")}
    assert what not in done or done[what] in requests, requests
