from __future__ import annotations

import json
import os
import re
import shutil
import sys
from collections.abc import Sequence
from datetime import datetime, timedelta, timezone
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import responses

from bot.action.comment import run_of_comment
from bot.action.console import Console
from bot.action.github.client import GitHub
from bot.action.github.resources import Artifact, Comment, Reaction, Step, User, WorkflowJob
from bot.action.github.transport import GitHubError, Transport
from bot.action.report import durable, post
from bot.action.report.render.rendering import COMMENT_LIMIT, SUMMARY_LIMIT
from bot.action.report.render.text import size
from bot.action.report.result_dir import Folder
from bot.action.request_file import KEY_FILE, key
from bot.action.settings import Settings
from bot.cli import main as cli
from bot.models.report import Section
from bot.models.request import Request
from tests.action.report import reports
from tests.action.test_archives import beyond_all_files

RECORDED = Path(__file__).resolve().parents[2] / "fixtures" / "results"
WHEN = datetime(2026, 11, 20, tzinfo=timezone.utc)
# What a comment says where a request has no result.
NO_RESULT = re.compile(r"There is no (?:usable )?result[.:]")
API = "https://api.github.com:443/repos/owner/name"


class Memory:
    """The part of GitHub that a report needs, in memory. `down` makes every call that writes fail.

    Checked against bot/action/github/client.py, which tests/action/github/ holds against GitHub's description of its API.
    """

    def __init__(self) -> None:
        self.held: dict[int, Comment] = {}
        self.notices: dict[str, str] = {}  # by marker
        self.reactions: list[tuple[int, str]] = []
        self.kept: dict[str, bytes] = {}
        self.listed: list[Artifact] = []
        self.down = False

    def upsert_comment(
        self, repository: str, issue: int, marker: str, body: str, comment: int | None = None, hint: int | None = None
    ) -> Comment:
        if self.down:
            raise GitHubError("POST: 503", 503)
        assert body.startswith(marker)
        if marker.startswith("<!-- torch-minify:done "):
            self.notices[marker] = body
            return Comment(id=99, body=body, created_at=WHEN)
        known = next((held.id for held in self.held.values() if held.body.startswith(marker)), len(self.held) + 1)
        url = f"https://github.com/{repository}/issues/{issue}#issuecomment-{known}"
        self.held[known] = Comment(id=known, body=body, created_at=WHEN, html_url=url, user=User(login="bot", id=1))
        return self.held[known]

    def own_comment(self, repository: str, issue: int, marker: str, hint: int | None = None) -> Comment | None:
        return next((held for held in self.held.values() if held.body.startswith(marker)), None)

    def react(self, repository: str, comment: int, reaction: Reaction) -> None:
        self.reactions.append((comment, reaction))

    def artifacts(self, repository: str, run: int) -> Sequence[Artifact]:
        if self.down:
            raise GitHubError("GET: 503", 503)
        return self.listed

    def put_file(self, repository: str, branch: str, path: str, content: bytes, message: str) -> str:
        if self.down:
            raise GitHubError("PUT: 503", 503)
        self.kept[f"{branch}:{path}"] = content
        return f"https://github.com/{repository}/blob/{branch}/{path}"

    def put_asset(self, repository: str, tag: str, name: str, content: bytes) -> str:
        self.kept[f"{tag}:{name}"] = content
        return f"https://github.com/{repository}/releases/download/{tag}/{name}"


@pytest.fixture
def api() -> Any:
    return Memory()


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    monkeypatch.chdir(tmp_path)
    given = {"GITHUB_REPOSITORY": "owner/name", "GITHUB_RUN_ID": "7", "GITHUB_STEP_SUMMARY": str(tmp_path / "summary.md")}
    for name, value in {**given, "GITHUB_ACTIONS": "true"}.items():
        monkeypatch.setenv(name, value)
    return Settings()


def asked(number: int = 2, **changes: Any) -> tuple[Request, ...]:
    return tuple(reports.request(id=f"comment-42-{index + 1}", **changes) for index in range(number))


