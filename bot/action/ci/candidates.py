"""`torch-minify candidates`: what a log of CI tells, a line of JSON for each failure. For CI that is not GitHub's, too."""

from __future__ import annotations

import gzip
import json
import shlex
import sys
import zlib
from pathlib import Path
from typing import TextIO

from bot.action.ci import groups, logs
from bot.action.ci.failing_test import NOTEBOOK, Failure
from bot.action.ci.judge import Rating, fault, judge, sign
from bot.action.ci.paths import CheckoutPaths, in_directory

# Bytes of a log that are read: its end.
MAX_LOG = 32 << 20
_WORDS: dict[Rating, str] = {"suggested": "suggested", "possible": "possible", "no": "not a candidate"}


def rows(log: str, paths: CheckoutPaths) -> list[dict[str, str | None]]:
    """A row for each failure in the text of a `log`, those worth minimizing first; `paths` are the checkout's.

    Keys: file, test, verdict, kind, command, why. Null where the log does not say.
    """
    found = [(_verdict(failure), failure) for failure in map(paths.locate, logs.failures(log))]
    found.sort(key=lambda each: groups.ORDER[each[0][0]])
    return [_row(failure, *said) for said, failure in found]


def _verdict(failure: Failure) -> tuple[Rating, str]:
    broken = fault(failure)
    return ("no", f"the machine's fault: {broken}") if broken else judge(sign(failure), failure)


def _row(failure: Failure, verdict: Rating, why: str) -> dict[str, str | None]:
    signature = sign(failure)
    command = failure.command(f"pytest {shlex.quote(failure.test)}", prefer_hint=True)
    if signature is not None and not failure.gone:
        why += f" ({signature.line()})"
    if verdict != "no" and not command:
        why += "; torch-minify run takes the notebook" if failure.file.endswith(NOTEBOOK) else "; the log names no command that runs it"
    return {
        "file": failure.file or failure.script or None,
        "test": failure.test or None,
        "verdict": _WORDS[verdict],
        "kind": signature.kind.value if signature else None,
        "command": command or None,
        "why": why,
    }


def read(path: Path) -> str:
    """The end of the log in the file at `path`, `MAX_LOG` bytes of it; unpacked where it is gzipped. Raises OSError, EOFError, zlib.error
    where it cannot be read, or not be unpacked."""
    with path.open("rb") as file:
        packed = file.read(2) == b"\x1f\x8b"
    if not packed:
        with path.open("rb") as file:
            file.seek(max(path.stat().st_size - MAX_LOG, 0))
            return file.read(MAX_LOG).decode("utf-8", errors="replace")
    end = b""
    with gzip.open(path) as unpacked:
        while part := unpacked.read(MAX_LOG):
            end = (end + part)[-MAX_LOG:]
    return end.decode("utf-8", errors="replace")


def main(path: Path, checkout: Path, out: TextIO | None = None, err: TextIO | None = None) -> int:
    """Write the rows for the log at `path` to `out` (standard output), with paths of the directory `checkout`.

    The exit status: 2 where the log cannot be read, which `err` (standard error) gets to know.
    """
    out, err = out or sys.stdout, err or sys.stderr
    try:
        log = read(path)
    except (OSError, EOFError, zlib.error) as error:
        err.write(f"torch-minify: cannot read {path}: {error}\n")
        return 2
    for row in rows(log, in_directory(checkout)):
        out.write(json.dumps(row) + "\n")
    return 0
