"""The interpreter that a request names by versions: `/minify --python-version 3.12 --torch-version 2.13.0`."""

from __future__ import annotations

import re
from pathlib import Path

_PYTHON = re.compile(r"3\.\d{1,2}(?:\.\d{1,2})?")
_TORCH = re.compile(r"\d{1,2}\.\d{1,2}(?:\.\d{1,2})?(?:(?:a|b|rc|\.dev|\.post)\d{1,10})?(?:\+[a-z0-9]{1,20})?")


class VersionError(ValueError):
    """A version that is none, for people."""


def install_commands(where: Path, *, python: str | None, torch: str | None, own_python: str, own_torch: str | None) -> list[list[str]]:
    """The commands that make a virtual environment at `where` with the versions `python` and `torch`; None: as in ours.

    `own_python` is our interpreter, `own_torch` its version of torch. They are argument lists: no shell reads a version. `uv` brings
    Pythons that the machine does not have.

    Raises:
        VersionError: it has not the form of a version.
    """
    if python is not None and not _PYTHON.fullmatch(python):
        raise VersionError(f"{python[:40]!r} is no Python version: use for example 3.12")
    if torch is not None and not _TORCH.fullmatch(torch):
        raise VersionError(f"{torch[:40]!r} is no torch version: use for example 2.13.0")
    wanted = torch or own_torch
    packages = [f"torch=={wanted}" if wanted else "torch", "numpy", "pytest"]
    return [
        ["uv", "venv", "--quiet", "--seed", "--python", python or own_python, str(where)],
        ["uv", "pip", "install", "--quiet", "--python", str(where / "bin" / "python"), *packages],
    ]
