"""Whether a GPU can be used here, and what is missing if it cannot."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

from bot.machine import doctor
from bot.machine.capacity import gpu_files
from bot.machine.interpreter import Ask

Ran = tuple[int, str]
_LIMIT = 60.0  # seconds


def unseen(run: Callable[[Sequence[str]], Ran] | None = None, devices: Sequence[Path] | None = None) -> str | None:
    """What keeps this machine or container from using a GPU, for people; None if nothing does. Runs nobody's program.

    `run` gives the exit status and the output of a command; `devices` are the GPUs' device files, by default this machine's.
    """
    if devices is None:
        devices = gpu_files()
    if not devices:
        return (
            "no GPU is visible: there is no /dev/nvidia*. A container sees one only if it was started with --gpus all (the workflow's "
            "input container-options), or if nvidia is the default runtime of the machine's Docker; a container action never gets --gpus"
        )
    status, said = (run or (lambda words: _ran(words, _run)))(["nvidia-smi", "-L"])
    if status != 0:
        return (
            f"the GPU's device files are there, but nvidia-smi -L fails ({_last(said)}): this container lacks the driver's libraries. "
            "NVIDIA_DRIVER_CAPABILITIES must name compute,utility, and the machine needs the NVIDIA container toolkit"
        )
    return None


def missing(python: str, limit: float, ask: Ask) -> str | None:
    """What keeps the torch of the interpreter `python` from using a GPU, for people; None if nothing does. Runs the interpreter, for at
    most `limit` seconds, through `ask`, as `facts_of` does."""
    lines = doctor.examine(python, limit, ask)
    if any(line.what == "GPU" and line.good for line in lines):
        return None
    torch = next((line.found for line in lines if line.what == "torch"), "unknown")
    return (
        unseen(lambda words: _ran(words, ask))
        or f"nvidia-smi sees a GPU, but torch {torch} does not: it was built without CUDA, or for a newer driver than this machine's. "
        "On GitHub the input `image: cu126` is for drivers before 580, and for GPUs before Turing"
    )


def _run(command: Sequence[str], limit: float) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, capture_output=True, text=True, timeout=limit, check=False)


def _ran(command: Sequence[str], ask: Ask) -> Ran:
    if shutil.which(command[0]) is None:
        return 127, f"there is no {command[0]}"
    try:
        done = ask(command, _LIMIT)
    except (OSError, subprocess.TimeoutExpired) as error:
        return 1, str(error)
    return done.returncode, done.stdout + done.stderr


def _last(text: str) -> str:
    lines = text.strip().splitlines()
    return lines[-1][:200] if lines else "it says nothing"
