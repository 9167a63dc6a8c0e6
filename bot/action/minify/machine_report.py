"""What `/minify doctor` says of the machine that minifies."""

from __future__ import annotations

from collections.abc import Sequence

from bot.action.minify.isolation import Account
from bot.action.redaction import redact

# The file with it, in place of a result, and seconds for it.
FILE, LIMIT = "doctor.txt", 600.0
MOST_LINES, _LONGEST = 200, 500
# Bytes of them: a comment holds so much. Of what goes wrong the end says why.
_MOST = 8_000


def machine_report(heard: Sequence[str], status: int, gpu_missing: str | None, account: Account, *, gpu_needed: bool) -> str:
    """The lines about a machine: what `torch-minify doctor` printed (the end of `heard`) and its exit `status`, and what only we can see.

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
    """As many of the last lines as there is room for."""
    room = _MOST
    for index in range(len(heard) - 1, -1, -1):
        room -= min(len(heard[index].encode("utf-8", errors="replace")), _LONGEST) + 10
        if room < 0:
            return ["[…]", *list(heard)[index + 1 :]]
    return heard
