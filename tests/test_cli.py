"""Arguments in, exit status out."""

from __future__ import annotations

import argparse
import errno
import os
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import bot.engine.job
from bot import __version__, cli
from bot.cli import duration, main, positive
from bot.engine import doctor_command
from bot.engine.options import Options
from bot.models.failure import Stage
from bot.models.result import EXIT_STATUS, Result


@pytest.mark.parametrize(
    ("text", "seconds"), [("90", 90), ("90s", 90), ("1.5m", 90), ("30m", 1800), ("2h", 7200), (" 5 ", 5), ("0.5", 0.5)]
)
def test_durations(text: str, seconds: float) -> None:
    assert duration(text) == seconds


@pytest.mark.parametrize("text", ["", "0", "0.0m", "-5", "5d", "5 m", "m", "1e3", "inf", "nan", "1h30m", "٥x"])
def test_no_durations(text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError, match="use for example"):
        duration(text)


@given(st.text(max_size=6))
def test_a_duration_is_positive_or_none(text: str) -> None:
    for read in (duration, positive):
        try:
            value = read(text)
        except argparse.ArgumentTypeError:
            continue
        assert value > 0


@pytest.mark.parametrize("text", ["0", "-1", "1.5", "", "x", "²", " 1"])
def test_no_whole_numbers(text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError):
        positive(text)


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[Options]:
    """What the job is asked to do, in place of doing it; the result's status is `bot.cli`'s to translate."""
    seen: list[Options] = []

    class Job:
        answer: Result | None = Result(status="minimized")

        def __init__(self, options: Options) -> None:
            seen.append(options)

        def run(self) -> Result | None:
            return Job.answer

    monkeypatch.setattr(bot.engine.job, "Job", Job)
    return seen


@pytest.fixture
def script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "fail.py").write_text("pass\n")
    return "fail.py"


def test_the_defaults_of_the_contract(asked: list[Options], script: str) -> None:
    assert main(["run", script]) == 0
    (options,) = asked
    assert options.target.script == Path(script).resolve()
    assert (options.out, options.stage, options.accuracy, options.device) == (Path("minified"), None, "auto", None)
    assert (options.budget, options.hang_after, options.verify_runs, options.jobs) == (1800.0, None, 3, 1)
    assert (options.seed, options.resume) == (0, False)


