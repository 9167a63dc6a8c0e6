"""The parent of the workers, where their memory is watched."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("torch")

from bot.inside import server
from bot.inside.protocol import Question, encode

SERVE = """
import sys
from bot.inside import server
parent = server.Server(0, 1, resident=True)
parent.serve()
"""


@pytest.mark.parametrize(
    ("program", "status"),
    [
        ("held = bytearray(b'x' * (600 << 20))\nimport time\ntime.sleep(60)", "memory"),
        ("import mmap\nreserved = mmap.mmap(-1, 1 << 36, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | 0x4000)", "ok"),
    ],
)
def test_what_is_held_counts_and_not_what_is_reserved(tmp_path: Path, program: str, status: str) -> None:
    assert answer(tmp_path, program)["status"] == status


def answer(tmp_path: Path, program: str) -> dict[str, Any]:
    """What a parent in a process of its own answers."""
    question = Question(program, limit=50, memory=400 << 20, id=1, dir=str(tmp_path / "child"))
    command = [sys.executable, "-c", SERVE]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parents[2]) as parent:
        assert parent.stdin is not None
        assert parent.stdout is not None
        parent.stdin.write(encode(question) + "\n")
        parent.stdin.flush()
        said = json.loads(parent.stdout.readline())
        parent.stdin.close()
    outcome: dict[str, Any] = said["outcome"]
    return outcome


def test_what_the_parent_holds_is_no_garbage_of_its_children(tmp_path: Path) -> None:
    assert answer(tmp_path, "import gc\nassert gc.isenabled() and gc.get_freeze_count() > 1000")["status"] == "ok"


def test_a_system_without_room_for_a_process_is_an_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    def full() -> int:
        raise BlockingIOError(11, "Resource temporarily unavailable")

    reading, writing = os.pipe()
    parent = server.Server(0, writing)
    before = os.listdir("/proc/self/fd")
    monkeypatch.setattr(os, "fork", full)
    parent.start(Question("", limit=1, id=7))
    assert os.listdir("/proc/self/fd") == before
    assert not parent.children
    said = json.loads(os.read(reading, 65536))
    os.close(reading)
    os.close(writing)
    assert said["id"] == 7
    assert said["outcome"]["status"] == "infra"
    assert "Resource temporarily unavailable" in said["outcome"]["text"]


def test_a_ping_is_answered_at_once() -> None:
    requests, asks = os.pipe()
    answers, writing = os.pipe()
    parent = server.Server(requests, writing)
    os.write(asks, b'{"ping": 3}\n')
    assert parent.accept()
    assert json.loads(os.read(answers, 65536)) == {"pong": 3}
    for fd in (requests, asks, answers, writing):
        os.close(fd)


@pytest.mark.parametrize("written", [b"[" * 100_000, b'{"a":' * 100_000, b"no JSON", b"[1]", b'"x"', b"\xff"])
def test_what_a_program_writes_into_our_pipe_is_no_answer(written: bytes) -> None:
    """And the parent goes on."""
    child = server.Child(Question("", limit=10.0), os.getpid(), -1, -1)
    child.answer, child.status = written, 0
    assert child.outcome()["status"] in ("infra", "ok")


def test_an_answer_without_end_takes_no_more_than_its_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "LONGEST", 1000)
    reading, writing = os.pipe()
    child = server.Child(Question("", limit=10.0), os.getpid(), -1, reading)
    for _ in range(20):
        os.write(writing, b"x" * 500)
        assert child.read(reading)
    os.close(reading)
    os.close(writing)
    assert len(child.answer) <= 1500


def test_on_a_busy_machine_a_child_is_late_by_its_own_time() -> None:
    """It has had half of the time that passed: so it has as much again."""
    child = server.Child(Question("", limit=10.0), os.getpid(), -1, -1)
    began = child.deadline - 10.0
    own = 5.0
    child.own = SimpleNamespace(look=lambda: None, seconds=lambda: own)  # type: ignore[assignment]
    assert not child.is_late(began + 9.0)
    assert not child.is_late(began + 10.0)
    assert child.deadline == began + 15.0
    own = 10.0
    assert child.is_late(began + 15.0)
    child.asked, child.deadline = 1, began + 15.1  # its stack was asked for: what is waited from here on is waited for that
    own = 5.0
    assert child.is_late(began + 15.2)


@pytest.mark.skipif(sys.platform != "linux", reason="the state of a process is read from /proc")
@pytest.mark.parametrize("limit", [0.1, 600.0])
def test_a_child_that_a_signal_has_stopped_is_not_said_to_be_slow(monkeypatch: pytest.MonkeyPatch, limit: float) -> None:
    """It is asked again then: a timeout would be a verdict on the program. And its limit may be all the time that is left."""
    reading, writing = os.pipe()
    parent = server.Server(0, writing)
    monkeypatch.setattr(server, "offspring", set)
    with subprocess.Popen(["sh", "-c", "kill -STOP $$"], start_new_session=True) as stopped:
        os.waitid(os.P_PID, stopped.pid, os.WSTOPPED | os.WNOWAIT)
        silent = [os.open(os.devnull, os.O_RDONLY) for _ in range(2)]
        parent.children[7] = server.Child(Question("", limit=limit, id=7), stopped.pid, *silent)
        until = time.monotonic() + 30
        while parent.children and time.monotonic() < until:
            parent.watch()
            time.sleep(0.01)
    assert json.loads(os.read(reading, 65536))["outcome"]["status"] == "infra"
    for end in (reading, writing):
        os.close(end)
