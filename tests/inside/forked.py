"""Roles of `boot.py`, each in a process of its own that is forked from one which has imported the compiler: importing it takes each process
three seconds.

The parent has run nothing. What its children do not share with a new interpreter is that the modules of torch are there when they begin.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

BOOT = Path(__file__).parents[2] / "bot" / "inside" / "boot.py"
# Its children leave the loop, and end as the interpreter of a script does: with its traceback, its status and what is to be done at exit.
_PARENT = f"""
import gc, importlib, json, os, signal, sys
sys.path.insert(0, {str(BOOT.parent)!r})
import boot
gc.disable()
boot.load_package()
for name in ("eager.main", "children", "program"):
    importlib.import_module(f"{{boot.PACKAGE}}.{{name}}")
from torch_minify_inside.entry_points import PLACES
for owner in sorted({{place.rpartition(".")[0] for places in PLACES.values() for place in places}}):
    try:
        importlib.import_module(owner)
    except ImportError:
        pass
while line := sys.stdin.readline():
    asked = json.loads(line)
    child = os.fork()
    if not child:
        break
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    print(asked["number"], status, flush=True)
else:
    os._exit(0)
signal.alarm(asked["limit"])
os.chdir(asked["cwd"])
os.environ.clear()
os.environ.update(asked["env"])
for descriptor, path in enumerate((os.devnull, *asked["output"])):
    opened = os.open(path, os.O_RDWR)
    os.dup2(opened, descriptor)
    os.close(opened)
sys.stdin = open(0, closefd=False)
sys.argv = asked["argv"]
boot.main()
"""


@dataclass(frozen=True)
class Ended:
    """How a process ended, and what it printed."""

    returncode: int
    stdout: str
    stderr: str


class Forks:
    """The parent of such processes."""

    def __init__(self) -> None:
        self._number = 0
        env = {**os.environ, "PYTHONPATH": ""}
        self._parent = subprocess.Popen([sys.executable, "-c", _PARENT], env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def run(self, *arguments: str, cwd: Path, env: Mapping[str, str], limit: int = 100) -> Ended:
        """Run `boot.py ARGUMENTS`; after `limit` seconds a signal ends it."""
        assert self._parent.stdin is not None
        assert self._parent.stdout is not None
        with tempfile.TemporaryDirectory() as place:
            output = [Path(place, name) for name in ("stdout", "stderr")]
            for file in output:
                file.touch()
            self._number += 1
            asked = {"number": self._number, "argv": [str(BOOT), *arguments], "cwd": str(cwd), "env": dict(env), "limit": limit}
            self._parent.stdin.write(f"{json.dumps({**asked, 'output': [*map(str, output)]})}\n")
            self._parent.stdin.flush()
            number = status = 0
            while number != self._number:  # a test that was broken off has not read its own
                number, status = map(int, self._parent.stdout.readline().split())
            return Ended(status, *(file.read_text(encoding="utf-8", errors="replace") for file in output))

    def __enter__(self) -> Forks:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        assert self._parent.stdin is not None
        self._parent.stdin.close()
        try:
            self._parent.wait(30)
        finally:
            self._parent.kill()
            self._parent.wait()
