from __future__ import annotations

import io
import os
import signal
import sys
import threading
import time
from pathlib import Path

import pytest

from bot.action.console import Console
from bot.action.minify import child_process
from bot.action.minify.child_process import Children, Stopped, stop_on_signals
from bot.action.minify.isolation import Account
from tests.processes import ended


def console() -> Console:
    return Console(io.StringIO(), io.StringIO())


def python(text: str) -> list[str]:
    return [sys.executable, "-I", "-c", text]


def test_lines_and_status_come_through(tmp_path: Path) -> None:
    out, err = io.StringIO(), io.StringIO()
    heard: list[str] = []
    status = Children(Account(), Console(out, err), heard.append).run(
        python("import sys; print('out'); print('err', file=sys.stderr); sys.exit(3)"), cwd=tmp_path, env={}, limit=30
    )
    assert status == 3
    assert (out.getvalue(), err.getvalue()) == ("out\n", "err\n")
    assert sorted(heard) == ["err", "out"]


def test_the_runner_reads_one_stream(tmp_path: Path) -> None:
    """It reads standard output and error by two threads (actions/runner, ProcessInvoker.cs): what stands in one does not come before or
    behind what stands in the other, and so not between the lines that keep it from obeying."""
    out, err = io.StringIO(), io.StringIO()
    program = "import sys; print('out'); print('::error::late', file=sys.stderr)"
    Children(Account(), Console(out, err, in_actions=True)).run(python(program), cwd=tmp_path, env={}, limit=30)
    assert (sorted(out.getvalue().split()), err.getvalue()) == (["::error::late", "out"], "")


def test_its_environment_is_the_given_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    heard: list[str] = []
    monkeypatch.setenv("GITHUB_TOKEN", "secret")
    Children(Account(), console(), heard.append).run(python("import os; print(sorted(os.environ))"), cwd=tmp_path, env={"A": "1"}, limit=30)
    assert len(heard) == 1
    assert "'A'" in heard[0]
    assert "GITHUB_TOKEN" not in heard[0]


def test_past_its_limit_it_is_ended_with_all_it_started(tmp_path: Path) -> None:
    grandchild = (
        "import subprocess, sys, time; p = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)']); "
        "print(p.pid, flush=True); time.sleep(60)"
    )
    heard: list[str] = []
    began = time.monotonic()
    assert Children(Account(), console(), heard.append).run(python(grandchild), cwd=tmp_path, env={}, limit=8) == 124
    assert time.monotonic() - began < 40
    assert ended(int(heard[0]))


def test_a_signal_ends_the_child_and_no_other_begins(tmp_path: Path) -> None:
    children = Children(Account(), console(), lambda _: os.kill(os.getpid(), signal.SIGTERM))
    with stop_on_signals(children.stop):
        began = time.monotonic()
        begun = python("import time; print('begun', flush=True); time.sleep(60)")
        assert children.run(begun, cwd=tmp_path, env={}, limit=60) == -signal.SIGTERM
        assert time.monotonic() - began < 20
        with pytest.raises(Stopped):
            children.run(python("pass"), cwd=tmp_path, env={}, limit=60)


def test_a_long_save_does_not_hold_up_a_stop(tmp_path: Path) -> None:
    children, saving, go_on = Children(Account(), console()), threading.Event(), threading.Event()
    ended_at: list[float] = []

    def there(name: str) -> bool:
        deadline = time.monotonic() + 30
        while not (found := (tmp_path / name).exists()) and time.monotonic() < deadline:
            time.sleep(0.05)
        return found

    def save() -> None:
        saving.set()
        go_on.wait(60)

    def stop() -> None:
        # a signal that comes before the program is ready for it ends it without a word
        if saving.wait(30) and there("ready"):
            children.stop()
            if there("stopped"):
                ended_at.append(time.monotonic())
        go_on.set()

    stopping = threading.Thread(target=stop)
    stopping.start()
    program = (
        "import signal, sys, time; signal.signal(15, lambda *_: (open('stopped', 'w'), sys.exit(0))); open('ready', 'w'); time.sleep(60)"
    )
    children.run(python(program), cwd=tmp_path, env={}, limit=60, tick=save, every=0.5)
    stopping.join()
    # the program was told while the save was still going on
    assert ended_at


def test_it_is_ticked_while_it_runs(tmp_path: Path) -> None:
    ticks: list[float] = []
    Children(Account(), console()).run(
        python("import time; time.sleep(2)"), cwd=tmp_path, env={}, limit=60, tick=lambda: ticks.append(0), every=0.1
    )
    assert ticks


def test_nothing_is_said_after_its_end(tmp_path: Path) -> None:
    """What a left-behind process writes later would stand behind the word that lets the runner obey commands again."""
    out = io.StringIO()
    leaves = (
        "import os, sys, time\n"
        "heard, said = os.pipe()\n"
        "if os.fork() == 0:\n"
        "    os.setsid()\n"
        "    while True:\n"
        "        print('::error title=Minimized::', flush=True); os.write(said, b'x'); time.sleep(0.01)\n"
        "os.read(heard, 1)"
    )
    assert Children(Account(), Console(out, io.StringIO())).run(python(leaves), cwd=tmp_path, env={}, limit=30) == 0
    said = out.getvalue()
    assert "::error" in said
    time.sleep(0.5)
    assert out.getvalue() == said


def test_the_log_has_an_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(child_process, "LONGEST_LOG", 1000)
    out = io.StringIO()
    heard: list[str] = []
    prints = python("for number in range(2000): print('line', number)")
    assert Children(Account(), Console(out, io.StringIO()), heard.append).run(prints, cwd=tmp_path, env={}, limit=30) == 0
    assert len(out.getvalue()) < 1100
    assert out.getvalue().endswith("[the log ends here: it is too long]\n")
    assert heard[-1] == "line 1999"


@pytest.mark.parametrize("before", range(0, 41, 4))
def test_a_secret_that_a_long_line_cuts_in_two_is_not_shown(tmp_path: Path, before: int) -> None:
    """What is taken out makes a line shorter, so that its cut end comes among what is shown of it."""
    out, token = io.StringIO(), "ghp" + "_" + "a1" * 18
    program = f"import sys; sys.stdout.write('x' * {before} + ' {token}' * 400 + chr(10) + 'next')"
    Children(Account(), Console(out, io.StringIO())).run(python(program), cwd=tmp_path, env={}, limit=30)
    line, following = out.getvalue().splitlines()
    assert line.split().count("[secret]") > 100
    assert "a1" not in line
    assert following == "next"
