"""Failures of the machine rather than of the program: said as such, never minimized."""

from __future__ import annotations

import re

from bot.failure.outcome import Outcome

_DISK = "the disk is full"
_KNOWN = (
    (re.compile(r"InvalidCxxCompiler|No working C\+\+ compiler found"), "no C++ compiler"),
    (re.compile(r"\[Errno 28\] No space left on device|OSError: .*No space left"), _DISK),
    # not of a package that is called like it, nor of a name that torch does not have
    (
        re.compile(
            r"^ModuleNotFoundError: No module named 'torch'|^ImportError: lib(?:torch|c10)\w*\.so|^no torch here: |^torch \S+ is too old",
            re.M,
        ),
        "no usable torch in this interpreter",
    ),
    (re.compile(r"^the sandbox ended the program: no space left on the disk", re.M), _DISK),
    (re.compile(r"^the sandbox ended the program: too many processes", re.M), "the program started too many processes"),
    (re.compile(r"Cannot find a working triton installation|TritonMissing"), "no working triton"),
    (re.compile(r"fatal error: Python\.h: No such file"), "the interpreter's C headers are missing"),
)  # fmt: skip


_MISSING = (
    (re.compile(r"ModuleNotFoundError: No module named (.+)"), "a package that this interpreter does not have"),
    (re.compile(r"FileNotFoundError: .*No such file or directory: (.+)"), "a file that is not there"),
)


def last_line(outcome: Outcome) -> str:
    """The last line that a run printed (its `outcome`), the marks below a line of code apart; empty where it printed nothing."""
    return next((line for line in reversed(outcome.text.splitlines()) if line.strip(" ^~")), "")


def missing(outcome: Outcome) -> str | None:
    """The missing package or file that ended a program, in a few words; None where the `outcome` names none."""
    found = ((pattern.fullmatch(last_line(outcome)), what) for pattern, what in _MISSING)
    return next((f"{what}, {match[1]}" for match, what in found if match), None)


def may_pass(outcome: Outcome) -> bool:
    """Whether the next run may end otherwise than this `outcome`: a fault of ours, a disk that was full, a run that the kernel killed.
    The kernel takes the largest process, whoever filled the memory. A run that met its own limit meets it again."""
    return outcome.status == "infra" or outcome.signal == "SIGKILL" or fault_of(outcome) == _DISK


def fault_of(outcome: Outcome) -> str | None:
    """What is wrong with the machine by this `outcome`, in a few words; None where the program is to blame."""
    if outcome.status == "memory":
        return "the machine ran out of memory"
    for pattern, words in _KNOWN:
        if pattern.search(outcome.text[-20_000:]):
            return words
    return None
