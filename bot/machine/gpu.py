"""Whether a GPU can be used here, and what is missing if it cannot."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from bot.machine.capacity import gpu_files
from bot.machine.interpreter import RunCommand, facts_of

Ran = tuple[int, str]
# What the engine can do without one.
NO_NEED = "torch-minify run --cuda-arch compiles for one that isn't there, with a torch that was built for CUDA"
_LIMIT = 60.0  # seconds
_LONGEST = 300  # characters of what is quoted
# as torch warns, before it says where to get a newer one
_TOO_OLD = re.compile(r"[Tt]he NVIDIA driver on your system is too old(?: \(found version \d{1,9}\))?")


def unseen(run: Callable[[Sequence[str]], Ran] | None = None, devices: Sequence[Path] | None = None) -> str | None:
    """What keeps this machine or container from using a GPU, for people; None if nothing does. Runs nobody's program.

    `run` gives the exit status and the output of a command; `devices` are the GPUs' device files, by default this machine's.
    """
    if devices is None:
        devices = gpu_files()
    if not devices:
        return (
            "no GPU is visible: there is no /dev/nvidia*; a container needs --gpus all (the workflow's input container-options), "
            "a container action nvidia as Docker's default runtime"
        )
    status, said = (run or (lambda words: _ran(words, _run)))(["nvidia-smi", "-L"])
    if status != 0:
        return (
            f"the GPU's device files are there, but nvidia-smi -L fails ({_last(said)}): this container lacks the driver's libraries. "
            "NVIDIA_DRIVER_CAPABILITIES must name compute,utility, and the machine needs the NVIDIA container toolkit"
        )
    return None


def missing(python: str, limit: float, ask: RunCommand) -> str | None:
    """What keeps the torch of the interpreter `python` from using a GPU, for people; None if nothing does. Runs the interpreter, for at
    most `limit` seconds, through `ask`, as `facts_of` does."""
    return unused(facts_of(python, limit, ask), ask)


def unused(facts: Mapping[str, object], ask: RunCommand) -> str | None:
    """What keeps an interpreter's torch from using a GPU, for people, with what helps; None if nothing does.

    `facts` are what `facts_of` found of the interpreter; `ask` runs the driver's tool.
    """
    if facts.get("gpus"):
        return None
    if why := unseen(lambda words: _ran(words, ask)):
        return why
    if "torch" not in facts:
        return f"nvidia-smi sees a GPU, but this interpreter has no torch that works: {_last(str(facts.get('error', '')))}"
    warned, visible = facts.get("warned"), facts.get("visible")
    if not facts.get("cuda"):
        why = "it was built without CUDA; --python names an interpreter with one built for CUDA"
    elif warned is not None and (old := _TOO_OLD.search(str(warned))):
        why = f"{old[0]}; update it, or use a torch built for an older CUDA (on GitHub, the input `image: cu126`)"
    elif warned is not None:
        # without where in torch it was said
        why = str(warned).partition(" (Triggered")[0][:_LONGEST]
    elif visible is not None:
        # a driver that is too old is warned of, but no device at all is not
        why = f"CUDA_VISIBLE_DEVICES is {visible!r}, which hides it; unset that, or name a GPU that nvidia-smi -L lists"
    else:
        why = "torch.cuda.is_available() is False, with no reason given"
    return f"nvidia-smi sees a GPU, but torch {facts['torch']} does not: {why}"


def _run(command: Sequence[str], limit: float) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, capture_output=True, text=True, timeout=limit, check=False)


def _ran(command: Sequence[str], ask: RunCommand) -> Ran:
    if shutil.which(command[0]) is None:
        return 127, f"there is no {command[0]}"
    try:
        done = ask(command, _LIMIT)
    except (OSError, subprocess.TimeoutExpired) as error:
        return 1, str(error)
    return done.returncode, done.stdout + done.stderr


def _last(text: str) -> str:
    lines = text.strip().splitlines()
    return lines[-1][:_LONGEST] if lines else "it says nothing"