def test_variables_before_a_command_are_everybody_s(asked: list[Options], script: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SUITE_MODE", "old")
    assert main(["run", "--command", f"SUITE_MODE=new python {script} -v"]) == 0
    assert (os.environ["SUITE_MODE"], asked[0].target.argv) == ("new", ("-v",))


def test_every_option_arrives(asked: list[Options], script: str) -> None:
    given = "--stage aot_inductor --accuracy strict --device cpu --python /p --out o --budget 5m --hang-after 9"
    assert (
        main(
            [
                "run",
                *given.split(),
                "--verify-runs",
                "5",
                "--jobs",
                "2",
                "--seed",
                "7",
                "--resume",
                script,
                "--",
                "--stage",
                "-v",
                "--",
                "x",
            ]
        )
        == 0
    )
    (options,) = asked
    assert options.target.argv == ("--stage", "-v", "--", "x")
    assert (options.stage, options.accuracy, options.device, options.python, options.out) == (
        Stage.AOT_INDUCTOR,
        "strict",
        "cpu",
        "/p",
        Path("o"),
    )
    assert (options.budget, options.hang_after, options.verify_runs, options.jobs, options.seed, options.resume) == (
        300.0,
        9.0,
        5,
        2,
        7,
        True,
    )


def test_other_interpreters(asked: list[Options], script: str) -> None:
    assert main(["run", script, "--also-python", "/a", "--also-python", "/b", "--network", "on"]) == 0
    assert asked[0].also_python == ("/a", "/b")


def test_a_gpu_that_is_not_there(asked: list[Options], script: str) -> None:
    assert main(["run", script, "--device", "cuda", "--cuda-arch", "90"]) == 0
    assert main(["run", script]) == 0
    assert [(options.cuda_arch, options.accuracy) for options in asked] == [(90, "off"), (None, "auto")]


@pytest.mark.parametrize(
    "words",
    [
        ["--cuda-arch", "91"],
        ["--cuda-arch", "9.0"],
        ["--cuda-arch", "90", "--device", "cpu"],
        ["--cuda-arch", "90", "--accuracy", "on"],
        ["--cuda-arch", "90", "--accuracy", "strict"],
        ["--cuda-arch", "90", "--also-python", "/a"],
    ],
)
def test_what_cannot_be_kept_is_not_promised(
    asked: list[Options], script: str, capsys: pytest.CaptureFixture[str], words: list[str]
) -> None:
    with pytest.raises(SystemExit):
        main(["run", script, *words])
    assert not asked
    assert "--cuda-arch" in capsys.readouterr().err


def test_the_sandbox(asked: list[Options], script: str, tmp_path: Path) -> None:
    assert main(["run", script]) == 0
    assert main(["run", script, "--network", "on", "--require-sandbox", "--read", str(tmp_path)]) == 0
    plain, asked_for = asked
    assert (plain.sandbox, plain.network, plain.require_sandbox, plain.read) == (True, False, False, ())
    assert (asked_for.sandbox, asked_for.network, asked_for.require_sandbox, asked_for.read) == (True, True, True, (tmp_path,))


def test_a_command(asked: list[Options], script: str) -> None:
    assert main(["run", "--command", "pytest test_x.py::test_y"]) == 0
    assert main(["run", "--command", f"python {script} -v"]) == 0
    assert (asked[0].target.module, asked[0].target.argv) == ("pytest", ("test_x.py::test_y",))
    assert (asked[1].target.script, asked[1].target.argv) == (Path(script).resolve(), ("-v",))


@pytest.mark.parametrize("status", EXIT_STATUS)
def test_exit_statuses(asked: list[Options], script: str, monkeypatch: pytest.MonkeyPatch, status: Any) -> None:
    monkeypatch.setattr(bot.engine.job.Job, "answer", Result(status=status))
    assert main(["run", script]) == EXIT_STATUS[status]


_SAYS_MUCH = """
import sys
import bot.cli, bot.engine.job
from bot.models.result import Result

class Job:
    def __init__(self, options):
        pass

    def run(self):
        sys.stderr.write("told")
        sys.stdout.write("said" * 9000 + "\\n")
        sys.stdout.write("said")
        sys.stdout.flush()
        return Result(status="reproduced")

bot.engine.job.Job = Job
sys.exit(bot.cli.main(["run", sys.argv[1]]))
"""


@pytest.mark.parametrize("stream", ["stdout", "stderr"])
@pytest.mark.parametrize("full", [True, False])
def test_whoever_reads_what_is_said_is_not_asked_for_the_exit_status(script: str, stream: str, *, full: bool) -> None:
    """A disk that was full made it 120, and `| head` ended the job."""
    ours, theirs = os.pipe()
    os.close(ours)
    with open("/dev/full", "wb") if full else os.fdopen(theirs, "wb") as gone:
        streams: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, stream: gone}
        done = subprocess.run(
            [sys.executable, "-c", _SAYS_MUCH, os.path.abspath(script)], cwd=Path(cli.__file__).parents[1], check=False, **streams
        )
    assert done.returncode == EXIT_STATUS["reproduced"], done.stderr
    assert not (done.stderr or b"").replace(b"told", b"")


