"""What the commands of the bench have in common."""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from fnmatch import fnmatchcase
from pathlib import Path

from benchlib.measure import ROOT


def positive(text: str) -> float:
    """A number above 0, as an argument.

    Raises:
        argparse.ArgumentTypeError: it is none.
    """
    value = float(text)
    if value <= 0:
        raise argparse.ArgumentTypeError(f"{text} is not above 0")
    return value


def count(text: str) -> int:
    """A whole number from 1, as an argument.

    Raises:
        argparse.ArgumentTypeError: it is none.
    """
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"{text} is not a whole number from 1")
    return value


def matches(name: str, wanted: str) -> bool:
    """Whether `wanted` is this name, or a pattern of a shell's that it fits."""
    return fnmatchcase(name, wanted)


def named(parser: argparse.ArgumentParser, names: Sequence[str], wanted: Sequence[str]) -> list[str]:
    """Those of `names` that some pattern of `wanted` fits, in their order; an error of the command line where a pattern fits none."""
    for one in wanted:
        if not any(matches(name, one) for name in names):
            parser.error(f"there is no {one}; --list prints the names")
    return [name for name in names if any(matches(name, one) for one in wanted)]


@contextlib.contextmanager
def busy(number: int) -> Iterator[None]:
    """So many processes beside the body, each of which takes all the time of a processor that it gets. They end with this one."""
    loop_here = f"import os\nwhile os.getppid() == {os.getpid()}: pass"
    loops = [subprocess.Popen([sys.executable, "-I", "-S", "-c", loop_here], stdin=subprocess.DEVNULL) for _ in range(number)]
    try:
        yield
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()


def own_python(given: str | None) -> str:
    """The interpreter to measure with: the given one, else that of `.venv`, which is set up first."""
    if given is None:
        subprocess.run([str(ROOT / "scripts" / "setup")], check=True)
        return str(ROOT / ".venv" / "bin" / "python")
    # programs run in directories of their own; no link is followed: it would leave a venv
    return os.path.abspath(given) if os.sep in given else given


def save(path: Path | None, content: object) -> None:
    """Write `content` as JSON to a file that is never seen half written. No path, no file."""
    if path is not None:
        new = path.with_name(path.name + ".new")
        new.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
        os.replace(new, path)
