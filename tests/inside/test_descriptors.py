"""`bot/inside/descriptors.py`: workers hand over their tensors where no socket can be made."""

import subprocess
import sys
from pathlib import Path

import pytest

from bot.engine.withheld import withheld
from bot.failure.outcome import Outcome
from bot.sandbox import seccomp
from bot.sandbox.sandbox import Sandbox

_PROGRAM = """
import multiprocessing, sys
from bot.inside import descriptors
from bot.sandbox import kernel, seccomp

kernel.prctl(kernel.PR_SET_NO_NEW_PRIVS, 1)
if {confined}:
    seccomp.enter(frozenset())
if {ours}:
    descriptors.pass_without_sockets()
import torch

def work(numbers, count):
    for k in range(count):
        numbers.put(torch.full((3,), float(k)))
    numbers.put(None)
    numbers.join()

if __name__ == "__main__":
    context = torch.multiprocessing.get_context("fork")
    numbers = context.JoinableQueue()
    worker = context.Process(target=work, args=(numbers, {count}), daemon=True)
    worker.start()
    got = []
    while (value := numbers.get(timeout=20)) is not None:
        got.append(value.sum().item())
        numbers.task_done()
    numbers.task_done()
    worker.join(10)
    print("sum", sum(got))
    from multiprocessing import resource_sharer
    print("ours", resource_sharer.DupFd is descriptors.Descriptor)
"""


_MANAGER = """
import multiprocessing, socket, sys
from bot.inside import descriptors
from bot.sandbox import kernel, seccomp

kernel.prctl(kernel.PR_SET_NO_NEW_PRIVS, 1)
seccomp.enter(frozenset({families}))
if {ours}:
    descriptors.pass_without_sockets()

def work(held):
    held["x"] = 5

if __name__ == "__main__":
    context = multiprocessing.get_context("{method}")
    with context.Manager() as manager:
        held = manager.dict()
        worker = context.Process(target=work, args=(held,))
        worker.start()
        worker.join(60)
        print("got", dict(held))
"""


def _managed(tmp_path: Path, *, families: str, ours: bool, method: str = "fork") -> str:
    script = tmp_path / "manages.py"
    script.write_text(_MANAGER.format(families=families, ours=ours, method=method))
    env = {"PYTHONPATH": str(Path(__file__).parents[2]), "PATH": ""}
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, timeout=120, check=False, env=env)
    return done.stdout + done.stderr


def _run(tmp_path: Path, *, confined: bool, ours: bool, count: int = 5) -> subprocess.CompletedProcess[str]:
    script = tmp_path / "loads.py"
    script.write_text(_PROGRAM.format(confined=confined, ours=ours, count=count))
    root = Path(__file__).parents[2]
    return subprocess.run(
        [sys.executable, str(script)], capture_output=True, text=True, timeout=120, check=False, env={"PYTHONPATH": str(root), "PATH": ""}
    )


needs_filter = pytest.mark.skipif(not seccomp.supported(), reason="no filter for this processor")


@needs_filter
def test_tensors_come_through_without_a_socket(tmp_path: Path) -> None:
    done = _run(tmp_path, confined=True, ours=True)
    assert "sum 30.0" in done.stdout, done.stderr
    assert "ours True" in done.stdout


@needs_filter
def test_a_program_may_hold_back_many(tmp_path: Path) -> None:
    done = _run(tmp_path, confined=True, ours=True, count=600)
    assert "sum 539100.0" in done.stdout, done.stderr


@needs_filter
@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_a_manager_listens_on_loopback_where_it_has_a_network_of_its_own(tmp_path: Path, method: str) -> None:
    assert "got {'x': 5}" in _managed(tmp_path, families="{socket.AF_INET}", ours=True, method=method)


@needs_filter
def test_where_there_is_none_it_fails_in_words_that_are_known(tmp_path: Path) -> None:
    said = _managed(tmp_path, families="set()", ours=True)
    assert "got" not in said
    ended = withheld(Outcome(status="raised", text=said), Sandbox(tmp_path / "scratch"))
    assert ended is not None
    assert "--network on" in ended.reason
    assert "PermissionError" in _managed(tmp_path, families="{socket.AF_INET}", ours=False)


@needs_filter
def test_without_it_they_do_not(tmp_path: Path) -> None:
    done = _run(tmp_path, confined=True, ours=False)
    assert "sum 30.0" not in done.stdout
    assert "PermissionError" in done.stderr


def test_where_sockets_can_be_made_nothing_changes(tmp_path: Path) -> None:
    done = _run(tmp_path, confined=False, ours=True)
    assert "sum 30.0" in done.stdout, done.stderr
    assert "ours False" in done.stdout
