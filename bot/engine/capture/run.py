"""Rerunning the user's program with the hooks of `bot.inside` in place."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import cast

from bot.engine.capture.region import Capture, read_regions
from bot.failure.outcome import Outcome
from bot.failure.signature import signature_of
from bot.inside.protocol import ORDER_FILE, RUN_FILE, CaptureOrder, RunFacts, command, encode
from bot.workers import environment, isa_probes
from bot.workers.process import run_process

# Python's own options: those that take a value, and those that do not. None of them changes what the compiler does.
_VALUED, _FLAGS = "WX", "bBdEiIOPqRsSuvx"

STACKS = 7  # of a program that does not end


class CommandError(Exception):
    """A `--command` that does not start a Python program."""


@dataclass(frozen=True)
class Target:
    """What to run: a script with arguments, or a module (`python -m NAME`)."""

    script: Path | None
    module: str | None
    argv: tuple[str, ...]

    @property
    def file(self) -> str | None:
        """The program's own file, where the command names one."""
        if self.script:
            return str(self.script)
        named = {word.partition("::")[0] for word in self.argv if ".py" in word} if self.module == "pytest" else set()
        return named.pop() if len(named) == 1 else None

    @property
    def name(self) -> str:
        """What tracebacks call the program's own file."""
        if self.script:
            return self.script.name
        if self.module == "pytest":
            return next((Path(word.partition("::")[0]).name for word in self.argv if ".py" in word), self.module)
        return (self.module or "").rpartition(".")[2] + ".py"


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
        found = _of_python(rest)
        if found is not None:
            return found
    raise CommandError(f"{words[0]!r} is not a Python program: use 'pytest ...', 'python SCRIPT ...' or 'python -m MODULE ...'")


def _of_python(words: list[str]) -> Target | None:
    """What an interpreter's arguments run; None for code given in the command or on standard input.

    Raises:
        CommandError: an option that this interpreter does not have.
    """
    while words and words[0].startswith("-") and words[0] != "-":
        word, words = words[0], words[1:]
        for place, letter in enumerate(word[1:], 2):
            tail = [word[place:]] if word[place:] else []
            if letter == "c":
                return None
            if letter == "m":
                module = [*tail, *words]
                return Target(None, module[0], tuple(module[1:])) if module else None
            if letter in _VALUED:
                words = words if tail else words[1:]
                break
            if letter not in _FLAGS:
                raise CommandError(f"{word!r} is no option that torch-minify knows of Python's")
    return Target(Path(words[0]), None, tuple(words[1:])) if words and words[0] != "-" else None


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
    order = CaptureOrder(
        script=str(target.script) if target.script else None,
        module=target.module,
        file=target.file,
        argv=target.argv,
        out=str(out),
        check=check,
        strict=strict,
        tolerance=tolerance,
        beforehand=beforehand,
        dump=not check and not beforehand,
    )
    (out / ORDER_FILE).write_text(encode(order), encoding="utf-8")
    isa_probes.seed(cache)
    outcome = run_process(
        command(python, "capture", str(out / ORDER_FILE)),
        env={**environment.of_workers(cache), "TORCH_COMPILE_DEBUG_DIR": str(out / "pytorch")},
        cwd=cwd,
        timeout=timeout,
        wanted=wanted,
        stacks=STACKS,
    )
    if outcome.status not in ("timeout", "signal"):
        isa_probes.keep(cache)
    log = out / "log.txt"
    log.write_text(outcome.text, encoding="utf-8")
    written = _facts(out)
    facts: RunFacts = written or {"status": "infra"}
    if outcome.status not in ("timeout", "signal") and written:
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
        tolerance=None if (own := facts.get("tolerance")) is None else tuple(own),
        test=facts.get("test", ""),
    )


def _facts(out: Path) -> RunFacts | None:
    """What the capture wrote at its end, if it came to that."""
    path = out / RUN_FILE
    return cast("RunFacts", json.loads(path.read_text(encoding="utf-8"))) if path.exists() else None
