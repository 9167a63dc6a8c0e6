"""What ends in the middle: the program, its supervisor, the engine, each at any moment. Nothing is left, and how it ended is said."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from bot.sandbox.order import LANDLOCK, ProcessReport
from bot.sandbox.process import Process
from bot.sandbox.sandbox import NoSandbox, Sandbox
from tests.processes import children_of
from tests.sandbox.ways import prepared, running_with

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the sandbox is Linux's")
MOMENTS = 20
STAY = "import os, sys, time\nif os.fork() == 0:\n    os.setsid()\ntime.sleep(300)"


@pytest.fixture
def box(tmp_path: Path) -> Iterator[Sandbox]:
    try:
        one = Sandbox(tmp_path)
        assert one.layers
        yield one
    except NoSandbox as error:
        pytest.skip(str(error))


def started(box: Sandbox, mark: str) -> Process:
    words = [sys.executable, "-I", "-S", "-c", STAY, mark]
    return box.start(words, cwd=Path("/"), env=os.environ, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def gone(mark: str) -> bool:
    """Whether nothing with this mark runs any more, after a moment to go."""
    for _ in range(100):
        if not running_with(mark):
            return True
        time.sleep(0.05)
    return False


def test_an_interpreter_that_does_not_say_in_time_what_it_reads_can_start(box: Sandbox, tmp_path: Path) -> None:
    """On a busy machine: what the link in a virtual environment leads to is read all the same."""
    if LANDLOCK not in box.layers:
        pytest.skip("everything may be read")
    library, python = tmp_path / "base" / "lib.txt", tmp_path / "venv" / "bin" / "python"
    real = library.parent / "bin" / "python"
    for place in (real.parent, python.parent, tmp_path / "scratch"):
        place.mkdir(parents=True)
    library.write_text("found")
    real.write_text(f"#!/bin/sh\ncase $2 in *json*) sleep 60 ;; esac\ncat {library}\n")
    real.chmod(0o755)
    python.symlink_to(real)
    other = Sandbox(tmp_path / "scratch", str(python), patience=0.5)
    process = other.start([str(python), "-c", "pass"], cwd=Path("/"), env=os.environ, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
    said, _ = process.communicate()
    process.end()
    assert said == b"found"


def test_it_is_ended_at_any_moment(box: Sandbox, tmp_path: Path) -> None:
    mark = f"mark-{uuid.uuid4()}"
    for moment in range(MOMENTS):
        process = started(box, mark)
        time.sleep(random.Random(moment).random() * 0.4)
        process.end()
        assert process.returncode == -signal.SIGKILL
        assert not running_with(mark)
    assert [path.name for path in tmp_path.iterdir()] == []


def test_it_dies_at_any_moment(box: Sandbox) -> None:
    """Its own death, as by the kernel for want of memory, is passed on as it was."""
    mark = f"mark-{uuid.uuid4()}"
    for moment in range(MOMENTS // 2):
        process = started(box, mark)
        while not (found := {*running_with(mark)} & {*children_of(process.pid)}):
            time.sleep(0.01)
        time.sleep(random.Random(moment).random() * 0.05)
        os.kill(found.pop(), signal.SIGKILL)
        assert process.wait(10) == -signal.SIGKILL
        process.end()
        assert gone(mark)


def test_a_program_does_not_survive_its_supervisor(box: Sandbox) -> None:
    mark = f"mark-{uuid.uuid4()}"
    words = [sys.executable, "-I", "-S", "-c", "import time; time.sleep(300)", mark]
    process = box.start(words, cwd=Path("/"), env=os.environ)
    while not running_with(mark):
        time.sleep(0.01)
    process.kill()
    process.end()
    assert gone(mark)


def test_the_engine_is_killed_at_any_moment() -> None:
    mark = f"mark-{uuid.uuid4()}"
    with prepared("host-root" if os.geteuid() == 0 else "host-user") as way:
        for moment in range(MOMENTS // 2):
            engine = subprocess.Popen(way.words(STAY, argv=[mark]), env=way.environment(), stdout=subprocess.DEVNULL)
            time.sleep(random.Random(moment).random())
            engine.kill()
            engine.wait()
            assert gone(mark)


def test_a_layer_that_is_lost_is_not_done_without(box: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the first process had, each later one has, or it does not start."""
    monkeypatch.setattr(box, "_probed", ProcessReport((*box.layers, "of-tomorrow")))
    process = started(box, "mark")
    process.wait(20)
    process.end()
    assert "of-tomorrow" in process.report.failed
    assert process.returncode == 125


def test_no_such_program_is_an_answer(box: Sandbox, tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        box.start([str(tmp_path / "none")], cwd=tmp_path, env={})
    process = box.start([sys.executable, "-c", ""], cwd=tmp_path / "none", env=os.environ)
    process.wait(20)
    process.end()
    assert "cannot start" in process.report.failed