@pytest.mark.parametrize("closed", ["1>&-", "2>&-", "1>&- 2>&-"])
def test_a_stream_may_be_closed_from_the_beginning(script: str, closed: str) -> None:
    words = [
        sys.executable,
        "-c",
        _SAYS_MUCH.replace("sys.stdout.", "sys.stdout and sys.stdout.").replace("sys.stderr.", "sys.stderr and sys.stderr."),
    ]
    command = f"exec {shlex.join([*words, os.path.abspath(script)])} {closed}"
    done = subprocess.run(
        ["sh", "-c", command], cwd=Path(cli.__file__).parents[1], check=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    assert done.returncode == EXIT_STATUS["reproduced"]


def test_a_directory_that_cannot_be_used(asked: list[Options], script: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bot.engine.job.Job, "answer", None)
    assert main(["run", script]) == 2


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT])
@pytest.mark.parametrize("where", ["tempfile.TemporaryDirectory", "bot.engine.job.Scratch"])
def test_a_disk_that_is_full_from_the_start(
    script: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], where: str, number: int
) -> None:
    def full(**_: object) -> None:
        raise OSError(number, "no room", "/t/x")

    monkeypatch.setattr(where, full)
    assert main(["run", script]) == 1
    assert capsys.readouterr().err == f"torch-minify: [Errno {number}] no room: '/t/x'\n"


def test_another_error_of_the_system_is_a_fault_of_ours(script: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(**_: object) -> None:
        raise PermissionError(errno.EACCES, "no")

    monkeypatch.setattr("bot.engine.job.Scratch", refused)
    with pytest.raises(PermissionError):
        main(["run", script])


def test_as_many_candidates_as_there_is_room_for(asked: list[Options], script: str) -> None:
    assert main(["run", script, "--jobs", "auto"]) == 0
    assert asked[0].jobs is None


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "COMMAND"),
        (["minimise"], "invalid choice"),
        (["run"], "either X or --command"),
        (["run", "fail.py", "--command", "pytest"], "either X or --command"),
        (["run", "--command", "pytest", "--", "x"], "write them into the command"),
        (["run", "--command", "make"], "not a Python program"),
        (["run", "none.py"], "no file none.py"),
        (["run", "."], "looks like a directory without a structured log"),
        (["run", "a" * 5000], "no file aaa"),
        (["run", "--command", f"python {'a' * 5000}.py"], "no file aaa"),
        (["run", "--command", "python ."], "no file ."),
        (["run", "--command", "python none.py"], "no file none.py"),
        (["run", "fail.py", "--graph", "0/0"], "--graph is for an X that holds graphs, and this is a script"),
        (["run", "--command", "pytest test_x.py", "--graph", "0/0"], "--graph is for an X that holds graphs, and this is a command"),
        (["run", "fail.py", "--inputs", "fail.py"], "--inputs is for an exported program, and this is a script"),
        (["run", "--command", "pytest test_x.py", "--inputs", "fail.py"], "--inputs is for an exported program, and this is a command"),
        (["run", "fail.py", "--inputs", "none.pt"], "no file none.pt"),
        (["run", "fail.py", "--read", "fail.py", "--read", "none"], "no file none"),
        (["run", "--command", "python fail.py", "--read", "none"], "no file none"),
        (["run", "fail.py", "-x"], "unrecognized arguments"),
        (["run", "fail.py", "--budget", "soon"], "not a duration"),
        (["run", "fail.py", "--jobs", "0"], "whole number"),
        (["run", "fail.py", "--stage", "triton"], "invalid choice"),
        (["run", "fail.py", "--acc", "on"], "unrecognized arguments"),
        (["verify", "repro.py"], "--result"),
        (["verify", "repro.py", "--result", "r", "--", "x"], "only run takes arguments"),
        (["doctor", "--", "x"], "only run takes arguments"),
    ],
)
def test_unusable_arguments(asked: list[Options], script: str, capsys: Any, arguments: list[str], words: str) -> None:
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 2
    assert words in capsys.readouterr().err
    assert asked == []


