"""The parent of the workers, where their memory is watched."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch")

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
    request = {"id": 1, "task": "run", "text": program, "limit": 50, "memory": 400 << 20, "dir": str(tmp_path / "child")}
    command = [sys.executable, "-c", SERVE]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parents[2]) as parent:
        assert parent.stdin is not None
        assert parent.stdout is not None
        parent.stdin.write(json.dumps(request) + "\n")
        parent.stdin.flush()
        answer = json.loads(parent.stdout.readline())
        parent.stdin.close()
    assert answer["outcome"]["status"] == status
