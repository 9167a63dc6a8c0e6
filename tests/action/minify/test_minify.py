"""The engine is replaced by a small program: what is asked of it, what it can see, what becomes of what it leaves."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot import cli
from bot.action.minify import minify
from bot.action.minify.isolation import Account
from bot.action.minify.minify import Place, RequestError, arguments, read
from bot.machine import gpu
from bot.models.failure import Stage
from bot.models.request import Answer, CodeOrigin, Request, RequestOptions
from bot.models.result import Result

ANSWER = Answer(repository="o/r", issue=1, marker="m")
CODE = CodeOrigin(where="comment", author="a", trusted=True)
# Stands for `python -I -m bot run ...`: leaves what it saw, and a result.
ENGINE = """
import json, os, sys
out = next(word.split("=", 1)[1] for word in sys.argv if word.startswith("--out="))
with open(os.path.join(out, "seen.json"), "w") as file:
    json.dump({"argv": sys.argv[1:], "env": dict(os.environ), "cwd": os.listdir("."), "stdin": sys.stdin.read()}, file)
script = sys.argv[-1]
if os.path.exists(script):
    with open(script) as file, open(os.path.join(out, "script.txt"), "w") as copy:
        copy.write(file.read())
os.symlink("/etc/passwd", os.path.join(out, "exported_program.pt2"))
with open(os.path.join(out, "result.json"), "w") as file:
    file.write(os.environ.get("TORCH_RESULT", '{"schema": 1, "status": "flaky"}'))
sys.exit(5)
"""


def request(**more: Any) -> Request:
    given: dict[str, Any] = {
        "id": "a",
        "script": "print(1)\n",
        "repository": "o/r",
        "code": CODE,
        "asked_by": "a",
        "answer": ANSWER,
        **more,
    }
    return Request(**given)


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    path = tmp_path / "checkout"
    path.mkdir()
    (path / "model.py").write_text("")
    return path


@pytest.fixture
def engine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In place of this interpreter one that knows no `bot`, but the program above."""
    fake = tmp_path / "engine"
    fake.write_text(f"#!{sys.executable}\nimport sys\nsys.argv = sys.argv[3:]\n{ENGINE}")
    fake.chmod(0o755)
    monkeypatch.setattr(minify.sys, "executable", str(fake))
    monkeypatch.setattr(minify, "account", Account)


def test_the_options_of_a_request_are_those_of_run() -> None:
    options = RequestOptions(stage=Stage.AOT, accuracy="strict", device="cpu", budget=60)
    words = arguments(request(options=options), Place(Path(), jobs=2), script=Path("p.py"), python="py", out=Path("out"))
    parsed = cli.parser().parse_args(words)
    assert (parsed.stage, parsed.accuracy, parsed.device, parsed.budget, parsed.jobs) == ("aot", "strict", "cpu", 60, 2)
    assert (parsed.script, parsed.command, parsed.python, parsed.out) == (Path("p.py"), None, "py", Path("out"))


@pytest.mark.parametrize(("asked", "expected"), [(9000.0, 9000.0), (None, 90.0)])
def test_the_budget_of_the_workflow_is_for_a_request_that_names_none(asked: float | None, expected: float) -> None:
    words = arguments(request(options=RequestOptions(budget=asked)), Place(Path(), budget=90), script=Path("p"), python="py", out=Path("o"))
    assert cli.parser().parse_args(words).budget == expected


@given(st.text(min_size=1))
def test_a_command_stays_one_word(command: str) -> None:
    words = arguments(request(script=None, command=command), Place(Path()), script=Path("p"), python="py", out=Path("o"))
    parsed = cli.parser().parse_args(words)
    assert parsed.command == command
    assert parsed.script is None


@pytest.mark.parametrize(("text", "index"), [("", 0), ("{}", 0), ("[]", 0), ("[1]", 0)])
def test_a_file_that_is_none(tmp_path: Path, text: str, index: int) -> None:
    file = tmp_path / "request.json"
    file.write_text(text)
    with pytest.raises(RequestError):
        read(file, index)