def deliver(requests: Sequence[Request], names: Sequence[str], settings: Settings, api: Any) -> int:
    given = {index: Folder(RECORDED / name) for index, name in enumerate(names)}
    sections = post.collect(requests, given, settings, api, api)
    console = Console(sys.stdout, sys.stderr, settings.in_actions, settings.output, settings.summary)
    comments = post.pending_comments(requests, sections, settings.run_url)
    return console.publish(post.deliver(comments, api, settings, console, Path("torch-minify-unposted")))


def test_one_comment_for_an_event(api: Memory, settings: Settings, capsys: pytest.CaptureFixture[str]) -> None:
    assert deliver(asked(), ["lowering", "not_reproduced"], settings, api) == 0
    (comment,) = api.held.values()
    assert "### 1. Minimized" in comment.body
    assert "### 2. Did not reproduce here" in comment.body
    assert "actions/runs/7" in comment.body
    assert api.reactions == [(42, "rocket")]
    assert settings.summary is not None
    assert settings.summary.read_text(encoding="utf-8").startswith("<!-- torch-minify:comment-42")
    said = capsys.readouterr().out.splitlines()
    assert said[0].startswith("::notice title=Minimized::")
    assert said[-1].endswith("#issuecomment-1")
    url = "https://github.com/owner/name/issues/7#issuecomment-1"
    marker = "<!-- torch-minify:done comment-42 -->"
    assert api.notices == {marker: f"{marker}\nDone: Minimized, Did not reproduce here. [The result]({url}) is above."}


def test_again_is_an_edit(api: Memory, settings: Settings) -> None:
    for names in (["lowering"], ["machine_fault"]):
        deliver(asked(1), names, settings, api)
    (comment,) = api.held.values()
    assert "### Could not be minimized" in comment.body
    assert api.reactions == [(42, "rocket"), (42, "confused")]
    assert len(api.notices) == 1
    assert run_of_comment(*api.notices) is None


def test_nobody_is_told_of_what_nobody_asked_for(api: Memory, settings: Settings) -> None:
    answer = reports.request().answer.model_copy(update={"trigger": None})
    deliver(asked(1, answer=answer), ["lowering"], settings, api)
    assert api.held
    assert not api.notices


def test_a_comment_for_each_issue(api: Memory, settings: Settings) -> None:
    """A red run of the default branch has an issue for each signature."""
    requests = tuple(
        request.model_copy(update={"answer": request.answer.model_copy(update={"issue": 7 + index, "trigger": None})})
        for index, request in enumerate(asked())
    )
    sections = post.collect(requests, {}, settings, None, None)
    assert [comment.answer.issue for comment in post.pending_comments(requests, sections, None)] == [7, 8]


@pytest.mark.parametrize("limit", ["MOST_TEXTS", "LONGEST_READING"])
def test_what_would_take_too_long_to_read_is_left_out_and_said(
    api: Memory, settings: Settings, monkeypatch: pytest.MonkeyPatch, limit: str
) -> None:
    """The job ends after a quarter of an hour, and then nothing at all is posted."""
    monkeypatch.setattr(post, limit, 0)
    assert deliver(asked(), ["lowering", "not_reproduced"], settings, api) == 0
    (comment,) = api.held.values()
    assert "### 1. Minimized" in comment.body
    assert "its result is there, but was not read here: those before it are very large" in comment.body
    assert "### 2. Did not reproduce here" not in comment.body


def test_what_cannot_be_posted_is_kept_and_said(api: Memory, settings: Settings, caplog: pytest.LogCaptureFixture, tmp_path: Path) -> None:
    api.down = True
    assert deliver(asked(1), ["lowering"], settings, api) == 8
    body = (tmp_path / "torch-minify-unposted" / "comment-1.md").read_text(encoding="utf-8")
    assert "### Minimized" in body
    assert settings.summary is not None
    assert settings.summary.read_text(encoding="utf-8") == body + "\n"
    assert "gh run download 7 --repo owner/name --name torch-minify-unposted" in caplog.text
    assert "gh issue comment 7 --repo owner/name --body-file comment-1.md" in caplog.text
    assert api.reactions == []


