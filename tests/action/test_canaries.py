"""One request with a planted secret of each sort in all that it touches: no file, line or word that leaves holds any of them."""

from __future__ import annotations

import io
import os
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from bot.action import redaction, request_file
from bot.action.auto import shower
from bot.action.console import Console
from bot.action.gate import ci_event, comment_event
from bot.action.minify.minify import RunnerConfig, minify
from bot.action.report import post
from bot.action.secret_forms import SECRET
from bot.action.settings import Settings
from bot.models.failure import Kind, Phase, Signature
from bot.models.request import Request
from bot.models.result import Evidence, Files, Result, VerificationFacts
from tests.action import canaries
from tests.action.gate import memory
from tests.action.report import reports

# Stands for the engine: leaves secrets in every file that it writes, and prints them.
ENGINE = """
import os, shutil, sys
source, out = os.environ["TORCH_CANARIES"], next(word.split("=", 1)[1] for word in sys.argv if word.startswith("--out="))
shutil.copytree(source, out, dirs_exist_ok=True)
text = open(os.path.join(source, "original", "log.txt")).read()
print(text)
print(repr(text))
print("x" * 3990 + text.replace(chr(10), " "))
sys.stderr.write(text)
sys.exit(0)
"""


@pytest.fixture
def machine() -> Iterator[None]:
    """As the entry point does it."""
    redaction.hide(redaction.words_of_machine(canaries.ENVIRONMENT, canaries.HOSTNAME))
    yield
    redaction.hide({})