@pytest.mark.parametrize("words", [["fail.py"], ["--command", "python fail.py"], ["m.pt2", "--inputs", "fail.py"]])
def test_what_may_not_be_read_is_an_unusable_argument(
    asked: list[Options], script: str, capsys: Any, monkeypatch: pytest.MonkeyPatch, words: list[str]
) -> None:
    Path("m.pt2").touch()
    opened = Path.open

    def refused(path: Path, *given: Any, **named: Any) -> Any:
        if path.name == script:
            raise PermissionError(errno.EACCES, "Permission denied", str(path))
        return opened(path, *given, **named)

    monkeypatch.setattr(Path, "open", refused)
    with pytest.raises(SystemExit) as ended:
        main(["run", *words])
    assert ended.value.code == 2
    assert "fail.py cannot be read: Permission denied" in capsys.readouterr().err
    assert asked == []


@pytest.mark.parametrize(
    ("words", "where"),
    [
        (["run", "fail.py"], "bot.engine.inputs.prepare.prepared"),
        (["verify", "fail.py", "--result", "r.json"], "bot.engine.evidence.verify_command.main"),
    ],
)
def test_ctrl_c_outside_of_a_job(script: str, capsys: Any, monkeypatch: pytest.MonkeyPatch, words: list[str], where: str) -> None:
    """While a large trace is read, for example; a job has its own answer to it."""

    def interrupted(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(where, interrupted)
    assert main(words) == 1
    assert capsys.readouterr().err == "torch-minify: interrupted\n"


def test_version(capsys: Any) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["--version"])
    assert ended.value.code == 0
    assert __version__ in capsys.readouterr().out


def test_verify_and_doctor_are_passed_on(monkeypatch: pytest.MonkeyPatch) -> None:
    from bot.engine.evidence import verify_command

    monkeypatch.setattr(verify_command, "main", lambda *given, network: (*given, network))
    monkeypatch.setattr(doctor_command, "main", lambda *given: given)
    words = ["verify", "repro.py", "--result", "r.json", "--python", "p", "--runs", "2"]
    assert main(words) == (Path("repro.py"), Path("r.json"), "p", 2, False)
    assert main([*words, "--network", "on"]) == (Path("repro.py"), Path("r.json"), "p", 2, True)
    assert main(["doctor", "--python", "p"]) == ("p",)


def test_arguments_of_the_process_are_the_default(asked: list[Options], script: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.argv", ["torch-minify", "run", script])
    assert cli.main() == 0
    assert len(asked) == 1


def test_a_name_that_is_not_utf_8_can_be_told_of(asked: list[Options], tmp_path: Path) -> None:
    """It stands in result.json, of an input that is no program."""
    odd = Path(os.fsdecode(os.fsencode(tmp_path / "a") + b"\xff.txt"))
    odd.write_text("a text")
    main(["run", str(odd)])
    said, found = asked[-1].unusable, asked[-1].taken
    assert found is not None
    assert said.startswith("a?.txt looks like")
    assert found.detail.encode()


def test_a_pipe_is_not_waited_for(script: str, capsys: pytest.CaptureFixture[str]) -> None:
    """As of `run <(...)`: whoever opened it for reading would wait for its writer."""
    os.mkfifo("pipe.py")
    with pytest.raises(SystemExit) as ended:
        main(["run", "pipe.py"])
    assert ended.value.code == 2
    assert "pipe.py looks like neither a file nor a directory" in capsys.readouterr().err


@pytest.mark.parametrize("missing", ["github", "tenacity", "pydantic_settings"])
def test_a_command_for_github_says_what_it_needs(missing: str, tmp_path: Path) -> None:
    code = f"import sys; sys.modules[{missing!r}] = None; from bot.cli import main; sys.exit(main(sys.argv[1:]))"
    words = ["gate", "--event", str(tmp_path / "event.json"), "--event-name", "issue_comment", "--out", str(tmp_path / "requests.json")]
    done = subprocess.run([sys.executable, "-c", code, *words], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    (line,) = done.stderr.splitlines()
    assert line.startswith(f"torch-minify: gate needs {missing}")
    assert "`action`" in line
