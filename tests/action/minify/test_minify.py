"""The engine is replaced by a small program: what is asked of it, what it can see, what becomes of what it leaves."""

from __future__ import annotations

import io
import json
import os
import shlex
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bot import cli
from bot.action.console import Console
from bot.action.minify import minify
from bot.action.minify.minify import RunnerConfig, arguments, outcome_of
from bot.action.report.result_dir import Folder
from bot.action.request_file import KEY_FILE, key
from bot.machine import gpu
from bot.models.failure import Stage
from bot.models.request import Answer, CodeOrigin, Request, RequestOptions
from bot.models.result import EXIT_STATUS, Result, Status

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
def engine(tmp_path: Path) -> tuple[str, ...]:
    (tmp_path / "engine.py").write_text(ENGINE)
    return (sys.executable, "-I", str(tmp_path / "engine.py"))


@pytest.fixture
def runner(engine: tuple[str, ...]) -> dict[str, Any]:
    """Of a RunnerConfig, what is the same in most tests."""
    return {"engine": engine, "environ": dict(os.environ)}


@pytest.fixture
def console() -> Console:
    return Console(io.StringIO(), io.StringIO())


def printed(console: Console) -> str:
    assert isinstance(console.stdout, io.StringIO)
    return console.stdout.getvalue()


def test_the_options_of_a_request_are_those_of_run() -> None:
    options = RequestOptions(stage=Stage.AOT, accuracy="strict", device="cpu", budget=60)
    words = arguments(request(options=options), RunnerConfig(Path(), jobs=2), script=Path("p.py"), python="py", out=Path("out"))
    parsed = cli.parser().parse_args(words)
    assert (parsed.stage, parsed.accuracy, parsed.device, parsed.budget, parsed.jobs) == ("aot", "strict", "cpu", 60, 2)
    assert (parsed.script, parsed.command, parsed.python, parsed.out) == (Path("p.py"), None, "py", Path("out"))


def test_without_a_number_of_jobs_there_are_as_many_as_there_is_room_for() -> None:
    words = arguments(request(), RunnerConfig(Path(), jobs=0), script=Path("p.py"), python="py", out=Path("out"))
    assert cli.parser().parse_args(words).jobs is None


@pytest.mark.parametrize(("asked", "expected"), [(9000.0, 9000.0), (None, 90.0)])
def test_the_budget_of_the_workflow_is_for_a_request_that_names_none(asked: float | None, expected: float) -> None:
    words = arguments(
        request(options=RequestOptions(budget=asked)), RunnerConfig(Path(), budget=90), script=Path("p"), python="py", out=Path("o")
    )
    assert cli.parser().parse_args(words).budget == expected


@given(st.text(min_size=1))
def test_a_command_stays_one_word(command: str) -> None:
    words = arguments(request(script=None, command=command), RunnerConfig(Path()), script=Path("p"), python="py", out=Path("o"))
    parsed = cli.parser().parse_args(words)
    assert parsed.command == command
    assert parsed.script is None


def test_the_engine_sees_its_program_and_no_token(tmp_path: Path, checkout: Path, engine: tuple[str, ...], console: Console) -> None:
    environ = {
        "PATH": os.environ["PATH"],
        "GITHUB_TOKEN": "secret",
        "INPUT_GITHUB-TOKEN": "secret",
        "HTTPS_PROXY": "http://user:secret@proxy",
    }
    out = tmp_path / "out"
    assert minify.minify(request(script="x = 'é'\r\n"), RunnerConfig(checkout, engine=engine, environ=environ), out, console) == 5
    seen = json.loads((out / "seen.json").read_text())
    assert "secret" not in json.dumps(seen)
    assert seen["cwd"] == ["model.py"]
    assert seen["stdin"] == ""
    assert not seen["env"]["HOME"].startswith(str(Path.home()))
    assert (out / "script.txt").read_text(encoding="utf-8") == "x = 'é'\n"
    # a link would be followed by who uploads the directory
    assert not (out / "exported_program.pt2").exists()