def archive(text: str) -> bytes:
    """An exported program, of which a frame says where it comes from."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as opened:
        opened.writestr("exported_program/models/model.json", f'{{"stack_trace": "{text}"}}')
        opened.writestr("exported_program/data/weights/0", b"\0" * 64)
    return buffer.getvalue()


def leave(where: Path) -> None:
    """What an engine writes, with the secrets in all of it."""
    everything = canaries.ALL
    held = Signature(kind=Kind.EXCEPTION, phase=Phase.DYNAMO, exception=("RuntimeError",), message=everything, frame=everything)
    result = Result(
        status="minimized",
        reason=everything,
        machine_fault=everything,
        signature=held,
        culprit=everything,
        verification=VerificationFacts(runs=3, same=3, eager="passes"),
        sandbox=(everything,),
        versions={everything: everything},
        evidence=Evidence(passes_if=everything, nearness=everything, other_failures=(everything,)),
        files=Files(repro="repro.py"),
    )
    frames = "".join(
        f'  File "{path}", line 1, in f\n    x = "{token}"\n' for path, _ in canaries.PATHS.values() for token in canaries.TOKENS.values()
    )
    (where / "original" / "pytorch").mkdir(parents=True)
    texts = {
        "result.json": result.to_json(),
        "repro.py": f"'''\n{everything}\n'''\nx = {everything!r}\n",
        "exported_program.txt": everything,
        "original/log.txt": f"{everything}\nTraceback (most recent call last):\n{frames}RuntimeError: {everything}\n",
        "original/workers.log": everything,
        "original/pytorch/dump.py": f"os.environ['TORCH_X'] = {everything!r}\n",
        "reduction.jsonl": "".join(f"{row}\n" for row in [held.model_dump_json(), result.model_dump_json(by_alias=True)]),
        "notes": everything,
    }
    for name, text in texts.items():
        (where / name).write_text(text, encoding="utf-8")
    (where / "exported_program.pt2").write_bytes(archive("/home/carol/model.py"))


def read(where: Path) -> dict[str, str]:
    return {str(path.relative_to(where)): path.read_bytes().decode("latin-1") for path in where.rglob("*") if path.is_file()}


def test_no_secret_leaves(machine: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    left, out = tmp_path / "left", tmp_path / "result-0"
    leave(left)
    (tmp_path / "engine.py").write_text(ENGINE)
    shown: dict[str, str] = {}

    # the request, and what the gate says of it
    log = canaries.ALL.replace("\n", " ")
    tests = (f"tests/test_x.py::test[{canaries.TOKENS['Hugging Face']}]",)
    asked = reports.request(id="comment-42-1", script=f"'''{canaries.ALL}'''", expected=log, tests=tests * 2, asked_by=log)
    hub = memory.Memory()
    live: list[str] = []

    # the machine that minifies: its log, its live line, its files
    streams = Console(io.StringIO(), io.StringIO())
    config = RunnerConfig(
        tmp_path, engine=(sys.executable, "-I", str(tmp_path / "engine.py")), environ={**os.environ, "TORCH_CANARIES": str(left)}
    )
    assert minify(asked, config, out, streams, live.append) == 0
    assert isinstance(streams.stdout, io.StringIO)
    assert isinstance(streams.stderr, io.StringIO)
    shown["log of the job"] = streams.stdout.getvalue() + streams.stderr.getvalue()
    assert "the end" in shown["log of the job"]
    show = shower(hub, [asked.model_copy(update={"answer": asked.answer.model_copy(update={"repository": memory.REPO})})], 0, "https://x/1")
    for line in [*live[-20:], *canaries.TOKENS.values(), log]:
        show(line)
        shown[f"live line {len(shown)}"] = hub.comments(memory.REPO, 7)[0].body
    files = read(out)
    assert {"result.json", "repro.py", "original/log.txt", "reduction.jsonl", "original/pytorch/dump.py"} <= files.keys()
    assert "exported_program.pt2" not in files, "an archive with a personal path in it"
    shown |= {f"file {name}": text for name, text in files.items()}

    # the report of it; and of the files as they were, as though nothing had been taken out before
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(tmp_path / "summary.md"))
    settings = Settings().model_copy(update={"repository": "owner/name", "run_id": 7, "in_actions": True})
    for name, folder in {"report": out, "report of the raw files": left}.items():
        sections = post.collect([asked], {0: post.result_dir.Folder(folder)}, settings, None, None)
        assert sections[0].altered or folder == out
        comments = post.pending_comments([asked], sections, settings.run_url)
        page = Console(io.StringIO(), io.StringIO(), True, None, tmp_path / "summary.md")
        api = memory.Memory(silent=True)  # what cannot be posted is left in a file
        post.deliver(comments, api, settings, page, tmp_path / "unposted")
        assert isinstance(page.stdout, io.StringIO)
        shown[f"{name}: annotations"] = page.stdout.getvalue()
        shown[f"{name}: comment"] = (tmp_path / "unposted" / "comment-1.md").read_text()
        shown[f"{name}: summary"] = (tmp_path / "summary.md").read_text()
        assert "Minimized" in shown[f"{name}: comment"]
        assert SECRET in shown[f"{name}: comment"]

    assert {name: found for name, text in shown.items() if (found := canaries.left_in(text))} == {}


def test_no_secret_of_a_log_of_ci_is_repeated(machine: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """The failing test printed them, and its message holds them."""
    api = memory.Memory()
    api.add_pull()
    run = api.add_run(20, "pytest")
    said = canaries.ALL.replace("\n", " ")
    api.logs[200] = api.logs[200].replace("Invalid call to", f"{said} Invalid call to")
    decided = ci_event.RedRun(memory.finished(run), memory.settings(), api).outcome()
    shown = [decided.note, *(comment.body for comment in api.comments(memory.REPO, 7))]
    api.runs[21] = run.model_copy(update={"id": 21, "head_branch": "main", "event": "push"})
    api.run_jobs[21], api.logs[210], api.pulls = [api.run_jobs[20][0].model_copy(update={"id": 210})], api.logs[200], {}
    decided = ci_event.RedRun(memory.finished(api.runs[21]), memory.settings(), api).outcome()
    shown += [decided.note, *(text for issue in api.issues.values() for text in (issue.title, issue.body))]
    shown += [comment.body for comments in api.written.values() for comment in comments]
    bad = f"/minify --stge {said}"
    comment_event.Conversation(memory.asked(bad), memory.settings(), api).outcome()
    shown += [comment.body for comments in api.written.values() for comment in comments]
    assert api.issues
    assert len(shown) > 5
    assert [canaries.left_in(text) for text in shown] == [[]] * len(shown)


def test_requests_say_what_ci_showed_without_its_secrets(machine: None) -> None:
    asked: list[Request] = []
    api = memory.Memory()
    api.add_pull()
    run = api.add_run(20, "pytest")
    api.logs[200] = api.logs[200].replace("Invalid call to", f"{canaries.TOKENS['GitHub, classic']} Invalid call to")
    asked += ci_event.RedRun(memory.finished(run), memory.settings(), api).outcome().requests
    assert asked
    # all of it: the file is an artifact, which whoever reads the repository may have
    assert not canaries.left_in(request_file.to_json(asked))
    assert any(request.shown is not None and SECRET in request.shown.message for request in asked)
