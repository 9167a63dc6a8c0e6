"""Whether workers work here: compiles one function, or a package, in a warm worker, as each candidate of a search is compiled."""

from __future__ import annotations

import os
import sys
from pathlib import Path

from bot.failure.machine_faults import last_line
from bot.failure.outcome import Outcome
from bot.inside.protocol import SHORTCUT_FAILED, Question
from bot.sandbox.files import Scratch
from bot.sandbox.sandbox import NoSandbox, Sandbox
from bot.workers import toolchain
from bot.workers.pool import Pool, PoolError

_FUNCTION = "import torch\ntorch.compile(lambda x: torch.relu(x) + 1)(torch.ones(3, device={device!r})).sum().item()\n"
# A healthy program that uses a package as AOTInductor's users do.
PACKAGE = """import torch
x = torch.ones(3, device={device!r})
path = torch._inductor.aoti_compile_and_package(torch.export.export(torch.nn.ReLU(), (x,)))
torch._inductor.aoti_load_package(path)(x)
"""
# Seconds for compiling either, on a machine with no vector instructions known yet.
_LIMIT = 180.0


def compiles(python: str, device: str = "cpu") -> tuple[bool, str]:
    """Whether a worker of the interpreter `python` compiles one function for the `device` and runs it, and details for people.

    Takes seconds. Runs in the sandbox, as each candidate does: a GPU that torch sees outside may be out of reach there.
    """
    outcome, lines = _asked(python, _FUNCTION.format(device=device))
    if outcome is None:
        return False, lines[0]
    if outcome.status != "ok":
        return False, f"a worker's compile ended in {_ended(outcome)}"
    slower = [line.removeprefix(SHORTCUT_FAILED) for line in lines if line.startswith(SHORTCUT_FAILED)]
    without = f"; slower, without {'; '.join(slower)}" if slower else ""
    return True, f"one function in {outcome.seconds:.1f} s{without}"


def loads(python: str, device: str) -> tuple[bool, str]:
    """Whether a worker of the interpreter `python` makes an AOTInductor package for the `device`, and loads and runs it, and details for
    people. Takes seconds, up to a minute."""
    outcome, lines = _asked(python, PACKAGE.format(device=device))
    if outcome is None:
        return False, lines[0]
    if outcome.status != "ok":
        return False, f"a package of one relu cannot be made and loaded here: {_ended(outcome)}"
    return True, f"one package in {outcome.seconds:.1f} s"


def _asked(python: str, text: str) -> tuple[Outcome | None, list[str]]:
    """How the program `text` ended in a worker, and the lines of the worker's log; without a worker, None and why."""
    with Scratch(prefix="torch-minify-") as name:
        os.chmod(name, 0o711)
        cache, log = _made(Path(name, "cache")), Path(name, "workers.log")
        toolchain.seed(cache)
        try:
            box = Sandbox(_made(Path(name, "boxes")), python)
            toolchain.make(python, box, anew=False)
            with Pool(python, cache, log, box=box) as pool:
                outcome, _ = pool.ask(Question(text, limit=_LIMIT))
        except (PoolError, NoSandbox, OSError) as error:
            return None, [f"no worker: {error}"]
        return outcome, log.read_text(encoding="utf-8", errors="replace").splitlines()


def _ended(outcome: Outcome) -> str:
    return f"{outcome.signal or outcome.status}: {last_line(outcome)[:300] or 'no message'}"


def _made(directory: Path) -> Path:
    directory.mkdir()
    return directory


def confines(python: str) -> tuple[bool, str]:
    """Whether every layer of the sandbox is on for programs under the interpreter `python`, and which are; or what is missing, and what
    helps."""
    if sys.platform != "linux":
        return False, "none: only on Linux"
    with Scratch(prefix="torch-minify-") as place:
        box = Sandbox(Path(place), python)
        try:
            box.require()
        except NoSandbox as error:
            return False, f"{', '.join(box.known_layers) or 'none'}; {error}"
        return True, ", ".join(box.layers)
