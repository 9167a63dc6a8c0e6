"""Three workflows and the ways in which they end: whatever happens, there is one comment, and it says how it ended.

The cells are the workflows for comments, for red CI, and the sweep; a result, no result, a cancel, an API that answers nonsense.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.action.github.emulator import BOT, OWNER, REPO, Emulator
from tests.workflows.act_harness import Machine, Ran, run
from tests.workflows.test_act import CODE, red
from tests.workflows.workflow_files import TOOLS

pytestmark = [pytest.mark.slow, pytest.mark.skipif(not (TOOLS / "stamp").exists(), reason="scripts/setup-tools has not run")]

# What the stand-in for the engine does, by the words in what it is given (act/engine.py). A test's id is all that red CI hands it.
ENDINGS = {
    "result": ("### Minimized", {}, ()),
    # the label is one that act knows no machine for, so the job leaves nothing, not even a failed step
    "no result": ("never began: no runner took it", {"runner": "nobody"}, ()),
    # the runner's signal reaches the program, which hands on what there is; the jobs behind it begin in a run that is cancelled
    "cancel": (", interrupted", {}, ()),
    # nothing, null, half a JSON text and another type, each with a 200, before and after the work is done
    "broken API": (
        "### Minimized",
        {},
        (
            {"method": "GET", "path": "/comments$", "status": 200, "body": "null"},
            {"method": "POST", "path": "/comments$", "status": 200, "body": '{"id": 1, "bo', "late": True},
            {"method": "GET", "path": "/artifacts$", "status": 200, "body": ""},
            {"method": "GET", "path": "/artifacts$", "status": 200, "body": "[null]"},
            {"method": "PATCH", "path": "/issues/comments/[0-9]+$", "status": 200, "body": "", "late": True},
            {"method": "PATCH", "path": "/issues/comments/[0-9]+$", "status": 200, "body": "<html>", "late": True},
        ),
    ),
}


# What GitHub says of the jobs for a label that no runner has, once it gave up or somebody cancelled: no steps and no runner. act has the
# number 1 for every run, and tells the API nothing.
NEVER_BEGAN = [
    {"id": 100 + index, "name": f"minify / minify {index}", "status": "completed", "conclusion": "cancelled", "labels": ["nobody"]}
    | {"runner_name": None, "steps": []}
    for index in range(2)
]


@pytest.fixture(scope="module")
def forge(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Emulator]:
    with Emulator(tmp_path_factory.mktemp("emulator")) as running:
        running.add(runs=[{"id": 1, "head_sha": "d" * 40, "status": "in_progress", "conclusion": None, "jobs": NEVER_BEGAN}])
        yield running


def ended(ran: Ran, bodies: list[str], words: str) -> None:
    (body,) = bodies
    assert words in body, f"{body}\n{ran.log}"
    assert "### Queued" not in body


@pytest.mark.parametrize("ending", ENDINGS)
def test_a_comment(tmp_path: Path, forge: Emulator, ending: str) -> None:
    words, inputs, faults = ENDINGS[ending]
    result = "cancel" if ending == "cancel" else "lowering"
    event = forge.commented(forge.issue("It fails."), "/minify\n\n" + CODE.format(result=result))
    for fault in faults:
        forge.plant(**fault)
    machine = Machine(cancelled_with=1 if ending == "cancel" else 0)
    ran = run(tmp_path / "act", "issue_comment", event, forge.url, "on-comment.yml", machine, **inputs)
    ended(ran, forge.ours(event["issue"]["number"]), words)
    assert forge.state["faults"] == []


@pytest.mark.parametrize("ending", ENDINGS)
def test_red_ci(tmp_path: Path, forge: Emulator, ending: str) -> None:
    words, inputs, faults = ENDINGS[ending]
    command = {"test-command": "pytest -k cancel {nodeid}"} if ending == "cancel" else {}
    before = {issue["number"] for issue in issues(forge)}
    event = red(forge, 960 + list(ENDINGS).index(ending), "pytest")
    for number in before:  # the same failures are reported on the issues that are there: close them, so that these are new ones
        forge.ask("PATCH", f"/repos/{REPO}/issues/{number}", state="closed")
    for fault in faults:
        forge.plant(**fault)
    machine = Machine(cancelled_with=2 if ending == "cancel" else 0)
    ran = run(tmp_path / "act", "workflow_run", event, forge.url, "on-red-ci.yml", machine, **inputs, **command)
    opened = [issue["number"] for issue in issues(forge)]
    assert len(opened) == 2, ran.log
    for number in opened:
        ended(ran, forge.ours(number), words)
    assert forge.state["faults"] == []


def issues(forge: Emulator) -> list[dict[str, Any]]:
    listed: list[dict[str, Any]] = forge.ask("GET", f"/repos/{REPO}/issues?state=open&per_page=100")
    return listed


@pytest.mark.parametrize("ending", ENDINGS)
def test_the_sweep(tmp_path: Path, forge: Emulator, ending: str) -> None:
    number, issue = 980 + list(ENDINGS).index(ending), forge.issue("It fails.")
    title = "### Minimized" if ending == "result" else "### Queued"
    body = f"<!-- torch-minify:comment-{number} run:{number} -->\n\n{title}\n\nText."
    forge.ask("POST", f"/repos/{REPO}/issues/{issue}/comments", BOT, body=body)
    sha = forge.ask("GET", f"/repos/{REPO}/commits/main")["sha"]
    conclusion = "cancelled" if ending == "cancel" else "failure"
    forge.add(runs=[{"id": number, "workflow_id": 1, "head_sha": sha, "status": "completed", "conclusion": conclusion, "jobs": []}])
    if ending == "broken API":
        forge.plant(method="GET", path=f"/runs/{number}$", status=200, body="null")
        forge.plant(method="PATCH", path="/issues/comments/[0-9]+$", status=200, body="{", late=True)
    event = {"schedule": "17 5 * * *", "repository": forge.ask("GET", f"/repos/{REPO}")}
    ran = run(tmp_path / "act", "schedule", event, forge.url, "sweep.yml")
    assert ran.status == 0, ran.log
    ended(ran, forge.ours(issue), "### Minimized" if ending == "result" else "### Ended without a result")
    if ending == "cancel":
        assert "cancelled" in forge.ours(issue)[0]
    assert forge.state["faults"] == []


def test_a_request_that_was_exchanged_on_its_way_is_not_believed(tmp_path: Path, forge: Emulator) -> None:
    """Another job of the run may write to the artifacts; what the gate said of the file it cannot change."""
    other = forge.issue("Not asked for.")
    event = forge.commented(forge.issue("It fails."), "/minify\n\n" + CODE.format(result=f"exchange {other}"))
    ran = run(tmp_path / "act", "issue_comment", event, forge.url, "on-comment.yml")
    ended(ran, forge.ours(event["issue"]["number"]), "### Ended without a result")
    assert forge.ours(other) == []


@pytest.mark.parametrize(
    ("result", "times", "title"), [("lowering taken", 1, "### Minimized"), ("blocked", 2, "### Could not be minimized")]
)
def test_a_result_is_uploaded_once_more_and_if_it_cannot_be_that_is_reported(
    tmp_path: Path, forge: Emulator, result: str, times: int, title: str
) -> None:
    """As where its name is taken, or the store does not answer."""
    event = forge.commented(forge.issue("It fails."), "/minify\n\n" + CODE.format(result=result))
    ran = run(tmp_path / "act", "issue_comment", event, forge.url, "on-comment.yml")
    assert ran.log.count("(409) Conflict") == times
    ended(ran, forge.ours(event["issue"]["number"]), title)


@pytest.mark.parametrize(
    ("missing", "said", "who", "title"),
    [
        # the gate has asked already, and the comment would say "queued" for ever
        (("report",), "/minify", OWNER, "### Ended without a result"),
        (("report",), "/minify doctor", OWNER, "### Ended without a result"),
        (("gate", "report"), "/minify", OWNER, "### Not taken"),
        (("stop",), "/minify stop", OWNER, "### Not stopped"),
        (("gate", "report"), "see the docs of /minify", OWNER, None),
        (("gate", "report"), "/minify", "stranger", None),
    ],
    ids=["the report", "that of a set-up", "both", "a stop", "no command", "a stranger"],
)
def test_hosted_jobs_that_cannot_begin(
    tmp_path: Path, forge: Emulator, missing: tuple[str, ...], said: str, who: str, title: str | None
) -> None:
    """As where their image is private, or an index does not answer while it is built: nothing of ours can say so."""
    event = forge.commented(forge.issue("It fails."), f"{said}\n\n" + CODE.format(result="lowering"), who)
    ran = run(tmp_path / "act", "issue_comment", event, forge.url, "on-comment.yml", Machine(without_image=missing))
    assert ran.status != 0
    assert [body.splitlines()[2] for body in forge.ours(event["issue"]["number"])] == ([title] if title else []), ran.log
    marker = f"<!-- torch-minify:comment-{event['comment']['id']} run:1 -->"
    assert all(body.splitlines()[0] == marker for body in forge.ours(event["issue"]["number"]))


def test_a_red_run_whose_report_cannot_begin(tmp_path: Path, forge: Emulator) -> None:
    before = {issue["number"] for issue in issues(forge)}
    for number in before:
        forge.ask("PATCH", f"/repos/{REPO}/issues/{number}", state="closed")
    run(tmp_path / "act", "workflow_run", red(forge, 970, "pytest"), forge.url, "on-red-ci.yml", Machine(without_image=("report",)))
    opened = [issue["number"] for issue in issues(forge)]
    assert len(opened) == 2
    for number in opened:
        (body,) = forge.ours(number)
        assert body.splitlines()[2] == "### Ended without a result"
        assert body.startswith("<!-- torch-minify:run-970-1 run:1 failures:")


def test_a_report_that_failed_after_its_comment_is_left_alone(tmp_path: Path, forge: Emulator) -> None:
    event = forge.commented(forge.issue("It fails."), "/minify\n\n" + CODE.format(result="lowering"))
    # the first edit is the report's: it is done, though the answer says that it was refused
    forge.plant(method="PATCH", path="/issues/comments/", status=403, late=True)
    ran = run(tmp_path / "act", "issue_comment", event, forge.url, "on-comment.yml")
    assert "Job failed" in ran.job("report")
    assert "Job succeeded" in ran.job("unanswered")
    ended(ran, forge.ours(event["issue"]["number"]), "### Minimized")
