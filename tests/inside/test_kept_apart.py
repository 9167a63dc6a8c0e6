"""A fork that has one question: what it cannot do to the process that judges it, and what it still can."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from bot.inside import kept_apart
from bot.sandbox import kernel, landlock

needs_scopes = pytest.mark.skipif(not landlock.scopes_signals(), reason="this kernel's Landlock does not know signals")


def status_of(act: Callable[[], object]) -> int:
    """How a fork in a sandbox ends that keeps to itself, then acts: 0, or the number of the error."""
    pid = os.fork()
    if pid == 0:
        try:
            kernel.prctl(kernel.PR_SET_NO_NEW_PRIVS, 1)
            if landlock.abi():
                rules = landlock.Ruleset(tcp=False)
                rules.allow(["/"], write=True)
                rules.enter()
            kept_apart.keep_to_itself()
            act()
        except OSError as error:
            os._exit(error.errno or 99)
        except BaseException:
            os._exit(98)
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


@needs_scopes
def test_it_sends_no_signal_to_its_parent() -> None:
    assert status_of(lambda: os.kill(os.getppid(), signal.SIGCONT)) == 1


def test_it_sends_signals_to_its_own() -> None:
    def act() -> None:
        child = os.fork()
        if child == 0:
            time.sleep(30)
            os._exit(0)
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)

    assert status_of(act) == 0


def test_it_moves_files_between_directories(tmp_path: Path) -> None:
    # Triton writes a file into a directory of its own first, then moves it into its cache
    for name in ("own", "cache"):
        (tmp_path / name).mkdir()
    (tmp_path / "own" / "kernel.so").write_text("compiled")
    assert status_of(lambda: os.replace(tmp_path / "own" / "kernel.so", tmp_path / "cache" / "kernel.so")) == 0
    assert (tmp_path / "cache" / "kernel.so").read_text() == "compiled"
