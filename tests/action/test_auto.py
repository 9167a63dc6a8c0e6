from __future__ import annotations

import io
import os
import shutil
import signal
import threading
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr

from bot.action.__main__ import Edge
from bot.action.auto import Auto, LiveLine, shower
from bot.action.console import Console, JobOutcome
from bot.action.gate.gate import decide
from bot.action.github.resources import Artifact, Reaction
from bot.action.github.transport import GitHubError
from bot.action.minify import checkout
from bot.action.minify.minify import RunnerConfig
from bot.action.request_file import KEY_FILE
from bot.models.request import Answer, CodeOrigin, Request
from bot.models.result import Result
from tests.action.gate import memory
from tests.action.gate.memory import BLOCK, BOT, REPO, Memory, asked

RESULTS = Path(__file__).resolve().parents[1] / "fixtures" / "results"
REQUESTS = [
    Request(
        id=f"comment-1-{index}",
        script="import torch",
        repository="o/r",
        asked_by="a",
        code=CodeOrigin(where="comment", author="a", trusted=True),
        answer=Answer(repository="o/r", issue=3, marker="<!-- m -->", comment=8),
    )
    for index in range(2)
]


class Hub:
    """Takes comments, or does not, as `upsert_comment` of the client does. Checked against bot/action/github/client.py there."""

    def __init__(self, *, silent: bool = False) -> None:
        self.silent, self.bodies, self.asked = silent, list[str](), 0

    def upsert_comment(self, repository: str, issue: int, marker: str, body: str, comment: int | None = None) -> Any:
        self.asked += 1
        if self.silent:
            raise GitHubError("no", 403)
        assert (repository, issue, marker, comment) == ("o/r", 3, "<!-- m -->", 8)
        self.bodies.append(body)


def test_each_edit_shows_the_last_line_and_waits_between_them() -> None:
    shown: list[str] = []
    waits: list[float] = []
    printed = [["a", "b"], [], ["c", " \n"], ["d"]]

    def wait(seconds: float) -> bool:
        for line in printed[len(waits)]:
            live.watch(line)
        waits.append(seconds)
        return len(waits) == len(printed)

    live = LiveLine(shown.append, 30.0, wait)
    with live:
        pass
    # what was printed last is in the report, which follows
    assert shown == ["", "b", "c"]
    assert waits == [30.0] * 4


def test_the_end_of_the_work_ends_the_wait() -> None:
    shown: list[str] = []
    with LiveLine(shown.append, 3600.0):
        pass
    assert shown == [""]


def test_half_a_minute_lies_between_two_edits() -> None:
    assert Edge().edit_interval == 30


def test_what_is_shown_is_text() -> None:
    hub = Hub()
    shower(hub, REQUESTS, 1, "https://x/1")("[1 s] reducing @everyone `code` <!-- m -->\u202e <b>")  # type: ignore[arg-type]
    (body,) = hub.bodies
    assert "2 of 2" in body
    # a code span mentions nobody and holds no HTML
    assert "\n\n``[1 s] reducing @everyone `code` <!-- m -->\\u202e <b>``\n\n" in body


def test_a_look_at_the_set_up_is_nothing_that_is_minimized() -> None:
    hub = Hub()
    look = REQUESTS[0].model_copy(update={"script": None, "doctor": ("ok      image: ours",)})
    shower(hub, [look], 0, "https://x/1")("line")  # type: ignore[arg-type]
    assert hub.bodies == []


def test_github_does_not_stop_the_work() -> None:
    hub = Hub(silent=True)
    shower(hub, REQUESTS, 0, "https://x/1")("line")  # type: ignore[arg-type]
    assert hub.asked == 1


def job(api: Any, where: Path, engine: tuple[str, ...] = ("false",), fetch: Any = None, **inputs: Any) -> tuple[Auto, io.StringIO]:
    out = io.StringIO()
    console = Console(out, io.StringIO(), output=where / "output")
    config = RunnerConfig(where, engine=engine, environ=dict(os.environ))
    given = memory.settings(mode="auto", result=where / "result", **inputs)
    return Auto(given, api, api, config, console, fetch, where / "unposted", 3600.0), out


def gone(*given: Any) -> None:
    raise checkout.FetchError("git fetch failed: gone")


def test_a_fork_is_refused_whatever_the_environment(tmp_path: Path) -> None:
    """There is one job, and it has begun: nobody can approve a fork's code any more."""
    api = Memory(protected={"forks"})
    api.add_pull(fork="contributor/models")
    event = asked(f"/minify\n{BLOCK}", pull=True)
    assert job(api, tmp_path, fork_environment="forks")[0].run(event).exit_status == 0
    (comment,) = [one for one in api.comments(REPO, 7) if one.user.login == BOT]
    assert "does not run code from forks" in comment.body
    assert "\nrefused\n" in (tmp_path / "output").read_text()
    # the gate as a job of its own lets it through
    assert decide(event, memory.settings(fork_environment="forks"), api).status == "requests"


def test_no_name_of_an_attached_file_is_a_command_to_the_runner(tmp_path: Path) -> None:
    """It is not a line of its own, but commands of the old form stand anywhere in one."""
    url = "https://github.com/user-attachments/files/1/a.zip"
    api = Memory(files={url: memory.zipped({"##[set-output name=outcome;]requests.txt": b"text"})})
    auto, out = job(api, tmp_path)
    replace(auto, console=replace(auto.console, in_actions=True)).run(asked("/minify", issue_body=url))
    assert "requests.txt" in out.getvalue()
    assert "##[" not in out.getvalue()


