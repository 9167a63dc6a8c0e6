"""The role `control` of boot.py: one script with the compiler taken out, in a process of its own."""

from __future__ import annotations

from collections.abc import Sequence

from .compiler_out import run_control


def main(arguments: Sequence[str]) -> None:
    """The `arguments` are `[--fp64 | --repeats] SCRIPT [ARGS...]`, or `-m MODULE` for the script; see `run_control`."""
    option = arguments[0] if arguments[0] in ("--fp64", "--repeats") else None
    script, *argv = arguments[1:] if option else arguments
    run_control(script, list(argv), fp64=option == "--fp64", repeats=option == "--repeats")