def test_what_cannot_be_posted_is_kept_behind_no_link(api: Memory, settings: Settings, tmp_path: Path) -> None:
    """A commit that was checked out into the workspace may hold one."""
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "torch-minify-unposted").symlink_to(tmp_path / "elsewhere")
    api.down = True
    assert deliver(asked(1), ["lowering"], settings, api) == 8
    assert list((tmp_path / "elsewhere").iterdir()) == []
    assert (tmp_path / "torch-minify-unposted" / "comment-1.md").is_file()


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
def test_what_cannot_be_posted_belongs_to_the_runner(api: Memory, settings: Settings, tmp_path: Path) -> None:
    """In the container of the action we are root, and a machine that is kept removes it under its own account."""
    os.chown(tmp_path, 4321, 4321)
    api.down = True
    deliver(asked(1), ["lowering"], settings, api)
    folder = tmp_path / "torch-minify-unposted"
    assert [path.stat().st_uid for path in (folder, *folder.iterdir())] == [4321, 4321]


def test_a_request_cannot_name_another_repository(api: Memory, settings: Settings) -> None:
    requests = tuple(
        request.model_copy(update={"answer": request.answer.model_copy(update={"repository": "other/name"})}) for request in asked(1)
    )
    assert deliver(requests, ["lowering"], settings, api) == 8
    assert not api.held
    # but what the gate is known to have written names it as it was called then
    assert deliver(requests, ["lowering"], settings.model_copy(update={"request_sha256": "0" * 64}), api) == 0
    assert [comment.html_url for comment in api.held.values()] == ["https://github.com/owner/name/issues/7#issuecomment-1"]


def test_a_request_without_an_issue_is_in_the_summary(api: Memory, settings: Settings) -> None:
    requests = tuple(request.model_copy(update={"answer": request.answer.model_copy(update={"issue": None})}) for request in asked(1))
    assert deliver(requests, ["lowering"], settings, api) == 8
    assert not api.held


def test_artifacts_are_linked_with_their_expiry(api: Memory, settings: Settings) -> None:
    old, new = (
        Artifact(id=number, name="torch-minify-result-0", expires_at=datetime(2026, 12, number, tzinfo=timezone.utc)) for number in (1, 2)
    )
    other = Artifact(id=3, name="torch-minify-request", expires_at=WHEN)
    api.listed = [new, old, other]
    deliver(asked(1), ["lowering"], settings, api)
    (comment,) = api.held.values()
    assert "[the run's files](https://github.com/owner/name/actions/runs/7/artifacts/2) until `2026-12-02`" in comment.body


def test_what_an_earlier_attempt_found_is_no_answer_to_a_later_request(api: Memory, settings: Settings, tmp_path: Path) -> None:
    """A run that is repeated keeps the artifacts of its attempts: where the job that minifies is lost then, the older ones are found."""
    api.jobs = lambda *_: []  # type: ignore[attr-defined]
    api.listed = [Artifact(id=1, name="torch-minify-result-0", expires_at=WHEN)]
    (request,) = asked(1, commit="a" * 40)
    folder = tmp_path / "results" / "result-0"
    shutil.copytree(RECORDED / "lowering", folder)
    (folder / KEY_FILE).write_text(f"{key(request)}\n", encoding="utf-8")
    for commit, found in (("a" * 40, True), ("b" * 40, False)):
        (now,) = asked(1, commit=commit)
        console = Console(sys.stdout, sys.stderr, settings.in_actions, settings.output, settings.summary)
        store: Any = api
        assert post.report([now], [folder.parent], settings, store, store, console, Path("unposted")).exit_status == 0
        (comment,) = api.held.values()
        assert ("### Minimized" in comment.body, "/artifacts/1" in comment.body) == (found, found)
        assert bool(NO_RESULT.search(comment.body)) is not found
        assert f"Commit `{commit}`" in comment.body


