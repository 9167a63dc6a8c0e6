"""The role `control` of boot.py: one script with the compiler taken out, in a process of its own."""

from __future__ import annotations

from collections.abc import Sequence

from .compiler_out import run_control


def main(arguments: Sequence[str]) -> None:
    """`[--fp64] SCRIPT [ARGS...]`, or `[--fp64] -m MODULE [ARGS...]`."""
    fp64 = arguments[:1] == ["--fp64"]
    script, *argv = arguments[1:] if fp64 else arguments
    run_control(script, list(argv), fp64)
