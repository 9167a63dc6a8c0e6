"""The role `control` of boot.py: one script with the compiler taken out, in its own process."""

from __future__ import annotations

from collections.abc import Sequence
from typing import get_args

from ..protocol import ControlOption, Precision
from .compiler_out import run_control


def main(arguments: Sequence[str]) -> None:
    """Run the control; `arguments` are `[OPTION] SCRIPT [ARGS...]`, or `-m MODULE` in place of the script; see `run_control` and
    `ControlOption`."""
    option = arguments[0] if arguments[0] in get_args(ControlOption) else None
    script, *argv = arguments[1:] if option else arguments
    known: dict[str | None, Precision] = {f"--{one}": one for one in get_args(Precision)}
    untold: dict[str | None, Precision] = {"--untold": "fp64", "--moved-untold": "moved"}
    precision = untold.get(option) or known.get(option)
    repeats, bare = option == "--repeats", option == "--bare"
    run_control(script, list(argv), precision=precision, repeats=repeats, tells=option not in (*untold, "--copied"), bare=bare)
