"""`torch-minify doctor`: the machine, its sandbox, and whether a worker compiles here."""

from __future__ import annotations

from bot.machine import doctor
from bot.sandbox.accounts import keep_to_this_process
from bot.sandbox.aside import ask
from bot.workers.compile_check import compiles, confines, loads


def main(python: str) -> int:
    """Print what the machine can do with the interpreter `python`, and return the exit status."""
    keep_to_this_process()  # as a job does, before anything is started
    return doctor.main(python, ask, compiles, confines, loads)
