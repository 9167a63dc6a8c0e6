"""The steps of the job that minifies which are scripts, run as the runner would run them, where act's host mode shows nothing.

In a job container a step is `docker exec -i`, which passes no signal on. Checked against Docker 20.10, where neither SIGINT nor SIGTERM
reached the step, and moby#35703. So a cancel ends that client and leaves the program: here a session of its own stands for the container.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

import pytest

from bot.action.gate.page import command_lines
from tests.action.github.stub import NOW, Fault, Stub
from tests.workflows.workflow_files import workflow

ANSWER = workflow("minify.yml")["jobs"]["unanswered"]["steps"][0]
JOB = workflow("minify.yml")["jobs"]["minify"]
STEPS = {step["name"]: step for step in JOB["steps"]}
END = "End it, where the runner's signal went no further than docker exec"
# Hands on what it has and ends, some time after it was told to.
PROGRAM = """#!/bin/bash
trap 'sleep 1; echo saved > "$PLACE/results"; exit 0' TERM
echo begun > "$PLACE/begun"
while :; do sleep 0.1; done
"""


def script(name: str, where: Path, user: int | None = None, tmp: str = "TMPDIR") -> subprocess.Popen[bytes]:
    """A step, as `shell: bash` runs it; by the account `user`, if it is another one. The variable `tmp` names the temporary directory."""
    (where / "step.sh").write_text(STEPS[name]["run"], encoding="utf-8")
    environment = {"PATH": f"{where}/bin{os.pathsep}{os.environ['PATH']}", "PLACE": "place", tmp: str(where / "tmp")}
    return subprocess.Popen(
        ["bash", "--noprofile", "--norc", "-e", "-o", "pipefail", "step.sh"], cwd=where, env=environment, start_new_session=True, user=user
    )


@pytest.fixture
def where(tmp_path: Path) -> Path:
    (tmp_path / "bin").mkdir()
    (tmp_path / "place").mkdir()
    program = tmp_path / "bin/torch-minify-action"
    program.write_text(PROGRAM, encoding="utf-8")
    program.chmod(0o755)
    return tmp_path


def test_a_cancel_reaches_the_program_and_is_waited_for(where: Path) -> None:
    running = script("Minimize", where)
    try:
        for _ in range(200):
            if (where / "place/begun").exists():
                break
            time.sleep(0.05)
        # the noted number is the program's own: nothing stands between
        assert int((where / "place/pid").read_text()) == running.pid
        ending = script(END, where)
        # reaped, as the init of a container would
        assert running.wait(30) == 0
        assert ending.wait(30) == 0
        assert (where / "place/results").read_text() == "saved\n"
    finally:
        if running.poll() is None:
            os.killpg(running.pid, signal.SIGKILL)


def test_a_cancel_before_it_began_ends_nothing(where: Path) -> None:
    assert script(END, where).wait(30) == 0
    (where / "place/pid").write_text("99999999\n")
    assert script(END, where).wait(30) == 0


def test_the_order_of_the_last_steps() -> None:
    """The program is ended before its result is handed on, and that is done before it is removed."""
    names = list(STEPS)
    assert names[-4:] == [END, "Hand the result on", "Hand the result on once more", "Leave nothing behind"]
    conditions = [STEPS[name]["if"] for name in names[-4:]]
    assert conditions == ["cancelled()", "always()", "always() && steps.handed.outcome == 'failure'", "always()"]


def test_nothing_is_left(where: Path) -> None:
    (where / "place/checkout").mkdir()
    (where / "place/checkout/-rf").write_text("")
    (where / "other").write_text("")
    assert script("Leave nothing behind", where).wait(30) == 0
    assert not (where / "place").exists()
    assert (where / "other").exists()


def test_nothing_is_left_of_jobs_that_ended_with_their_runner(where: Path) -> None:
    """As when the machine goes down: no step of theirs ran any more."""
    place = JOB["env"]["PLACE"].replace("${{ github.run_attempt }}", "1").replace("${{ matrix.index }}", "10")
    ours = [place.replace("${{ inputs.name }}", name).replace("${{ github.run_id }}", "123456789") for name in ("", "gpu")]
    others = ["torch-minify", "torch-minify-notes", "torch-minify-gpu-1-2", f"{ours[0]}-x", f"x{ours[0]}", "other"]
    for name in (*ours, *others):
        (where / name / "checkout").mkdir(parents=True)
    (where / "torch-minify-gpu-1-1-1").write_text("a file of somebody's")
    assert script("Leave nothing behind", where).wait(30) == 0
    assert [name for name in ours if (where / name).exists()] == []
    assert [name for name in (*others, "torch-minify-gpu-1-1-1") if not (where / name).exists()] == []


def test_nothing_is_left_of_directories_that_may_not_be_written() -> None:
    """A runner that is no root and uses no container, and a set-up that leaves such a cache, as that of Go's modules is."""
    user = 65_534 if os.geteuid() == 0 else None
    where = Path(tempfile.mkdtemp())  # pytest's own directories are closed to other accounts
    try:
        inner = where / "place/checkout/cache/module"
        inner.mkdir(parents=True)
        (inner / "file").write_text("")
        (inner / "none").mkdir()
        (inner / "none" / "file").write_text("")
        for path in (where, *where.rglob("*")):
            os.chown(path, os.geteuid() if user is None else user, -1)
        for path, mode in ((inner / "none", 0), (inner, 0o555), (inner.parent, 0o555)):
            path.chmod(mode)
        assert script("Leave nothing behind", where, user).wait(30) == 0
        assert not (where / "place").exists()
    finally:
        subprocess.run(["chmod", "-R", "u+rwX", str(where)], check=False)
        shutil.rmtree(where)


