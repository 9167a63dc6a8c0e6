"""Processes that write PyTorch's dumps are waited for, but not for long."""

from __future__ import annotations

import subprocess
import sys
import time

from bot.inside.capture.dumps import finish


def test_they_are_waited_for() -> None:
    process = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(0.5)"])
    finish([process.pid], 60.0)
    with_nobody_left = time.monotonic()
    finish([process.pid], 60.0)
    assert time.monotonic() - with_nobody_left < 30
    process.wait()


def test_not_for_long() -> None:
    process = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
    started = time.monotonic()
    finish([process.pid], 0.2)
    assert time.monotonic() - started < 60
    assert process.poll() is None
    process.kill()
    process.wait()
