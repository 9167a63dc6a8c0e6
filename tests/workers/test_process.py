"""One process, whatever it does: what `tests/engine/evidence/test_verify.py` does not see through a script."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import pytest

from bot.failure.machine_faults import STOPPED, fault_of
from bot.failure.outcome import Outcome
from bot.failure.signature import signature_of
from bot.inside.own_time import OwnTime
from bot.workers.process import MOST_PRINTED, Interrupted, Patience, run_process
from tests.processes import ended


def run(tmp_path: Path, *command: str, timeout: float = 30.0) -> Outcome:
    return run_process(command, Patience(timeout), cwd=tmp_path, env=os.environ)


def test_a_command_that_is_not_there(tmp_path: Path) -> None:
    outcome = run(tmp_path, str(tmp_path / "none"))
    assert outcome.status == "infra"
    assert "cannot start" in outcome.text


@pytest.mark.parametrize(
    ("words", "status", "signal", "code"),
    [
        ("exit 139", "signal", "SIGSEGV", 139),
        ("exit 255", "exit", None, 255),
        ("kill -ABRT $$", "signal", "SIGABRT", None),
        ("echo 'Traceback (most recent call last):'; exit 1", "raised", None, 1),
        ("echo '  + Exception Group Traceback (most recent call last):'; exit 1", "raised", None, 1),
        ("echo 'SyntaxError: no' >&2; exit 1", "raised", None, 1),
        ("echo 'said SyntaxError: no'; exit 1", "exit", None, 1),
        ("echo 'Traceback (most recent call last):'; exit 2", "exit", None, 2),
        ("echo 'Traceback (most recent call last):'", "ok", None, 0),
    ],
)
def test_exit_statuses(tmp_path: Path, words: str, status: str, signal: str | None, code: int | None) -> None:
    outcome = run(tmp_path, "sh", "-c", words)
    assert (outcome.status, outcome.signal, outcome.exit) == (status, signal, code)


def test_standard_error_comes_last_and_bytes_that_are_no_text_are_kept(tmp_path: Path) -> None:
    outcome = run(tmp_path, "sh", "-c", "printf 'err\\n' >&2; printf 'out\\377\\n'")
    assert outcome.text == "out\ufffd\nerr\n"
    assert outcome.stdout == "out\ufffd\n"


def test_long_output_is_not_kept_twice(tmp_path: Path) -> None:
    outcome = run(tmp_path, "sh", "-c", f"yes | head -c {MOST_PRINTED + 1}")
    assert (len(outcome.text), outcome.stdout) == (MOST_PRINTED + 1, "")


def test_an_interruption_ends_the_whole_group(tmp_path: Path) -> None:
    pid = tmp_path / "pid"
    pid.touch()  # it is written to a moment after it is opened
    started = time.monotonic()
    with pytest.raises(Interrupted):
        run_process(
            ["sh", "-c", "sleep 600 & echo $! > pid; wait"],
            Patience(60.0),
            cwd=tmp_path,
            env=os.environ,
            wanted=lambda: not pid.read_text().endswith("\n"),
        )
    assert time.monotonic() - started < 10
    assert ended(int(pid.read_text()))


def test_the_stack_of_a_hang_leaves_no_core_file(tmp_path: Path) -> None:
    code = "import faulthandler, time\nfaulthandler.enable()\ndef stuck(): time.sleep(600)\nstuck()"
    outcome = run(tmp_path, sys.executable, "-c", code, timeout=1.0)
    assert outcome.status == "timeout"
    assert "in stuck" in outcome.text
    assert list(tmp_path.iterdir()) == []


def test_several_stacks_of_a_hang(tmp_path: Path) -> None:
    code = (
        "import faulthandler, signal, time\nfaulthandler.enable()\nfaulthandler.register(signal.SIGUSR1, all_threads=False, chain=False)\n"
        "def stuck(): time.sleep(600)\nstuck()"
    )
    outcome = run_process([sys.executable, "-c", code], Patience(2.0, stacks=4), cwd=tmp_path, env=os.environ)
    assert outcome.status == "timeout"
    assert outcome.text.count("in stuck") == 4


def test_a_process_that_does_not_listen_is_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bot.workers.process.DUMP_GRACE", 0.3)
    started = time.monotonic()
    assert run(tmp_path, "sh", "-c", "trap '' ABRT; while :; do sleep 0.1; done", timeout=0.5).status == "timeout"
    assert time.monotonic() - started < 5


# What frees a tensor of a device whose context is dead, as its last owner goes: the C++ library ends the process.
DIES_AT_THE_END = """
import builtins, ctypes, sys
abort = ctypes.cast(ctypes.CDLL(None).abort, ctypes.c_void_p)
make = ctypes.pythonapi.PyCapsule_New
make.restype, make.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
builtins.held = make(1, None, abort)
"""


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ("raise ValueError('first')", "raised"),
        ("del builtins.held", "signal"),
        ("pass", "signal"),
        ("import traceback\ntry:\n    1 / 0\nexcept ZeroDivisionError:\n    traceback.print_exc()\ndel builtins.held", "signal"),
    ],
)
def test_what_was_raised_counts_and_not_what_taking_python_down_does(tmp_path: Path, body: str, status: str) -> None:
    command = [sys.executable, "-X", "faulthandler", "-c", DIES_AT_THE_END + body]
    outcome = run_process(command, Patience(30.0), cwd=tmp_path, env=dict(os.environ))
    assert outcome.status == status, outcome.text
    if status == "raised":
        assert outcome.text.rstrip().endswith("ValueError: first")


LISTENS = (
    "import faulthandler, signal, time\nfaulthandler.enable()\nfaulthandler.register(signal.SIGUSR1, all_threads=False, chain=False)\n"
)


FINALIZER = "class D:\n    def __del__(self):\n        raise ValueError('late')\nd = D()\nd.own = d\n"
AT_EXIT = (
    "import atexit\ndef late():\n    try:\n        1 / 0\n"
    "    except ZeroDivisionError as error:\n        raise ValueError('late') from error\natexit.register(late)\n"
)
TASK = (
    "import asyncio\nasync def late():\n    raise ValueError('late')\n"
    "async def main():\n    task = asyncio.create_task(late())\n    await asyncio.sleep(0.01)\n    end(task)\n"
)


@pytest.mark.parametrize("late", [FINALIZER, AT_EXIT, TASK])
@pytest.mark.parametrize(("last", "said"), [("raise RuntimeError('first')", "first"), ("sys.exit(1)", "1")])
def test_what_python_only_reports_does_not_end_a_program(tmp_path: Path, late: str, last: str, said: str) -> None:
    """It is printed behind what does, in a process of its own."""
    call = "asyncio.run(main())" if late is TASK else "end()"
    code = f"import sys\n{late}def end(*held):\n    {last}\n{call}\n"
    outcome = run(tmp_path, sys.executable, "-c", code)
    assert "ValueError: late" in outcome.text
    signature = signature_of(outcome)
    assert (outcome.status, signature and signature.message) == ("exit" if said == "1" else "raised", said)


def test_an_error_that_a_rank_marks_was_raised(tmp_path: Path) -> None:
    """As the hook of torch.distributed does: `_distributed_excepthook` of torch 2.13."""
    code = (
        "import sys, traceback\n"
        "def hook(*error):\n"
        "    for line in traceback.format_exception(*error):\n"
        "        sys.stderr.write('[rank1]: ' + line.replace('\\n', '\\n[rank1]: ').removesuffix('[rank1]: '))\n"
        "sys.excepthook = hook\n"
        "raise ValueError('x')\n"
    )
    outcome = run(tmp_path, sys.executable, "-c", code)
    assert outcome.status == "raised", outcome.text
    signature = signature_of(outcome)
    assert signature is not None
    assert (signature.exception, signature.message) == (("ValueError",), "x")


def test_stacks_that_are_spread_over_the_time(tmp_path: Path) -> None:
    """What a program does one after the other is not one place."""
    code = LISTENS + "def first(): time.sleep(2)\ndef then(): time.sleep(600)\nfirst()\nthen()"
    patience = Patience(4.0, stacks=4, spread=True)
    assert patience.looks() == [1.0, 2.0, 3.0]
    outcome = run_process([sys.executable, "-c", code], patience, cwd=tmp_path, env=os.environ)
    assert outcome.status == "timeout"
    assert "in first" in outcome.text
    assert "in then" in outcome.text


def test_what_is_cut_off_is_said(tmp_path: Path) -> None:
    command = ["sh", "-c", "sleep 600"]
    late, cut = (run_process(command, Patience(own, most), cwd=tmp_path, env=os.environ) for own, most in ((0.5, 60.0), (60.0, 0.5)))
    assert (late.status, late.cut) == ("timeout", False)
    assert (cut.status, cut.cut) == ("timeout", True)


IN_A_THREAD = "import subprocess, threading\nthreading.Thread(target=subprocess.run, args=({},)).start()"


@pytest.mark.skipif(sys.platform != "linux", reason="the state of a process is read from /proc")
@pytest.mark.parametrize(
    ("words", "patience"),
    [
        (["sh", "-c", "kill -STOP $$"], Patience(1.0)),
        (["sh", "-c", "kill -STOP $$"], Patience(60.0, 5.0)),
        (["sh", "-c", "sleep 60 & kill -STOP $!; wait"], Patience(1.0)),
        ([sys.executable, "-c", IN_A_THREAD.format(["sh", "-c", "kill -STOP $$"])], Patience(3.0)),
    ],
    ids=["itself", "itself until it is cut off", "what it started", "what a thread of it started"],
)
def test_a_process_that_a_signal_has_stopped_does_not_hang(tmp_path: Path, words: list[str], patience: Patience) -> None:
    outcome = run_process(words, patience, cwd=tmp_path, env=os.environ)
    assert (outcome.status, fault_of(outcome)) == ("infra", STOPPED)


def test_on_a_busy_machine_a_process_has_its_own_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One that gets a quarter of the time has four times as long before it is late."""
    started = time.monotonic()
    looks: list[int] = []

    def waited(pid: int) -> dict[int, float]:
        if looks:  # the time that is told has begun
            (tmp_path / "go").touch()
        looks.append(pid)
        return {pid: 0.75 * (time.monotonic() - started)}

    monkeypatch.setattr("bot.workers.process.OwnTime", lambda pid: OwnTime(pid, waited=waited))
    outcome = run(tmp_path, "sh", "-c", "until [ -e go ]; do sleep 0.05; done; sleep 2", timeout=1.2)
    assert outcome.status == "ok"
    assert outcome.seconds < 1.2 < 2.0 <= outcome.elapsed
    assert run(tmp_path, "sleep", "600", timeout=0.7).status == "timeout"


def test_a_pipe_that_somebody_holds_open_is_not_waited_for(tmp_path: Path) -> None:
    started = time.monotonic()
    assert (
        run(tmp_path, sys.executable, "-c", "import subprocess; subprocess.Popen(['sleep', '60'], start_new_session=True)").status == "ok"
    )
    assert time.monotonic() - started < 30


def test_a_process_that_has_become_another_program_is_not_asked_for_its_stack(tmp_path: Path) -> None:
    """It would die of the signal, and that would look like a crash."""
    code = LISTENS + "import os\nos.execvp('sleep', ['sleep', '2'])"
    patience = Patience(4.0, stacks=8, spread=True)
    assert patience.looks()[0] == 1.0
    assert run_process([sys.executable, "-c", code], patience, cwd=tmp_path, env=os.environ).status == "ok"
