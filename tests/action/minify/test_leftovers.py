from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="Linux alone has subreapers")

# A daemon as programs make them: a session of its own, two forks, no stream; it writes again and again.
DAEMON = """
import os, sys, time
if os.fork():
    os._exit(0)
os.setsid()
if os.fork():
    os._exit(0)
for fd in range(3):
    os.close(fd)
for _ in range(600):
    with open(sys.argv[1], "a") as file:
        file.write("x")
    time.sleep(0.05)
"""
# In a process of its own: what a test adopts would stay the test's.
CALLER = """
import subprocess, sys, time
from bot.action.minify.leftovers import adopt_orphans, descendants, kill_all_but
kept = subprocess.Popen(["sleep", "60"])
before = descendants()
adopt_orphans()
subprocess.run([sys.executable, "-I", sys.argv[1], sys.argv[2]], check=True)
while not open(sys.argv[2], "a+").tell():
    time.sleep(0.05)
print(kill_all_but(before), kept.poll(), len(descendants()))
kept.kill()
"""


def test_a_daemon_is_killed_and_what_was_there_before_is_not(tmp_path: Path) -> None:
    daemon, trace = tmp_path / "daemon.py", tmp_path / "trace"
    daemon.write_text(DAEMON, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-c", CALLER, str(daemon), str(trace)],
        cwd=Path(__file__).resolve().parents[3],
        env={"PATH": os.environ["PATH"]},
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert done.stdout.split() == ["1", "None", "1"]
    size = trace.stat().st_size
    time.sleep(0.3)
    assert trace.stat().st_size == size
