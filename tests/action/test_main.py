"""The modes of the Action, in a process with the environment that the runner would give it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from bot.action import __main__
from bot.action.minify import minify
from bot.models.result import Result


def run(where: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    env = {"PATH": os.environ["PATH"], "GITHUB_ACTIONS": "true", "GITHUB_OUTPUT": str(where / "output")}
    env |= {name.replace("__", "-"): value for name, value in environment.items()}
    return subprocess.run(
        [sys.executable, "-I", "-m", "bot.action"], cwd=where, env=env, capture_output=True, text=True, timeout=60, check=False
    )


def test_an_input_that_is_none(tmp_path: Path) -> None:
    done = run(tmp_path, INPUT_MODE="dance")
    assert done.returncode == 2
    assert "input mode 'dance'" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_token_is_asked_for_before_anything_is_done(tmp_path: Path) -> None:
    done = run(tmp_path, INPUT_MODE="gate")
    assert done.returncode == 2
    assert done.stderr == "torch-minify: input github-token is empty: everything but the mode minify speaks with GitHub\n"


def test_the_token_is_not_printed(tmp_path: Path) -> None:
    done = run(tmp_path, INPUT_MODE="gate", INPUT_GITHUB__TOKEN="secret-token", INPUT_BUDGET="forever")
    assert done.returncode == 2
    assert "secret-token" not in done.stderr + done.stdout


def test_the_job_that_runs_programs_starts_again_without_a_token(tmp_path: Path) -> None:
    """The container of an action is given the runner's token; as the first process of the container it could be read from there."""
    (tmp_path / "request.json").write_text("[]")
    done = run(tmp_path, INPUT_MODE="minify", ACTIONS_RUNTIME_TOKEN="secret", GITHUB_TOKEN="secret")
    # it came as far as the request, so it did not start again for ever
    assert done.returncode == 2
    assert "holds 0 requests" in done.stderr


def test_modules_of_the_workspace_are_not_imported(tmp_path: Path) -> None:
    (tmp_path / "bot").mkdir()
    for name in ("bot/__init__.py", "json.py", "sitecustomize.py"):
        (tmp_path / name).write_text("raise SystemExit('the workspace was imported')")
    done = run(tmp_path, INPUT_MODE="gate", INPUT_GITHUB__TOKEN="t", GITHUB_EVENT_NAME="push", PYTHONPATH=str(tmp_path))
    assert done.returncode == 0, done.stderr
    assert "outcome<<" in (tmp_path / "output").read_text()
    assert "\nnothing\n" in (tmp_path / "output").read_text()


@pytest.mark.parametrize(("status", "expected"), [("minimized", 0), ("reproduced", 0), ("not_reproduced", 0), ("flaky", 0), ("error", 1)])
def test_an_answer_is_green_and_a_fault_is_red(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, status: str, expected: int) -> None:
    from bot.models.result import EXIT_STATUS

    def done(request: object, place: object, out: Path, environ: object) -> int:
        out.mkdir()
        (out / "result.json").write_text(Result(status=status).to_json())  # type: ignore[arg-type]
        return EXIT_STATUS[status]  # type: ignore[index]

    for name in list(os.environ):
        if name.startswith(("GITHUB_", "INPUT_", "ACTIONS_")) or "TOKEN" in name.upper():
            monkeypatch.delenv(name)
    monkeypatch.setattr(__main__, "_drop_secrets", lambda: None)
    monkeypatch.setattr(minify, "minify", done)
    monkeypatch.setattr(minify, "read", lambda file, index: None)
    monkeypatch.setenv("INPUT_MODE", "minify")
    monkeypatch.setenv("INPUT_RESULT", str(tmp_path / "result"))
    monkeypatch.setenv("GITHUB_OUTPUT", str(tmp_path / "output"))
    assert __main__.main() == expected
    assert f"\n{status}\n" in (tmp_path / "output").read_text()


def test_a_result_says_one_of_five_words_or_is_not_believed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from bot.action.settings import Settings

    (tmp_path / "result").mkdir()
    (tmp_path / "result/result.json").write_text(json.dumps({"schema": 1, "status": "x\nmatrix=[]"}))
    settings = Settings.model_construct(output=tmp_path / "output", result=tmp_path / "result")
    __main__._say_status(settings, 0)
    assert "matrix" not in (tmp_path / "output").read_text()
    assert "\nminimized\n" in (tmp_path / "output").read_text()