def test_what_an_earlier_attempt_found_is_no_answer_of_a_later_one(api: Memory, settings: Settings, tmp_path: Path) -> None:
    """Where failed jobs are run again, what an artifact's name stands for is that of the attempt before, if this one left none."""
    (request,) = asked(1)
    folder = tmp_path / "results" / "result-0"
    shutil.copytree(RECORDED / "machine_fault", folder)
    (folder / KEY_FILE).write_text(f"{key(request)}\n", encoding="utf-8")
    store: Any = api
    hour = timedelta(hours=1)

    def posted(attempt: int, *jobs: WorkflowJob) -> str:
        store.jobs = lambda *_: jobs
        again = settings.model_copy(update={"run_attempt": attempt})
        console = Console(sys.stdout, sys.stderr, settings.in_actions, settings.output, settings.summary)
        assert post.report([request], [folder.parent], again, store, store, console, Path("unposted")).exit_status == 0
        (comment,) = api.held.values()
        return comment.body

    job = WorkflowJob(id=1, name="minify / minify 0", conclusion="failure", runner_name="gpu-1", steps=(Step(name="Minimize"),))
    lost = job.model_copy(update={"started_at": WHEN + hour})
    api.listed = [Artifact(id=1, name="torch-minify-result-0", created_at=WHEN, expires_at=WHEN)]
    assert not NO_RESULT.search(posted(1, lost))
    body = posted(2, lost)
    assert "its runner is lost" in body
    assert "/artifacts/1" not in body
    # a job that did not run again, one that ended well, whatever GitHub says of when it began, and what cannot be known
    kept, well = job.model_copy(update={"started_at": WHEN - hour}), lost.model_copy(update={"conclusion": "success"})
    for known in ((kept,), (well,), (job,), (), (lost, lost.model_copy(update={"id": 2}))):
        assert "/artifacts/1" in posted(2, *known)
    api.listed.insert(0, Artifact(id=2, name="torch-minify-result-0", created_at=WHEN + 2 * hour, expires_at=WHEN))
    assert "/artifacts/2" in posted(2, lost)


@pytest.mark.parametrize("doctor", [None, ("ok      image: x",)])
def test_a_result_that_could_not_be_downloaded_is_not_said_to_be_missing(
    api: Memory, settings: Settings, doctor: tuple[str, ...] | None
) -> None:
    """Where the job that reports fails to take it: the one that minified went well, and has handed it on."""
    request = asked(1)[0].model_copy(update={"doctor": doctor})
    store: Any = api
    write = store.upsert_comment
    # the client puts the marker before it
    store.upsert_comment = lambda at, issue, marker, body, **more: write(at, issue, marker, f"{marker}\n{body}", **more)
    store.jobs = lambda *_: (WorkflowJob(id=1, name="minify / minify 0", conclusion="success", runner_name="gpu-1"),)
    api.listed = [Artifact(id=1, name="torch-minify-result-0", created_at=WHEN, expires_at=WHEN)]
    console = Console(sys.stdout, sys.stderr, settings.in_actions, settings.output, settings.summary)
    assert post.report([request], [Path("results")], settings, store, store, console, Path("unposted")).exit_status == 0
    (comment,) = api.held.values()
    assert "its result is there, but could not be downloaded here" in comment.body
    assert "did not begin" not in comment.body
    assert "left no answer" not in comment.body
    assert ("/artifacts/1" in comment.body) is (doctor is None)


def test_a_report_that_runs_again_and_takes_nothing_leaves_what_it_said(api: Memory, settings: Settings, tmp_path: Path) -> None:
    """Who starts the job that reports again, may meet storage that is down: the result is there, and its comment as well."""
    store: Any = api
    store.jobs = lambda *_: (WorkflowJob(id=1, name="minify / minify 0", conclusion="success", runner_name="gpu-1"),)
    api.listed = [Artifact(id=1, name="torch-minify-result-0", created_at=WHEN, expires_at=WHEN)]
    console = Console(sys.stdout, sys.stderr, settings.in_actions, settings.output, settings.summary)
    shutil.copytree(RECORDED / "lowering", tmp_path / "results/result-0")
    for results, minimized in (("not-taken", False), ("results", True), ("not-taken", True)):
        assert post.report(asked(1), [tmp_path / results], settings, store, store, console, Path("unposted")).exit_status == 0
        (comment,) = api.held.values()
        assert ("### Minimized" in comment.body) is minimized