@pytest.mark.parametrize("tmp", ["TMPDIR", "TEMP", "TMP"])
@pytest.mark.parametrize("pid", ["77\n", "", "..\n", "7*"])
def test_nothing_is_left_of_what_was_killed(where: Path, pid: str, tmp: str) -> None:
    """Its temporary directory, as where the runner's patience after a cancel ends before the program does; and none of another job's."""
    (where / "place/pid").write_text(pid)
    for number in (7, 77, 771):
        (where / f"tmp/torch-minify-{number}-x/checkout").mkdir(parents=True)
    assert script("Leave nothing behind", where, tmp=tmp).wait(30) == 0
    assert {path.name for path in (where / "tmp").iterdir()} == {
        "torch-minify-7-x",
        "torch-minify-771-x",
        *([] if pid == "77\n" else ["torch-minify-77-x"]),
    }
    assert not (where / "place").exists()


# --- the last answer


def answered(where: Path, github: Stub, body: str, outcome: str = "", may: str = "write", login: str = "asker", token: str = "t") -> int:
    """Run the step that answers what would stay without an answer, for a comment by `login`, who `may` so much; its exit status."""
    # as GitHub has it in an event for a member of an organization who keeps that private (actions/github-script#643)
    said = {"issue": {"number": 7}, "comment": {"id": 5, "body": body, "author_association": "CONTRIBUTOR", "user": {"login": login}}}
    (where / "event.json").write_text(json.dumps(said), encoding="utf-8")
    (where / "answer.sh").write_text(ANSWER["run"].replace("--retry 5 ", "--retry 0 "), encoding="utf-8")
    if may:
        github.answers["GET", "/repos/o/r/collaborators/asker/permission"] = (200, {"permission": may})
    told: dict[str, Any] = {f"github.event.{kind}.{key}": value for kind, held in said.items() for key, value in held.items()}
    told["github.event.comment.user.login"] = login
    told |= {"github.token": token, "inputs.name": "", "needs.gate.outputs.outcome": outcome, "github.event_name": "issue_comment"}
    environment = {name: str(told[value.strip("${} ")]) for name, value in ANSWER["env"].items()}
    environment |= {"GITHUB_API_URL": github.url, "GITHUB_REPOSITORY": "o/r", "GITHUB_RUN_ID": "77", "GITHUB_SERVER_URL": "https://x"}
    environment |= {"GITHUB_EVENT_PATH": str(where / "event.json"), "PATH": f"{where / 'bin'}{os.pathsep}{os.environ['PATH']}"}
    words = ["bash", "--noprofile", "--norc", "-e", "-o", "pipefail", str(where / "answer.sh")]
    return subprocess.run(words, env=environment, check=False, timeout=60).returncode


@pytest.mark.parametrize("before", ["Hello\n", "Hello\r\n\r\n", "   ", "\n "])
def test_who_asked_is_answered_where_their_command_is_set_in(where: Path, before: str) -> None:
    """Markdown takes up to three blanks before a paragraph for none, and so does the gate."""
    with Stub() as github:
        assert command_lines(f"{before}/minify") == ("",)
        assert answered(where, github, f"{before}/minify") == 0
        assert len(github.comments) == 1
        github.comments.clear()
        assert command_lines("Hello\n\n    /minify") == ()
        assert answered(where, github, "Hello\n\n    /minify") == 0
        assert github.comments == []


