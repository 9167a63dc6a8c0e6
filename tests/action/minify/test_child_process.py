from __future__ import annotations

import os
import signal
import sys
import threading
import time
from pathlib import Path

import pytest

from bot.action.minify.child_process import Children, Stopped, log_group, stop_on_signals
from bot.action.minify.isolation import Account


def python(text: str) -> list[str]:
    return [sys.executable, "-I", "-c", text]


def test_lines_and_status_come_through(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    heard: list[str] = []
    status = Children(Account(), heard.append).run(
        python("import sys; print('out'); print('err', file=sys.stderr); sys.exit(3)"), cwd=tmp_path, env={}, limit=30
    )
    said = capsys.readouterr()
    assert status == 3
    assert (said.out, said.err) == ("out\n", "err\n")
    assert sorted(heard) == ["err", "out"]


def test_its_environment_is_the_given_one(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GITHUB_TOKEN", "secret")
    Children(Account()).run(python("import os; print(sorted(os.environ))"), cwd=tmp_path, env={"A": "1"}, limit=30)
    assert "GITHUB_TOKEN" not in capsys.readouterr().out


def ended(pid: int) -> bool:
    """Whether a process is gone within five seconds: one that was killed may have to wait for a processor to die on."""
    stat = Path(f"/proc/{pid}/stat")
    for _ in range(100):
        try:
            if stat.read_text().split(")")[1].split()[0] == "Z":
                return True
        except (FileNotFoundError, ProcessLookupError):
            return True
        time.sleep(0.05)
    return False


def test_past_its_limit_it_is_ended_with_all_it_started(tmp_path: Path) -> None:
    grandchild = (
        "import subprocess, sys, time; p = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)']); "
        "print(p.pid, flush=True); time.sleep(60)"
    )
    heard: list[str] = []
    began = time.monotonic()
    assert Children(Account(), heard.append).run(python(grandchild), cwd=tmp_path, env={}, limit=8) == 124
    assert time.monotonic() - began < 40
    assert ended(int(heard[0]))


def test_a_signal_ends_the_child_and_no_other_begins(tmp_path: Path) -> None:
    children = Children(Account())
    with stop_on_signals(children.stop):
        threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGTERM)).start()
        began = time.monotonic()
        assert children.run(python("import time; time.sleep(60)"), cwd=tmp_path, env={}, limit=60) == -signal.SIGTERM
        assert time.monotonic() - began < 20
        with pytest.raises(Stopped):
            children.run(python("pass"), cwd=tmp_path, env={}, limit=60)


def test_it_is_ticked_while_it_runs(tmp_path: Path) -> None:
    ticks: list[float] = []
    Children(Account()).run(python("import time; time.sleep(2)"), cwd=tmp_path, env={}, limit=60, tick=lambda: ticks.append(0), every=0.1)
    assert ticks


def test_what_is_printed_is_no_command(capsys: pytest.CaptureFixture[str]) -> None:
    with log_group("a part", actions=True):
        print("::add-mask::x")
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "::group::a part"
    assert lines[1].startswith("::stop-commands::")
    word = lines[1].removeprefix("::stop-commands::")
    assert lines[2:] == ["::add-mask::x", f"::{word}::", "::endgroup::"]
    assert len(word) == 32


def test_outside_of_actions_nothing_is_added(capsys: pytest.CaptureFixture[str]) -> None:
    with log_group("a part", actions=False):
        print("line")
    assert capsys.readouterr().out == "line\n"