def test_from_the_comment_to_the_report(tmp_path: Path) -> None:
    api = Memory()
    fetched: list[tuple[Any, ...]] = []

    def fetch(*given: Any) -> None:
        fetched.append(given)
        given[3].mkdir()

    text = Result(status="not_reproduced", reason="it passes here").to_json().replace("\n", "")
    script = f"for word; do case $word in --out=*) echo '{text}' >${{word#--out=}}/result.json;; esac; done; exit 4"
    auto, out = job(api, tmp_path, ("sh", "-c", script, "sh"), fetch, token=SecretStr("t"))
    assert auto.run(asked(f"/minify\n{BLOCK}")).exit_status == 0
    assert [(given[:3], given[4]) for given in fetched] == [(("https://github.com", REPO, memory.MAIN), "t")]
    assert out.getvalue().startswith("requests ")
    comment, notice = [one for one in api.comments(REPO, 7) if one.user.login == BOT]
    assert "Done: Did not reproduce here." in notice.body
    assert "### Did not reproduce here" in comment.body


def test_a_commit_that_cannot_be_fetched_is_no_verdict_on_the_program(tmp_path: Path) -> None:
    api = Memory()

    def fetch(*given: Any) -> None:
        raise checkout.FetchError("git fetch failed: gone")

    assert job(api, tmp_path, fetch=fetch)[0].run(asked(f"/minify\n{BLOCK}")).exit_status == 1
    comment, _ = [one for one in api.comments(REPO, 7) if one.user.login == BOT]
    assert "git fetch failed: gone" in comment.body


@pytest.mark.parametrize("when", ["in the work", "in the report"])
def test_after_a_cancel_nothing_begins_and_all_is_reported(tmp_path: Path, when: str) -> None:
    """GitHub's runner sends SIGINT, SIGTERM after 7.5 seconds, and kills 2.5 seconds later (actions/runner, ProcessInvoker.cs)."""

    class Cancelled(Memory):
        def artifacts(self, repository: str, run: int) -> Sequence[Artifact]:
            # what a report asks for first
            os.kill(os.getpid(), signal.SIGINT)
            return []

    api = Cancelled() if when == "in the report" else Memory()
    kill = "" if when == "in the report" else f"kill -INT {os.getpid()}; exec sleep 60"
    auto, _ = job(api, tmp_path, ("sh", "-c", f"echo x >>{tmp_path}/begun; {kill}"), lambda *given: given[3].mkdir())
    auto.run(asked(f"/minify\n/minify --device cpu\n{BLOCK}"))
    comment = api.comments(REPO, 7)[0]
    assert comment.body.count("Could not be minimized") == 2
    assert len((tmp_path / "begun").read_text().split()) == (2 if when == "in the report" else 1)
    assert ("the job was ended before it began" in comment.body) == (when == "in the work")


def test_a_cancel_right_after_the_first_comment_is_reported(tmp_path: Path) -> None:
    class Cancelled(Memory):
        def react(self, repository: str, comment: int, reaction: Reaction) -> None:
            if reaction == "eyes":  # while it is decided what there is to do
                os.kill(os.getpid(), signal.SIGINT)

    api = Cancelled()
    job(api, tmp_path, fetch=lambda *given: given[3].mkdir())[0].run(asked(f"/minify\n{BLOCK}"))
    assert "the job was ended before it began" in api.comments(REPO, 7)[0].body


def test_what_an_earlier_job_left_is_not_the_result_of_this_one(tmp_path: Path) -> None:
    """On a machine that is kept nobody empties the workspace."""
    shutil.copytree(RESULTS / "lowering", tmp_path / "result" / "0")
    (tmp_path / "result" / "0" / KEY_FILE).write_text("that of an earlier request\n")
    for fetch in (lambda *given: given[3].mkdir(), gone):
        api = Memory()
        job(api, tmp_path, ("sh", "-c", "exit 7"), fetch)[0].run(asked(f"/minify\n{BLOCK}"))
        body = api.comments(REPO, 7)[0].body
        assert "### Could not be minimized" in body
        assert "class Repro" not in body
        assert "LoweringException" not in body


@pytest.mark.parametrize("name", ["result", "result-0", "out-0", "gpu-1"])
def test_the_directory_of_the_results_may_have_any_name(tmp_path: Path, name: str) -> None:
    api = Memory()
    text = Result(status="not_reproduced", reason="it passes here").to_json().replace("\n", "")
    script = f"for word; do case $word in --out=*) echo '{text}' >${{word#--out=}}/result.json;; esac; done; exit 4"
    auto, _ = job(api, tmp_path, ("sh", "-c", script, "sh"), lambda *given: given[3].mkdir())
    replace(auto, settings=auto.settings.model_copy(update={"result": tmp_path / name})).run(asked(f"/minify\n{BLOCK}"))
    assert "### Did not reproduce here" in api.comments(REPO, 7)[0].body


def test_a_cancel_does_not_wait_for_a_commit(tmp_path: Path) -> None:
    """A large repository takes minutes to be fetched."""
    api, slow = Memory(), threading.Event()

    def fetch(*given: Any) -> None:
        os.kill(os.getpid(), signal.SIGTERM)
        slow.wait(60)

    began = time.monotonic()
    auto, _ = job(api, tmp_path, fetch=fetch)
    auto.run(asked(f"/minify\n{BLOCK}"))
    taken = time.monotonic() - began
    slow.set()
    assert taken < 10
    assert "the job was ended before it began" in api.comments(REPO, 7)[0].body


def test_nothing_is_asked_for(tmp_path: Path) -> None:
    assert job(Memory(), tmp_path)[0].run(None) == JobOutcome()
    assert "\nnothing\n" in (tmp_path / "output").read_text()