@pytest.mark.parametrize("end", ["", "\r\n" + "\u8a18" * 60_000], ids=["short", "long"])
def test_who_asked_is_answered_however_much_they_wrote(where: Path, end: str) -> None:
    """A comment has up to 65,536 characters, and a variable of Linux 131,072 bytes."""
    with Stub() as github:
        assert answered(where, github, f"Hello\n/minify{end}") == 0
        (made,) = github.comments
        assert made["body"].startswith("<!-- torch-minify:comment-5 run:77 -->\n\n### Not taken")
        # answered already, or no command
        github.comments.clear()
        assert answered(where, github, f"Hello\n/minify{end}", "requests") == 0
        assert answered(where, github, f"Hello /minify{end}") == 0
        assert answered(where, github, f"/minifying{end}") == 0
        assert github.comments == []


@pytest.mark.parametrize("may", ["write", "none"])
def test_who_asked_to_stop_is_answered(where: Path, may: str) -> None:
    """By then the gate knows that they may; what cancels runs says itself what became of it, where it can."""
    with Stub() as github:
        assert answered(where, github, "/minify stop", "stop", may) == 0
        (made,) = github.comments
        assert made["body"].startswith("<!-- torch-minify:comment-5 run:77 -->\n\n### Not stopped")
        made["user"]["login"] = "github-actions[bot]"
        assert answered(where, github, "/minify stop", "stop", may) == 0
        assert len(github.comments) == 1


@pytest.mark.parametrize(
    ("outcome", "may", "login"),
    [
        ("", "none", "asker"),
        ("", "read", "asker"),
        ("", "", "asker"),
        ("", "write", "asker[bot]"),
        ("", "write", ""),
        ("refused", "write", "asker"),
        ("nothing", "admin", "asker"),
    ],
)
def test_nobody_else_is_told(where: Path, outcome: str, may: str, login: str) -> None:
    with Stub() as github:
        assert answered(where, github, "/minify stop", outcome, may, login) == 0
        assert github.comments == []


def test_each_job_that_answers_has_one_behind_it() -> None:
    """Whichever of them fails, or cannot begin, the last job begins."""
    jobs = workflow("minify.yml")["jobs"]
    answering = {name for name, job in jobs.items() if any("light" in step.get("uses", "") for step in job["steps"])} - {"gate"}
    assert answering == {"report", "stop"}
    assert answering <= set(jobs["unanswered"]["needs"])
    assert all(f"needs.{name}.result" in jobs["unanswered"]["if"] for name in answering)


def test_no_command_line_holds_the_token(where: Path) -> None:
    """Everybody on a machine sees them. It is still sent: without it GitHub lists no comment of a private repository."""
    curl = shutil.which("curl")
    (where / "bin/curl").write_text(f'#!/bin/bash\nprintf "%s\\n" "$@" >> "{where}/words"\nexec {curl} "$@"\n', encoding="utf-8")
    (where / "bin/curl").chmod(0o755)
    with Stub() as github:
        assert answered(where, github, "/minify", token="ghs_secret") == 0
        assert {headers["Authorization"] for _, _, headers in github.seen} == {"Bearer ghs_secret"}
    words = (where / "words").read_text()
    assert "issues/comments" in words
    assert "ghs_secret" not in words


def test_a_comment_that_cannot_be_edited_keeps_no_answer_from_others(where: Path) -> None:
    with Stub() as github:
        for number in (1, 2):
            body = f"<!-- torch-minify:comment-{number} run:77 -->\n\n### Queued\n\nWaiting."
            made = {"id": number, "body": body, "user": {"login": "github-actions[bot]", "id": 1}, "created_at": NOW}
            github.comments.append(made)
        github.faults = [Fault(403, verb="PATCH")]
        assert answered(where, github, "/minify", "requests") != 0
        assert [comment["body"].split("\n")[2] for comment in github.comments] == ["### Queued", "### Ended without a result"]


@pytest.mark.parametrize("odd", [{"body": None}, {"body": ""}, {"body": "\r\n"}, {"user": None}])
def test_an_odd_comment_keeps_no_answer_from_others(where: Path, odd: dict[str, Any]) -> None:
    """GitHub's description of its API lets a comment have no body, and no author."""
    with Stub() as github:
        ours = {"id": 1, "user": {"login": "github-actions[bot]", "id": 1}, "created_at": NOW}
        github.comments += [ours | odd, ours | {"id": 2, "body": "<!-- torch-minify:comment-2 run:77 -->\n\n### Queued"}]
        assert answered(where, github, "Hello", "requests") == 0
        assert github.comments[1]["body"].split("\n")[2] == "### Ended without a result"


def test_a_list_of_comments_that_cannot_be_read_is_a_failure(where: Path) -> None:
    with Stub() as github:
        github.faults = [Fault(200, body='[{"id": 1, "bo', verb="GET")]
        assert answered(where, github, "Hello", "requests") != 0