@pytest.mark.parametrize("ours", [True, False])
def test_nothing_of_an_earlier_job_stays_for_this_one_s(tmp_path: Path, checkout: Path, console: Console, ours: bool) -> None:
    out = tmp_path / "out"
    (out / "original").mkdir(parents=True)
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "kept.txt").write_text("")
    (out / "exported_program.txt").symlink_to(outside)
    for name in ("repro.py", "original/log.txt", "mine.txt", *([KEY_FILE] if ours else [])):
        (out / name).write_text("of an earlier one")
    (out / "result.json").write_text(Result(status="minimized").to_json())
    minify.minify(request(), RunnerConfig(checkout, engine=("false",), environ=dict(os.environ)), out, console)
    assert Result.model_validate_json((out / "result.json").read_text()).status == "error"
    assert (out / KEY_FILE).read_text().strip() == key(request())
    # what is not known to be ours is left alone
    assert (out / "repro.py").exists() is (out / "original").exists() is not ours
    assert (out / "mine.txt").exists()
    assert (outside / "kept.txt").exists()


def test_however_deep_the_setup_digs_it_is_removed_and_the_job_goes_on(tmp_path: Path, checkout: Path, runner: dict[str, Any]) -> None:
    dig = "import os\nfor _ in range(3000): os.mkdir('d' * 200); os.chdir('d' * 200)"
    setup = f"echo $TMPDIR > {tmp_path}/where\ncd $TMPDIR\n{sys.executable} -c {shlex.quote(dig)}"
    quiet = Console(io.StringIO(), io.StringIO())
    assert minify.minify(request(), RunnerConfig(checkout, setup=setup, **runner), tmp_path / "out", quiet) == 5
    where = Path((tmp_path / "where").read_text().strip())
    assert where.name == "tmp"
    assert not where.parents[1].exists()
    # as the workflow's last step knows it
    assert where.parents[1].name.startswith(f"torch-minify-{os.getpid()}-")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make files of others")
def test_directories_that_are_made_belong_to_the_owner_of_the_workspace(tmp_path: Path, checkout: Path, console: Console) -> None:
    """Root's would break the next checkout on a runner that is kept."""
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    os.chown(workspace, 54_321, 54_321)
    minify.minify(request(), RunnerConfig(checkout, engine=("false",), environ=dict(os.environ)), workspace / "result" / "0", console)
    assert {path.lstat().st_uid for path in workspace.rglob("*")} == {54_321}


def test_the_setup_runs_in_the_checkout_before_it(tmp_path: Path, checkout: Path, engine: tuple[str, ...], console: Console) -> None:
    environ = {"PATH": os.environ["PATH"], "GITHUB_TOKEN": "secret"}
    setup = "echo built > built.txt\nprintenv GITHUB_TOKEN || true"
    out = tmp_path / "out"
    assert minify.minify(request(), RunnerConfig(checkout, setup=setup, engine=engine, environ=environ), out, console) == 5
    assert sorted(json.loads((out / "seen.json").read_text())["cwd"]) == ["built.txt", "model.py"]


@pytest.mark.parametrize("name", ["pyproject.toml", "pytest.ini", "tox.ini"])
def test_no_settings_of_an_older_checkout_lie_around_this_one(tmp_path: Path, checkout: Path, console: Console, name: str) -> None:
    """pytest ends with an error where it finds settings that it may not read."""
    (tmp_path / name).write_text("")
    look = f"import pathlib; print('around:', [str(each) for each in pathlib.Path.cwd().parents if (each / '{name}').exists()])"
    config = RunnerConfig(checkout, engine=(sys.executable, "-c", look), environ=dict(os.environ))
    minify.minify(request(), config, tmp_path / "out", console)
    assert "around: []" in printed(console)


def seen_by(tmp_path: Path, checkout: Path, console: Console, asked: Request, **config: Any) -> dict[str, Any]:
    out = tmp_path / "out"
    environ = {"PATH": os.environ["PATH"], "PIP_INDEX_URL": "http://mirror", "HF_ENDPOINT": "http://hub", "GITHUB_TOKEN": "secret"}
    environ["RUNNER_TRACKING_ID"] = "github_1"
    status = minify.minify(asked, RunnerConfig(checkout, environ=environ, **config), out, console)
    assert status == 5, printed(console)
    found: dict[str, Any] = json.loads((out / "seen.json").read_text())
    return found


