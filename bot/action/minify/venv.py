"""The interpreter that a request names by versions: `/minify --python-version 3.12 --torch-version 2.13.0`."""

from __future__ import annotations

import re
from pathlib import Path

_PYTHON = re.compile(r"3\.\d{1,2}(?:\.\d{1,2})?")
_TORCH = re.compile(
    r"(?P<version>nightly|\d{1,2}\.\d{1,2}(?:\.\d{1,2})?(?P<dev>(?:a|b|rc|\.dev|\.post)\d{1,10})?)(?:\+(?P<build>[a-z0-9]{1,20}))?"
)
# The build of the wheels on the default index.
DEFAULT_BUILD = "cu130"


class VersionError(ValueError):
    """A version that is none, for people."""


def install_commands(
    where: Path, *, python: str | None, torch: str | None, own_python: str, own_torch: str | None, index: str = "", build: str = "cpu"
) -> list[list[str]]:
    """The commands that make a virtual environment at `where` with the versions `python` and `torch`; None: as in ours.

    `torch` may be `nightly`, and may name its build behind a plus. `own_python` is our interpreter, `own_torch` its version of torch,
    `index` where PyTorch's builds are (a folder each, those of the night in `nightly/`), `build` the one for a nightly that names none.
    They are argument lists: no shell reads a version. `uv` brings Pythons that the machine does not have. Raises VersionError where it has
    not the form of a version, or takes an index and there is none.
    """
    if python is not None and not _PYTHON.fullmatch(python):
        raise VersionError(f"{python[:40]!r} is no Python version: use for example 3.12")
    if torch is not None and not _TORCH.fullmatch(torch):
        raise VersionError(f"{torch[:40]!r} is no torch version: use for example 2.13.0, 2.13.0+cpu or nightly")
    install = ["uv", "pip", "install", "--quiet", "--python", str(where / "bin" / "python")]
    return [
        ["uv", "venv", "--quiet", "--seed", "--python", python or own_python, str(where)],
        [*install, *_torch(torch or own_torch, own_torch, index, build)],
        # by themselves: from PyTorch's index they could be others than people have
        [*install, "numpy", "pytest"],
    ]


def _torch(wanted: str | None, own: str | None, index: str, build: str) -> list[str]:
    """The requirement, and where it is found: only plain releases are on the default index."""
    if wanted is None:
        return ["torch"]
    found = _TORCH.fullmatch(wanted)
    if found is None:  # ours, of a distribution of its own: the default index has to know it
        return [f"torch=={wanted}"]
    nightly = found["version"] == "nightly" or (found["dev"] or "").startswith(".dev")
    requirement = "torch" if found["version"] == "nightly" else f"torch=={wanted}"
    if not index and wanted == own:  # wherever that came from, it may come from again
        return [f"torch=={wanted}"]
    if (nightly or found["build"]) and not index:
        raise VersionError(f"torch {wanted} is not on the default index: the workflow's input `torch-index` names PyTorch's own")
    if nightly:
        return ["--index", f"{index}/nightly/{found['build'] or build}", "--prerelease", "allow", requirement]
    if found["build"]:
        return ["--index", f"{index}/{found['build']}", requirement]
    return [requirement]


def build_of(version: str | None) -> str | None:
    """The build that a `version` of torch names behind its plus, `cu126` for instance."""
    found = _TORCH.fullmatch(version or "")
    return found["build"] if found else None
