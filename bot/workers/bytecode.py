"""Bytecode for an interpreter whose torch has none.

Images are often made with PYTHONDONTWRITEBYTECODE, or by an installer that does not compile, and nothing can be written next to packages
that belong to somebody else. Each process that imports torch's compiler then compiles 2,600 files first: ten seconds of fifteen, in the
capture, in the search and in the proof. So a process without a program compiles them once for a job, and every process reads them.
"""

from __future__ import annotations

import math
import os
import re
from pathlib import Path

from bot.inside.protocol import command
from bot.sandbox.files import take_over
from bot.sandbox.sandbox import Sandbox
from bot.workers import environment
from bot.workers.process import Patience, Wanted, run_process

# The file whose bytecode is looked for: every compile imports it, and a program that does not compile does not.
_IMPORTED = Path("torch", "_inductor", "lowering.py")
_LIMIT = 20.0  # seconds
_MOST_NAMES = 100
_IMPORT = re.compile(r"^[ \t]*(?:import|from)[ \t]+([A-Za-z_]\w*)", re.MULTILINE)


def lend(python: str, box: Sandbox, most: float, program: str = "", *, wanted: Wanted = None) -> None:
    """Have each process of the sandbox `box` under the interpreter `python` find bytecode, if the interpreter has none of its own.

    It takes at most `most` seconds, once for a job. What the `program`, a source text, imports is compiled last. Raises Interrupted if
    `wanted` returned False.
    """
    place = box.scratch / "bytecode"
    if "PYTHONPYCACHEPREFIX" in os.environ or place.exists() or not lacking(box.packages_of(python)):
        return
    place.mkdir()
    place.chmod(0o755)  # whatever our umask is
    seconds = min(_LIMIT, most)
    env = {**environment.of_nobody(os.environ, place), "PYTHONPYCACHEPREFIX": str(place)}
    names = [name for name in dict.fromkeys(_IMPORT.findall(program)) if name.isascii()][:_MOST_NAMES]
    order = command(python, "bytecode", str(seconds * 0.8), *names)
    outcome = run_process(order, Patience(math.inf, seconds), cwd=place, env=env, wanted=wanted, box=box, write=(place,))
    take_over(place)
    # with the variable set, Python looks nowhere else: incomplete bytecode would be slower than none
    if outcome.status == "ok" and any(place.rglob(f"{_IMPORTED.stem}.*.pyc")):
        box.keep_bytecode(python, place)


def lacking(packages: list[Path]) -> bool:
    """Whether torch lies in one of the directories `packages` without bytecode next to it."""
    source = next((place / _IMPORTED for place in packages if (place / _IMPORTED).is_file()), None)
    return source is not None and not any((source.parent / "__pycache__").glob(f"{source.stem}.*.pyc"))