def test_variables_of_the_workflow_of_the_machine_and_of_the_command(
    tmp_path: Path, checkout: Path, engine: tuple[str, ...], console: Console
) -> None:
    asked = request(script=None, command="WITH_DYNAMO=1 LD_PRELOAD=./evil.so PATH=/tmp B='x y' pytest t.py::x")
    config = {"engine": engine, "variables": {"A": "1"}, "pass_env": ("PIP_INDEX_URL", "MISSING")}
    seen = seen_by(tmp_path, checkout, console, asked, **config)
    env = seen["env"]
    assert (env["A"], env["PIP_INDEX_URL"], env["WITH_DYNAMO"], env["B"]) == ("1", "http://mirror", "1", "x y")
    # by which the runner ends what a job left running (actions/runner, JobExtension.cs)
    assert env["RUNNER_TRACKING_ID"] == "github_1"
    assert not {"HF_ENDPOINT", "GITHUB_TOKEN", "MISSING", "LD_PRELOAD"} & set(env)
    assert env["PATH"] != "/tmp"
    assert "--command=pytest t.py::x" in seen["argv"]


def test_it_runs_in_the_directory_that_was_asked_for(tmp_path: Path, checkout: Path, engine: tuple[str, ...], console: Console) -> None:
    (checkout / "python").mkdir()
    (checkout / "python/here.txt").write_text("")
    assert seen_by(tmp_path, checkout, console, request(directory="python"), engine=engine)["cwd"] == ["here.txt"]


@pytest.mark.parametrize("directory", ["missing", "..", "link", "ring"])
def test_a_directory_that_is_none(tmp_path: Path, checkout: Path, runner: dict[str, Any], console: Console, directory: str) -> None:
    (checkout / "link").symlink_to("/")
    (checkout / "ring").symlink_to("ring")
    out = tmp_path / "out"
    assert minify.minify(request(directory=directory), RunnerConfig(checkout, **runner), out, console) == 1
    assert "has no directory" in (out / "result.json").read_text()
    assert isinstance(console.stderr, io.StringIO)
    assert "left behind" not in console.stderr.getvalue()


@pytest.mark.parametrize(
    ("command", "kept"),
    [
        ("pytest t.py::test_x", False),
        ("pytest 'there/other.py::TestY::test_z[a b]'", False),
        ("A=1 python t.py TestY.test_z", False),
        ("python ../other/other.py TestY.test_z", False),
        ("pytest {other}/other.py::test_x", False),
        (".venv/bin/python -m pytest model.py::test_x", True),
        ("pytest inner.py::test_x", True),
        ("pytest gone.py::test_x", True),
        ("pytest 't.py::test_x", True),
    ],
)
def test_a_link_in_a_commit_shows_nothing_of_another_checkout(
    tmp_path: Path, checkout: Path, runner: dict[str, Any], console: Console, command: str, kept: bool
) -> None:
    """What a program's own file is, and what lies beside it, it may read, and a copy of it is handed on."""
    other = tmp_path / "other"
    (other / "bin").mkdir(parents=True)
    (other / "other.py").write_text("")
    (checkout / ".venv/bin").mkdir(parents=True)
    links = {"t.py": other / "other.py", "there": other, ".venv/bin/python": sys.executable, "inner.py": "model.py"}
    for name, target in links.items():
        (checkout / name).symlink_to(target)
    out = tmp_path / "out"
    minify.minify(request(script=None, command=command.replace("{other}", str(other))), RunnerConfig(checkout, **runner), out, console)
    assert (out / "seen.json").exists() == kept
    assert ("leads out of it" in (out / "result.json").read_text()) == (not kept)


def test_whatever_goes_wrong_leaves_a_result(tmp_path: Path, checkout: Path, runner: dict[str, Any], console: Console) -> None:
    """The report reads nothing else of this job."""
    out = tmp_path / "out"
    assert minify.minify(request(directory="a\0b"), RunnerConfig(checkout, **runner), out, console) == 1
    assert "a fault of torch-minify" in str(Result.model_validate_json((out / "result.json").read_text()).reason)


def test_a_setup_that_was_stopped_did_not_fail(tmp_path: Path, checkout: Path, runner: dict[str, Any], console: Console) -> None:
    out, stopped = tmp_path / "out", threading.Event()
    config = RunnerConfig(checkout, setup="echo begun; sleep 60", **runner)
    assert minify.minify(request(), config, out, console, watch=lambda _: stopped.set(), stopped=stopped) == 1
    result = Result.model_validate_json((out / "result.json").read_text())
    assert (result.reason, result.ended_by) == (minify.NEVER_BEGAN, "interrupted")
    assert (result.machine_fault, result.reason_code) == (None, None)  # nor is it the machine's


