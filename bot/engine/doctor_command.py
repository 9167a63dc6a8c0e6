"""`torch-minify doctor`: the machine, its sandbox, and whether a worker compiles here."""

from __future__ import annotations

from bot.machine import doctor
from bot.workers.compile_check import compiles, confines


def main(python: str) -> int:
    """Print what the machine can do with the interpreter `python`; the exit status."""
    return doctor.main(python, compiles, confines)
