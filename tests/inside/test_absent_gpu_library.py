"""The library that stands for CUDA's driver, preloaded as a job has it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from bot.inside.protocol import INSIDE

# as autograd's threads for a device: C++ that calls Python, and nothing may be thrown through it
THREAD = """
#include <chrono>
#include <thread>
static void calls(void (*call)()) noexcept {
    for (;; std::this_thread::sleep_for(std::chrono::milliseconds(1))) call();
}
extern "C" void start(void (*call)()) { std::thread(calls, call).detach(); }
"""
# it ends slowly enough for the thread to ask on the slowest machine
PROGRAM = """
import ctypes, sys, time

class Slow:
    def __del__(self, sleep=time.sleep):
        sleep(1.0)

sys.slow = Slow()
call = ctypes.CFUNCTYPE(None)(lambda: None)
ctypes.CDLL(sys.argv[1]).start(call)
time.sleep(0.2)
print("done", flush=True)
"""


@pytest.mark.skipif(not shutil.which("g++") or not shutil.which("cc"), reason="needs a C++ compiler")
def test_a_thread_that_wants_the_interpreter_while_it_ends_is_no_crash(tmp_path: Path) -> None:
    (tmp_path / "thread.cpp").write_text(THREAD)
    subprocess.run(["g++", "-shared", "-fPIC", "-pthread", "-o", "thread.so", "thread.cpp"], cwd=tmp_path, check=True)
    library = tmp_path / "libcuda.so.1"
    subprocess.run(["cc", "-shared", "-fPIC", "-w", str(Path(INSIDE) / "absent_gpu.c"), "-o", str(library)], check=True)

    def ended(**env: str) -> tuple[int, str]:
        argv = [sys.executable, "-c", PROGRAM, str(tmp_path / "thread.so")]
        done = subprocess.run(argv, env={**os.environ, **env}, capture_output=True, text=True, timeout=60, check=False)
        return done.returncode, done.stdout

    if sys.version_info < (3, 14):
        assert ended() == (-6, "done\n"), "without the library it is one"
    assert ended(LD_PRELOAD=str(library)) == (0, "done\n")