@pytest.mark.parametrize("cancelled", [False, True])
def test_who_is_blamed_for_an_error(tmp_path: Path, console: Console, cancelled: bool) -> None:
    assert minify.write_error(tmp_path / "out", "it is over", console, cancelled=cancelled) == 1
    result = Result.model_validate_json((tmp_path / "out" / "result.json").read_text())
    assert (result.status, result.reason) == ("error", "it is over")
    blamed = (None, None, "interrupted") if cancelled else ("it is over", "machine_fault", "fixed_point")
    assert (result.machine_fault, result.reason_code, result.ended_by) == blamed


@pytest.mark.parametrize("good", [True, False])
def test_a_setup_that_prints_much_does_not_hide_what_doctor_says(tmp_path: Path, checkout: Path, console: Console, good: bool) -> None:
    (tmp_path / "engine.py").write_text("print('torch 2.13.0')")
    setup = "for line in {1..400}; do echo line $line ----------------------------; done; echo its last words; " + str(good).lower()
    config = RunnerConfig(checkout, setup=setup, engine=(sys.executable, "-I", str(tmp_path / "engine.py")), environ=dict(os.environ))
    minify.minify(request(script=None, doctor=("ok      all",)), config, tmp_path / "out", console)
    said = (tmp_path / "out/doctor.txt").read_text(encoding="utf-8")
    assert ("torch 2.13.0" in said) is good
    assert ("its last words" in said) is ("the setup commands failed" in said) is not good
    # as much as a comment shows of it
    assert len(said) < 10_000


def test_a_launcher_names_the_interpreter(tmp_path: Path, checkout: Path, engine: tuple[str, ...], console: Console) -> None:
    """`uv run`, as far as we need it: it starts the Python of an environment of its own."""
    other = tmp_path / "env/bin/python"
    other.parent.mkdir(parents=True)
    other.symlink_to(os.path.realpath(sys.executable))
    (tmp_path / "uv").write_text(f'#!/bin/sh\nshift 2\nshift\nexec "{other}" "$@"\n')
    (tmp_path / "uv").chmod(0o755)
    asked = request(script=None, command="pytest t.py::x", launcher=(str(tmp_path / "uv"), "run", "--"))
    seen = seen_by(tmp_path, checkout, console, asked, engine=engine)
    assert f"--python={other}" in seen["argv"]


def test_a_launcher_that_fails_is_no_verdict_on_the_program(
    tmp_path: Path, checkout: Path, runner: dict[str, Any], console: Console
) -> None:
    out = tmp_path / "out"
    asked = request(script=None, command="pytest t.py::x", launcher=("no-such-program", "run"))
    assert minify.minify(asked, RunnerConfig(checkout, **runner), out, console) == 1
    assert "no-such-program run: no-such-program cannot be started" in (out / "result.json").read_text()


def test_a_setup_that_fails_is_no_verdict_on_the_program(tmp_path: Path, checkout: Path, runner: dict[str, Any], console: Console) -> None:
    out = tmp_path / "out"
    assert minify.minify(request(), RunnerConfig(checkout, setup="echo before; false; echo after", **runner), out, console) == 1
    result = Result.model_validate_json((out / "result.json").read_text())
    assert result.status == "error"
    assert result.machine_fault == "the setup commands failed with exit status 1; the log of the run shows what they printed"
    assert result.reason_code == "machine_fault"
    said = printed(console)
    assert "before" in said
    assert "after" not in said
    assert not (out / "seen.json").exists()


def test_an_engine_that_leaves_nothing(tmp_path: Path, checkout: Path, console: Console) -> None:
    out = tmp_path / "out"
    assert minify.minify(request(), RunnerConfig(checkout, engine=("/bin/false",), environ=dict(os.environ)), out, console) == 1
    assert "left no result" in str(Result.model_validate_json((out / "result.json").read_text()).reason)


