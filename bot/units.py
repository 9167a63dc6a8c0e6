"""Times, counts and names of hardware as people write them."""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")
_UNITS = {"": 1.0, "s": 1.0, "m": 60.0, "h": 3600.0}
_ARCHITECTURES = (80, 86, 87, 89, 90, 100, 103, 120)


def duration(text: str) -> float:
    """Seconds from a `text` like `90`, `90s`, `30m` or `1h`. Raises argparse.ArgumentTypeError for anything else."""
    match = re.fullmatch(r"([0-9]+(?:\.[0-9]+)?)([smh]?)", text.strip())
    if not match or float(match[1]) == 0:
        raise argparse.ArgumentTypeError(f"{text!r} is not a duration: use for example 90s, 30m or 1h")
    return float(match[1]) * _UNITS[match[2]]


def positive(text: str) -> int:
    """The whole number from 1 up in `text`. Raises argparse.ArgumentTypeError for anything else."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number from 1")
    return int(text)


def versions(text: str) -> tuple[str, ...]:
    """The comma-separated versions in `text`, in order. Raises argparse.ArgumentTypeError if one is not a version, or for fewer than
    two."""
    found = tuple(dict.fromkeys(part.strip() for part in text.split(",")))
    wrong = [part for part in found if not re.fullmatch(r"[0-9]+\.[0-9]+\.[0-9]+[\w.+]{0,30}", part)]
    if wrong or len(found) < 2:
        raise argparse.ArgumentTypeError(
            f"{wrong[0]!r} is no version: use for example 2.12.0" if wrong else "a range takes two versions or more"
        )
    return found


def or_auto(read: Callable[[str], T]) -> Callable[[str], T | None]:
    """A function that reads a text as `read` does, and `auto` as None."""
    return lambda text: None if text.strip() == "auto" else read(text)


def cuda_arch(text: str) -> int:
    """The compute capability of a GPU in `text`, without the dot: 90 for 9.0. Raises argparse.ArgumentTypeError if it is not one that can
    be compiled for without the GPU."""
    if not text.isdecimal() or int(text) not in _ARCHITECTURES:
        raise argparse.ArgumentTypeError(f"{text!r} is not one of {', '.join(map(str, _ARCHITECTURES))}")
    return int(text)


def spoken(seconds: float) -> str:
    """The number of `seconds` in a form that `duration` reads: `90s`, `30m`."""
    return f"{seconds / 60:g}m" if seconds >= 120 and round(seconds) % 60 == 0 else f"{seconds:.0f}s"
