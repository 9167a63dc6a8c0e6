"""`torch-minify doctor`: what this machine can do."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable
from dataclasses import dataclass

from bot.machine import gpu
from bot.machine.interpreter import LIMIT, RunCommand, facts_of


@dataclass(frozen=True)
class Line:
    """One thing that was checked."""

    what: str
    found: str
    good: bool
    needed: bool


def examine(python: str, limit: float, ask: RunCommand) -> list[Line]:
    """What there is for the interpreter `python`, in the order in which a person would look. It may take `limit` seconds. `ask` is as for
    `facts_of`."""
    facts = facts_of(python, limit, ask)
    torch, gpus = facts.get("torch"), facts.get("gpus")
    compiler = next((c for c in (os.environ.get("CXX"), "g++", "clang++", "c++") if c and shutil.which(c)), None)
    return [
        Line("python", str(facts.get("python", f"{python} does not run")), "python" in facts, True),
        Line("torch", str(torch or facts.get("error", "not installed")), torch is not None and _supported(str(torch)), True),
        Line("C++ compiler", compiler or "none found: Inductor on a CPU needs g++ or clang++", compiler is not None, True),
        Line("Python headers", "found" if facts.get("headers") else "missing", bool(facts.get("headers")), False),
        Line("GPU", ", ".join(map(str, gpus)) if isinstance(gpus, list) and gpus else gpu.unused(facts, ask) or "none", bool(gpus), False),
        Line("triton", str(facts.get("triton", "none")), "triton" in facts, False),
    ]


def _supported(version: str) -> bool:
    parts = version.split("+")[0].split(".")
    try:
        return (int(parts[0]), int(parts[1])) >= (2, 9)
    except (ValueError, IndexError):
        return False


def main(
    python: str,
    ask: RunCommand,
    compiles: Callable[[str, str], tuple[bool, str]],
    sandbox: Callable[[str], tuple[bool, str]],
    loads: Callable[[str, str], tuple[bool, str]],
) -> int:
    """Print what `python` has. `ask` is as for `facts_of`; `compiles` says whether it compiles a function for a device, `sandbox` whether
    all layers confine it, and `loads` whether it makes and loads an AOTInductor package for a device; each adds details.

    Exit status 0, or 1 if something needed is missing or does not work.
    """
    lines = examine(python, LIMIT, ask)
    whole, layers = sandbox(python)
    lines.append(Line("sandbox", layers, whole, False))
    if all(line.good for line in lines if line.needed):
        good, found = compiles(python, "cpu")
        lines.append(Line("compile", found, good, True))
        if any(line.what == "GPU" and line.good for line in lines):
            good, found = compiles(python, "cuda")
            lines.append(Line("compile on the GPU", found, good, True))
            if good:
                good, found = loads(python, "cuda")
                lines.append(Line("AOTInductor package on the GPU", found, good, False))
    for line in lines:
        mark = "ok  " if line.good else ("MISS" if line.needed else "-   ")
        sys.stdout.write(f"{mark} {line.what}: {line.found}\n")
    return 0 if all(line.good for line in lines if line.needed) else 1
