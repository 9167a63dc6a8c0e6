"""`bot/inside/descriptors.py`: workers hand over their tensors where no socket can be made."""

import subprocess
import sys
from pathlib import Path

import pytest

from bot.sandbox import seccomp

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
def test_without_it_they_do_not(tmp_path: Path) -> None:
    done = _run(tmp_path, confined=True, ours=False)
    assert "sum 30.0" not in done.stdout
    assert "PermissionError" in done.stderr


def test_where_sockets_can_be_made_nothing_changes(tmp_path: Path) -> None:
    done = _run(tmp_path, confined=False, ours=True)
    assert "sum 30.0" in done.stdout, done.stderr
    assert "ours False" in done.stdout
