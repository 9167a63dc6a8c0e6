"""Rerunning the user's program with the seams of `bot.inside` in place."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bot.capture.region import Capture, read_regions
from bot.oracle.outcome import Outcome
from bot.oracle.pool import BOOT, environment
from bot.oracle.process import run_process
from bot.oracle.signature import signature_of


class CommandError(Exception):
    """A `--command` that does not start a Python program."""


@dataclass(frozen=True)
class Target:
    """What to run: a script with arguments, or a module (`python -m NAME`)."""

    script: Path | None
    module: str | None
    argv: tuple[str, ...]

    @property
    def name(self) -> str:
        """What tracebacks call the program's own file."""
        return self.script.name if self.script else (self.module or "")


def target_of_command(command: str) -> Target:
    """The Python program that a command line runs.

    Raises:
        CommandError: it is not `pytest ...`, `python SCRIPT ...` or `python -m MODULE ...`.
    """
    try:
        words = shlex.split(command)
    except ValueError as error:
        raise CommandError(f"cannot read the command: {error}") from error
    if not words:
        raise CommandError("the command is empty")
    first, rest = Path(words[0]).name, words[1:]
    if first in ("pytest", "py.test"):
        return Target(None, "pytest", tuple(rest))
    if re.fullmatch(r"python[0-9.]*", first):
        while rest and rest[0].startswith("-") and rest[0] not in ("-m", "-c"):
            rest = rest[1:]
        if rest[:1] == ["-m"] and len(rest) > 1:
            return Target(None, rest[1], tuple(rest[2:]))
        if rest and not rest[0].startswith("-"):
            return Target(Path(rest[0]), None, tuple(rest[1:]))
    raise CommandError(f"{words[0]!r} is not a Python program: use 'pytest ...', 'python SCRIPT ...' or 'python -m MODULE ...'")


def capture(
    target: Target,
    *,
    python: str,
    cwd: Path,
    out: Path,
    cache: Path,
    timeout: float,
    check: bool = False,
    strict: bool = False,
    tolerance: tuple[float, ...] | None = None,
    beforehand: bool = False,
    wanted: Callable[[], bool] | None = None,
) -> Capture:
    """Run the program once and bring back what failed.

    `check` compares every compiled region with eager and float64; `beforehand` writes each graph before it is compiled,
    for a program that dies in the compiler. `out` must be empty; the log stays there.
    """
    out.mkdir(parents=True, exist_ok=True)
    order = {
        "script": str(target.script) if target.script else None,
        "module": target.module,
        "argv": list(target.argv),
        "out": str(out),
        "check": check,
        "strict": strict,
        "tolerance": tolerance,
        "beforehand": beforehand,
        "dump": not check and not beforehand,
    }
    (out / "order.json").write_text(json.dumps(order), encoding="utf-8")
    extra = {"TORCH_COMPILE_DEBUG_DIR": str(out / "pytorch")}
    outcome = run_process(
        [python, str(BOOT), "capture", str(out / "order.json")],
        env=environment(cache, extra),
        cwd=cwd,
        timeout=timeout,
        wanted=wanted,
    )
    log = out / "log.txt"
    log.write_text(outcome.text, encoding="utf-8")
    facts = _facts(out)
    if outcome.status not in ("timeout", "signal") and facts:
        outcome = Outcome(
            status=facts["status"],
            text=facts.get("text", ""),
            exit=facts.get("exit"),
            calls=facts.get("calls", 0),
            seconds=outcome.seconds,
        )
    return Capture(
        outcome=outcome,
        signature=signature_of(outcome, script=target.name),
        regions=read_regions(out),
        versions=facts.get("versions", {}),
        log=log,
        tolerance=facts.get("tolerance"),
    )


def _facts(out: Path) -> dict[str, Any]:
    path = out / "run.json"
    if not path.exists():
        return {}
    found = json.loads(path.read_text(encoding="utf-8"))
    return found if isinstance(found, dict) else {}