@pytest.mark.parametrize("where", ["branch", "release"])
def test_durable_files(api: Memory, settings: Settings, where: str) -> None:
    settings = settings.model_copy(update={"durable": where})
    deliver(asked(2), ["lowering", "machine_fault"], settings, api)
    between = "/" if where == "branch" else "-"
    prefix = f"torch-minify-results:7-comment-42-1{between}"
    assert set(api.kept) == {prefix + name for name in ("repro.py", "result.json", "exported_program.pt2")}
    assert api.kept[prefix + "exported_program.pt2"] == (RECORDED / "lowering" / "exported_program.pt2").read_bytes()
    assert json.loads(api.kept[prefix + "result.json"])["status"] == "minimized"
    (comment,) = api.held.values()
    assert ", and [for good](https://github.com/owner/name/" in comment.body
    assert "Not kept" not in comment.body


def test_nothing_is_kept_unless_asked_for(api: Memory, settings: Settings) -> None:
    deliver(asked(1), ["lowering"], settings, api)
    assert not api.kept


def test_what_cannot_be_kept_stops_nothing(api: Memory, settings: Settings, caplog: pytest.LogCaptureFixture) -> None:
    api.down = True
    part = post.collect(asked(1), {0: Folder(RECORDED / "lowering")}, settings.model_copy(update={"durable": "branch"}), None, api)[0]
    assert [stored.kept for stored in part.files] == [None, None, None]
    assert "is not kept" in caplog.text


@pytest.mark.parametrize(("status", "asked_for"), [(None, 1), (502, 1), (422, 6)])
def test_who_keeps_files_and_does_not_answer_is_not_waited_for_again(
    api: Memory, settings: Settings, status: int | None, asked_for: int
) -> None:
    """Each file would take minutes, and the comment comes after all of them: the job would be ended before that."""
    seen = []

    def put_file(*told: object) -> str:
        seen.append(told)
        raise GitHubError("PUT: no", status)

    api.put_file = put_file  # type: ignore[method-assign, assignment]
    deliver(asked(2), ["lowering", "lowering"], settings.model_copy(update={"durable": "branch"}), api)
    assert len(seen) == asked_for
    assert api.held[1].body.count("Minimized") == 2
    assert api.held[1].body.count("Not kept for good, which takes the secret `durable-token`: `PUT: no`") == 2


def test_of_what_would_not_be_kept_anyway_nothing_is_said(api: Memory, settings: Settings) -> None:
    def put_file(*_: object) -> str:
        raise GitHubError("PUT: no", 502)

    api.put_file = put_file  # type: ignore[method-assign, assignment]
    deliver(asked(2), ["lowering", "machine_fault"], settings.model_copy(update={"durable": "branch"}), api)
    assert api.held[1].body.count("Not kept for good") == 1


def test_an_id_cannot_climb_out_of_the_branch(api: Memory) -> None:
    folder = Folder(RECORDED / "lowering")
    part = post.result_dir.section(reports.request(id="../../x y"), folder)
    durable.keep(part, folder, "branch", api, "owner/name", 7)  # type: ignore[arg-type]
    assert api.kept
    assert all(path.startswith("torch-minify-results:7--x-y/") for path in api.kept)


def test_many_comments_fit_into_one_summary() -> None:
    long = Section(request=reports.request(), result=reports.result(), repro="x = 1\n" * 100_000)
    comment = SimpleNamespace(report=reports.report(long))
    text = post.summary_of([comment] * 7)  # type: ignore[list-item]
    assert size(text) <= SUMMARY_LIMIT
    assert text.count("<!-- torch-minify:") == 7


