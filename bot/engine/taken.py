"""What the input is taken for. That is said first, and nothing that is not a program is run as one."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
from pathlib import Path

from bot.engine.target import Target
from bot.models.result import InputTaken
from bot.sandbox.aside import ask

# How the lines of a TORCH_TRACE log begin.
_TRACE = re.compile(rb"^V[0-9]{4} [0-9:.]+ ")
# Parses a file without running it.
_PARSE = "import sys; compile(open(sys.argv[1], 'rb').read(), sys.argv[1], 'exec', dont_inherit=True)"
# Bytes of a file that are looked at, and seconds for an interpreter to parse it.
_HEAD, _LIMIT = 1 << 20, 60.0


def taken(target: Target, python: str) -> InputTaken:
    """What `target`, run with the interpreter `python`, is taken for."""
    given = f" with the arguments {shlex.join(target.argv)}" if target.argv else ""
    if target.script is None:
        command = shlex.join(["python", "-m", target.module or "", *target.argv])
        return InputTaken(taken_as="command", detail=f"the command {command}, run with {python}")
    raw = target.script.read_bytes()
    rows = len(raw.splitlines())
    lines = "one line" if rows == 1 else f"{rows:,} lines"
    what = _json(raw) or _looks_like(raw[:_HEAD]) or f"a Python script of {lines}"
    return InputTaken(taken_as="script", detail=f"{what}, run with {python}{given}")


def unreadable(script: Path, python: str) -> str | None:
    """Why the file `script` is not a Python program, for people; None if it is one for us or for the interpreter `python`."""
    raw = script.read_bytes()
    if kind := _json(raw):  # Python would read it as an expression
        return f"{script.name} looks like {kind}, not like a Python script"
    try:
        compile(raw, str(script), "exec", dont_inherit=True)
        return None
    except (SyntaxError, ValueError) as error:
        said = _refused(script, python)
        if said is None:
            return None
        looks = _looks_like(raw[:_HEAD])
        line = f" (line {error.lineno})" if isinstance(error, SyntaxError) and error.lineno else ""
        return (
            f"{script.name} looks like {looks}, not like a Python script" if looks else f"{script.name} is no Python script: {said}{line}"
        )
    except (RecursionError, MemoryError, OverflowError):
        return None  # too much for our parser; running it says more


def _refused(script: Path, python: str) -> str | None:
    """What the user's interpreter, which may know more syntax than ours, says of the script; None if it accepts it or cannot be asked."""
    try:
        done = ask([python, "-I", "-c", _PARSE, str(script.absolute())], _LIMIT)
    except (OSError, subprocess.TimeoutExpired):
        return None
    rows = [row for row in done.stderr.splitlines() if row.strip()]
    return (rows[-1] if rows else "it cannot be parsed") if done.returncode else None


def _looks_like(head: bytes) -> str | None:
    if head.startswith(b"PK\x03\x04"):
        return "a zip archive (an exported program, a package, saved tensors)"
    if any(_TRACE.match(row) for row in head.split(b"\n", 5)[:5]):
        return "a log that TORCH_TRACE wrote"
    return "a binary file" if b"\0" in head else None


def _json(raw: bytes) -> str | None:
    """The sort of JSON that a file is; None if it is not JSON."""
    if raw.lstrip()[:1] not in (b"{", b"["):
        return None
    try:
        held = json.loads(raw)
    except (ValueError, RecursionError):
        return None
    return "a notebook" if isinstance(held, dict) and "cells" in held else "JSON"
