"""`torch-minify range`: the versions of torch between which a failure began, or ended.

Each version is installed by pip into an environment of its own, which is kept. Versions are bisected, each checked as `recheck` does, so
both sides of the answer were run in fresh processes. A version without a clear verdict is left out, and named.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import platformdirs

from bot.engine.evidence import recheck
from bot.engine.evidence.verify_command import CannotCheck, check, recorded
from bot.workflow_commands import harmless

_INSTALL = 3600.0  # seconds
# A version's verdict, and the reason for it.
Told = tuple[recheck.RecheckVerdict, str]


class NoVersion(Exception):
    """A version of torch cannot be installed here; the message says why."""


def interpreter(version: str) -> str:
    """The interpreter of an environment with this `version` of torch and our version of Python. It is made the first time.

    Raises:
        NoVersion: it cannot be made.
    """
    kept = os.environ.get("TORCH_MINIFY_CACHE_DIR")
    root = Path(kept) if kept else platformdirs.user_cache_path("torch-minify")
    place = root / "torch" / f"{version}-python{sys.version_info.major}.{sys.version_info.minor}"
    python = place / "bin" / "python"
    if (place / "complete").exists():
        return str(python)
    try:
        shutil.rmtree(place, ignore_errors=True)
        for words in (
            [sys.executable, "-m", "venv", str(place)],
            [str(python), "-m", "pip", "install", "-q", f"torch=={version}", "numpy"],
        ):
            done = subprocess.run(words, capture_output=True, text=True, errors="replace", timeout=_INSTALL, check=False)
            if done.returncode:
                raise NoVersion(next(reversed((done.stderr.strip() or done.stdout.strip()).splitlines()), "it cannot be installed"))
        (place / "complete").touch()
    except (OSError, subprocess.TimeoutExpired) as error:
        raise NoVersion(str(error)) from error
    return str(python)


def bounds(ordered: Sequence[str], ask: Callable[[str], Told]) -> tuple[str | None, str | None]:
    """Two of the `ordered` versions between which the failure begins or ends, adjacent except for versions without a clear verdict; None
    twice if the first and the last end alike. `ask` gives what is known of a version.

    Raises:
        NoVersion: fewer than two versions have a clear verdict.
    """
    known = list(ordered)

    def fails(version: str) -> bool | None:
        word = ask(version)[0]
        return word == "still" if word in ("still", "fixed") else None

    while known and fails(known[0]) is None:
        known.pop(0)
    while known and fails(known[-1]) is None:
        known.pop()
    if len(known) < 2:
        raise NoVersion("of fewer than two of these versions anything can be said")
    if fails(known[0]) == fails(known[-1]):
        return None, None
    while len(known) > 2:
        middle = len(known) // 2
        said = fails(known[middle])
        if said is None:
            known.pop(middle)
        elif said == fails(known[0]):
            known = known[middle:]
        else:
            known = known[: middle + 1]
    return known[0], known[1]


def main(
    repro: Path, result: Path, ordered: Sequence[str], runs: int, *, network: bool = False, python_of: Callable[[str], str] = interpreter
) -> int:
    """Print what becomes of the failure that the file `result` records for the script `repro` with the versions of torch in `ordered`, and
    between which of them that changes. `runs` and `network` are those of `recheck`; `python_of` gives the interpreter for a version.

    Exit status: 0 two such versions were found, 4 the first and the last end alike, 1 nothing can be said, 2 unusable files.
    """
    told: dict[str, Told] = {}

    def ask(version: str) -> Told:
        if version not in told:
            try:
                told[version] = recheck.verdict(check(repro, result, python_of(version), runs, network=network))
            except (NoVersion, CannotCheck) as error:
                told[version] = "cannot_verify", str(error).partition("\n")[0]
            word, why = told[version]
            sys.stdout.write(harmless(f"torch {version}: {word}: {why}\n"))
            sys.stdout.flush()
        return told[version]

    try:
        recorded(repro, result)
        before, behind = bounds(ordered, ask)
    except CannotCheck as error:
        sys.stderr.write(harmless(f"torch-minify: {error}\n"))
        return error.status
    except NoVersion as error:
        sys.stdout.write(f"cannot_verify: {error}\n")
        return recheck.RECHECK_STATUS["cannot_verify"]
    if before is None or behind is None:
        clear = [version for version in ordered if told.get(version, ("",))[0] in ("still", "fixed")]
        ends = "the first and the last of these versions"
        if (clear[0], clear[-1]) != (ordered[0], ordered[-1]):
            ends = f"torch {clear[0]} and torch {clear[-1]}, {ends} of which anything can be said"
        sys.stdout.write(f"{'it fails' if told[clear[0]][0] == 'still' else 'it passes'} with {ends}\n")
        return 4
    began = told[behind][0] == "still"
    words = ("last good", "first bad") if began else ("last bad", "first good")
    sys.stdout.write(f"{words[0]}: torch {before}\n{words[1]}: torch {behind}\n")
    between = ordered[ordered.index(before) + 1 : ordered.index(behind)]
    if between:
        sys.stdout.write(f"between them nothing can be said of torch {', '.join(between)}\n")
    return 0
