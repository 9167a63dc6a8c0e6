"""What `/minify doctor` reports about the machine that minifies."""

from __future__ import annotations

from collections.abc import Sequence

from bot.action.minify.isolation import Account
from bot.action.redaction import redact

# The file with the report, in place of a result, and its time limit in seconds.
FILE, LIMIT = "doctor.txt", 600.0
MOST_LINES, _LONGEST = 200, 500
# Bytes that a comment can hold. If something goes wrong, the end says why.
_MOST = 8_000


def machine_report(heard: Sequence[str], status: int, gpu_missing: str | None, account: Account, *, gpu_needed: bool) -> str:
    """The lines about a machine: the output of `torch-minify doctor` (the end of `heard`) with its exit `status`, and what only we can
    see.

    `gpu_missing` says why no GPU is visible, and `gpu_needed` whether the workflow asks for one; programs run under `account`.
    """
    if gpu_missing is None:
        gpu = "ok      GPU: visible"
    else:
        gpu = f"{'CHANGE' if gpu_needed else '?':<7} GPU: {gpu_missing}"
    own = account.uid is not None
    ours = [
        gpu,
        f"{'ok' if own else '?':<7} programs run under {'an account of their own' if own else 'the account of the job'}",
        f"{'ok' if status == 0 else 'CHANGE':<7} torch-minify doctor: exit status {status}",
    ]
    return "".join(redact(line)[:_LONGEST] + "\n" for line in (*ours, *(f"        {line}" for line in _end_of(heard))))


def _end_of(heard: Sequence[str]) -> Sequence[str]:
    """As many of the last lines as fit."""
    room = _MOST
    for index in range(len(heard) - 1, -1, -1):
        room -= len(heard[index][:_LONGEST].encode("utf-8", errors="replace")) + 10
        if room < 0:
            return ["[…]", *list(heard)[index + 1 :]]
    return heard
