"""Turns what the user named into a script that can be run."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

from bot.engine.inputs.take import take
from bot.engine.inputs.taken import Place, Taken
from bot.engine.target import Target
from bot.sandbox.accounts import keep_to_this_process
from bot.sandbox.aside import ask

# Asks an interpreter for the version of its torch without importing that, which takes seconds.
_VERSION = "import importlib.metadata; print(importlib.metadata.version('torch'))"
_LIMIT = 30.0


def prepared(path: Path, argv: tuple[str, ...], python: str, scratch: Path, graph: str | None, inputs: Path | None) -> tuple[Target, Taken]:
    """The program in `path`, and what it was taken for.

    Args:
        path: What the user named.
        argv: Arguments for a script.
        python: The interpreter that will run it.
        scratch: An empty directory, which has to exist as long as the program is needed.
        graph: Which graph is meant, if the input holds several.
        inputs: A file of inputs for an exported program.

    Raises:
        NotUnderstood: it is not a program, and holds none.
    """
    # before the user's interpreter starts: what is installed in it runs then, and must not have our rights
    keep_to_this_process()
    unpacked = scratch / "unpacked"
    unpacked.mkdir()
    found = take(Place(path, unpacked, graph, inputs, _torch_of(python)))
    if found.text is None:
        return Target(path.resolve(), None, argv), found
    script = scratch / (re.sub(r"[^\w-]", "_", path.resolve().stem)[:80] + ".py")
    script.write_text(found.text, encoding="utf-8")
    _open(scratch)
    return Target(script, None, argv), found


def _open(scratch: Path) -> None:
    """Let other accounts read what is in `scratch`, whatever our umask is: the program may run under another one."""
    for folder, _, files in os.walk(scratch):
        os.chmod(folder, 0o755)
        for name in files:
            os.chmod(os.path.join(folder, name), 0o644)


def look_beside(path: Path) -> None:
    """Let the programs that this process starts find modules next to the file `path`, as if they ran there."""
    beside = str(path.resolve().parent)
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [beside, os.environ.get("PYTHONPATH", "")]))


def _torch_of(python: str) -> str:
    """The version of an interpreter's torch; empty if it does not say."""
    try:
        done = ask([python, "-c", _VERSION], _LIMIT)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""