def test_a_result_says_which_request_it_answers(tmp_path: Path, checkout: Path, console: Console) -> None:
    """Whatever the engine leaves there, and already while it runs: a job may be killed at any time."""
    out, asked = tmp_path / "out", request()
    forge = "import pathlib, sys; next(pathlib.Path(a[6:], 'request.sha256') for a in sys.argv if a[:6] == '--out=').write_text('x')"
    seen: list[str] = []
    config = RunnerConfig(checkout, engine=(sys.executable, "-c", f"{forge}; print()"), environ=dict(os.environ))
    minify.minify(asked, config, out, console, watch=lambda _: seen.append((out / KEY_FILE).read_text()))
    assert {*seen, (out / KEY_FILE).read_text()} == {f"{key(asked)}\n"}
    assert Folder(out).answers(asked)
    assert not Folder(out).answers(asked.model_copy(update={"commit": "b" * 40}))
    # one made by `run` says nothing of it
    (out / KEY_FILE).unlink()
    assert Folder(out).answers(asked)


def test_an_engine_that_cannot_be_started(tmp_path: Path, checkout: Path, console: Console) -> None:
    out = tmp_path / "out"
    assert minify.minify(request(), RunnerConfig(checkout, engine=("/no/such/engine",), environ=dict(os.environ)), out, console) == 1
    assert "could not be begun" in str(Result.model_validate_json((out / "result.json").read_text()).reason)


def test_without_the_gpu_it_says_so_before_anything_runs(
    tmp_path: Path, checkout: Path, runner: dict[str, Any], console: Console, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(gpu, "unseen", lambda: "no GPU is visible: for a reason")
    out = tmp_path / "out"
    assert minify.minify(request(), RunnerConfig(checkout, device="cuda", setup="touch ran", **runner), out, console) == 1
    assert Result.model_validate_json((out / "result.json").read_text()).reason == "--device cuda: no GPU is visible: for a reason"
    assert not (checkout / "ran").exists()


def test_a_version_that_is_none(tmp_path: Path, checkout: Path, runner: dict[str, Any], console: Console) -> None:
    out = tmp_path / "out"
    options = RequestOptions(torch_version="2.13.0 --index-url=http://x")
    assert minify.minify(request(options=options), RunnerConfig(checkout, **runner), out, console) == 1
    assert "is no torch version" in (out / "result.json").read_text()


@pytest.mark.parametrize(("status", "expected"), [("minimized", 0), ("reproduced", 0), ("not_reproduced", 0), ("flaky", 0), ("error", 1)])
def test_an_answer_is_green_and_a_fault_is_red(tmp_path: Path, status: Status, expected: int) -> None:
    (tmp_path / "result.json").write_text(Result(status=status).to_json())
    outcome = outcome_of(tmp_path, EXIT_STATUS[status])
    assert (outcome.exit_status, outcome.outputs) == (expected, {"status": status})


def test_a_result_says_one_of_five_words_or_is_not_believed(tmp_path: Path) -> None:
    (tmp_path / "result.json").write_text(json.dumps({"schema": 1, "status": "x\nmatrix=[]"}))
    assert outcome_of(tmp_path, 0).outputs == {"status": "minimized"}
    assert outcome_of(tmp_path / "none", 77).outputs == {"status": "error"}


def test_a_machine_that_was_looked_at_minimized_nothing(tmp_path: Path) -> None:
    outcome = outcome_of(tmp_path, 0)
    assert (outcome.exit_status, outcome.outputs) == (0, {"status": ""})


def test_what_a_program_prints_is_no_command(tmp_path: Path, checkout: Path, engine: tuple[str, ...]) -> None:
    console = Console(io.StringIO(), io.StringIO(), in_actions=True)
    config = RunnerConfig(checkout, setup="echo ::add-mask::x", engine=engine, environ=dict(os.environ))
    minify.minify(request(), config, tmp_path / "out", console)
    lines = printed(console).splitlines()
    at = lines.index("::add-mask::x")
    assert lines[at - 2] == "::group::the setup commands"
    assert lines[at - 1].startswith("::stop-commands::")
    assert lines[at + 1 : at + 3] == [f"::{lines[at - 1].removeprefix('::stop-commands::')}::", "::endgroup::"]


def test_what_the_interpreter_says_to_doctor_is_no_command(tmp_path: Path, checkout: Path) -> None:
    (tmp_path / "engine.py").write_text("print('::add-mask::x')")
    console = Console(io.StringIO(), io.StringIO(), in_actions=True)
    config = RunnerConfig(checkout, engine=(sys.executable, "-I", str(tmp_path / "engine.py")), environ=dict(os.environ))
    minify.minify(request(script=None, doctor=("ok      all",)), config, tmp_path / "out", console)
    lines = printed(console).splitlines()
    assert lines[lines.index("::add-mask::x") - 1].startswith("::stop-commands::")