def test_the_request_with_an_index(tmp_path: Path) -> None:
    file = tmp_path / "request.json"
    file.write_text(json.dumps([request(id=name).model_dump(mode="json", by_alias=True) for name in "ab"]))
    assert read(file, 1).id == "b"
    for index in (-1, 2):
        with pytest.raises(RequestError, match="2 requests"):
            read(file, index)


@pytest.mark.usefixtures("engine")
def test_the_engine_sees_its_program_and_no_token(tmp_path: Path, checkout: Path) -> None:
    environ = {
        "PATH": os.environ["PATH"],
        "GITHUB_TOKEN": "secret",
        "INPUT_GITHUB-TOKEN": "secret",
        "HTTPS_PROXY": "http://user:secret@proxy",
    }
    out = tmp_path / "out"
    assert minify.minify(request(script="x = 'é'\r\n"), Place(checkout), out, environ) == 5
    seen = json.loads((out / "seen.json").read_text())
    assert "secret" not in json.dumps(seen)
    assert seen["cwd"] == ["model.py"]
    assert seen["stdin"] == ""
    assert not seen["env"]["HOME"].startswith(str(Path.home()))
    assert (out / "script.txt").read_text() == "x = 'é'\n"
    # a link would be followed by who uploads the directory
    assert not (out / "exported_program.pt2").exists()


@pytest.mark.usefixtures("engine")
def test_the_setup_runs_in_the_checkout_before_it(tmp_path: Path, checkout: Path) -> None:
    environ = {"PATH": os.environ["PATH"], "GITHUB_TOKEN": "secret"}
    setup = "echo built > built.txt\nprintenv GITHUB_TOKEN || true"
    out = tmp_path / "out"
    assert minify.minify(request(), Place(checkout, setup=setup), out, environ) == 5
    assert sorted(json.loads((out / "seen.json").read_text())["cwd"]) == ["built.txt", "model.py"]


@pytest.mark.usefixtures("engine")
def test_a_setup_that_fails_is_no_verdict_on_the_program(tmp_path: Path, checkout: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "out"
    assert minify.minify(request(), Place(checkout, setup="echo before; false; echo after"), out, dict(os.environ)) == 1
    result = Result.model_validate_json((out / "result.json").read_text())
    assert result.status == "error"
    assert result.machine_fault == "the setup commands failed with exit status 1; the log of the run shows what they printed"
    said = capsys.readouterr().out
    assert "before" in said
    assert "after" not in said
    assert not (out / "seen.json").exists()


@pytest.mark.usefixtures("engine")
def test_an_engine_that_leaves_nothing(tmp_path: Path, checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(minify.sys, "executable", "/bin/false")
    out = tmp_path / "out"
    assert minify.minify(request(), Place(checkout), out, dict(os.environ)) == 1
    assert "left no result" in str(Result.model_validate_json((out / "result.json").read_text()).reason)


@pytest.mark.usefixtures("engine")
def test_without_the_gpu_it_says_so_before_anything_runs(tmp_path: Path, checkout: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gpu, "unseen", lambda: "no GPU is visible: for a reason")
    out = tmp_path / "out"
    assert minify.minify(request(), Place(checkout, device="cuda", setup="touch ran"), out, dict(os.environ)) == 1
    assert Result.model_validate_json((out / "result.json").read_text()).reason == "--device cuda: no GPU is visible: for a reason"
    assert not (checkout / "ran").exists()


@pytest.mark.usefixtures("engine")
def test_a_version_that_is_none(tmp_path: Path, checkout: Path) -> None:
    out = tmp_path / "out"
    options = RequestOptions(torch_version="2.13.0 --index-url=http://x")
    assert minify.minify(request(options=options), Place(checkout), out, dict(os.environ)) == 1
    assert "is no torch version" in (out / "result.json").read_text()