def test_a_result_that_cannot_be_read_keeps_no_other_back(
    api: Memory, settings: Settings, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever a program makes of its files: here two ways, one that is known, and one that is not."""
    store: Any = api
    console = Console(sys.stdout, sys.stderr, settings.in_actions, settings.output, settings.summary)
    for number, name in enumerate(["lowering", "not_reproduced"]):
        shutil.copytree(RECORDED / name, tmp_path / "results" / f"result-{number}")
    (tmp_path / "results" / "result-0" / "exported_program.pt2").write_bytes(beyond_all_files())
    post.report(asked(), [tmp_path / "results"], settings, store, store, console, Path("unposted"))
    assert "### 1. Minimized" in api.held[1].body
    assert "### 2. Did not reproduce here" in api.held[1].body
    fail = {"lowering": True}

    def log(folder: Folder) -> str:
        if fail.pop("lowering", False):
            raise AssertionError(folder)
        return ""

    monkeypatch.setattr(Folder, "log", log)
    post.report(asked(), [tmp_path / "results"], settings, store, store, console, Path("unposted"))
    assert "### 1. Could not be minimized" in api.held[1].body
    assert "### 2. Did not reproduce here" in api.held[1].body


# --- through the real client

ANSWERED = {"id": 5, "created_at": "2026-11-20T00:00:00Z", "html_url": "https://x", "user": {"login": "bot", "id": 1}}


def client() -> GitHub:
    return GitHub(Transport("t", sleep=lambda seconds: None), "bot")


@responses.activate
def test_the_gates_comment_is_found_and_edited(settings: Settings) -> None:
    queued = {**ANSWERED, "body": f"{reports.MARKER}\n### Queued"}
    forged = {**ANSWERED, "id": 4, "body": queued["body"], "user": {"login": "mallory", "id": 2}}
    responses.get(f"{API}/issues/comments/43", json={"message": "Not Found"}, status=404)
    responses.get(f"{API}/issues/7/comments", json=[forged, queued])
    responses.get(f"{API}/actions/runs/7/artifacts", json={"artifacts": []})
    responses.post(f"{API}/issues/comments/42/reactions", json={"id": 1}, status=201)
    edit = responses.patch(f"{API}/issues/comments/5", json=queued)
    assert deliver(asked(1), ["lowering"], settings, client()) == 0
    sent = json.loads(edit.calls[0].request.body or b"")["body"]
    assert "### Minimized" in sent
    assert len(sent) <= COMMENT_LIMIT


@responses.activate
@pytest.mark.parametrize("status", [403, 429, 502])
def test_on_giving_up_all_is_in_the_summary(settings: Settings, status: int) -> None:
    limited = {"x-ratelimit-remaining": "0"} if status == 403 else {}
    for path in ("issues/7/comments", "issues/comments/43"):
        responses.get(f"{API}/{path}", json={"message": "no"}, status=status, headers=limited)
    responses.get(f"{API}/actions/runs/7/artifacts", json={"message": "no"}, status=status, headers=limited)
    assert deliver(asked(1), ["lowering"], settings, client()) == 8
    assert {getattr(call.response, "status_code", None) for call in responses.calls} == {status}
    assert settings.summary is not None
    assert "### Minimized" in settings.summary.read_text(encoding="utf-8")


# --- the command line


@pytest.fixture
def request_file(tmp_path: Path) -> Path:
    path = tmp_path / "request.json"
    path.write_text(json.dumps([request.model_dump(mode="json", by_alias=True) for request in asked()]), encoding="utf-8")
    return path


def test_a_dry_run_posts_nothing(request_file: Path, settings: Settings, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    shutil.copytree(RECORDED / "lowering", tmp_path / "handed" / "torch-minify-result-1")
    assert cli(["report", "--result", str(tmp_path / "handed"), "--request", str(request_file), "--dry-run"]) == 0
    out = capsys.readouterr().out
    assert out.index("### 1. Could not be minimized") < out.index("### 2. Minimized")
    assert settings.summary is not None
    assert not settings.summary.exists()


@pytest.mark.parametrize("text", ["", "[]", "{}", '[{"id": "x"}]', "[" * 100_000])
def test_a_bad_request_file(tmp_path: Path, settings: Settings, capsys: pytest.CaptureFixture[str], text: str) -> None:
    (tmp_path / "request.json").write_text(text, encoding="utf-8")
    assert cli(["report", "--result", str(tmp_path), "--request", str(tmp_path / "request.json")]) == 2
    assert "request.json" in capsys.readouterr().err


def test_a_marker_that_is_none(request_file: Path, settings: Settings, capsys: pytest.CaptureFixture[str]) -> None:
    text = request_file.read_text(encoding="utf-8").replace("<!-- torch-minify:comment-42", "<!-- other")
    request_file.write_text(text, encoding="utf-8")
    assert cli(["report", "--result", "x", "--request", str(request_file), "--dry-run"]) == 2
    assert "not a marker" in capsys.readouterr().err
