"""The interpreter that a request asks for by version: `/minify --python-version 3.12 --torch-version 2.13.0`."""

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
    """An invalid version; the message is for people."""


def install_commands(
    where: Path, *, python: str | None, torch: str | None, own_python: str, own_torch: str | None, index: str = "", build: str = "cpu"
) -> list[list[str]]:
    """The commands that create a virtual environment at `where` with the versions `python` and `torch`; None: as in ours.

    `torch` may be `nightly`, and may name its build after a plus. `own_python` is our interpreter, `own_torch` its version of torch,
    `index` where PyTorch's builds are (a directory each, nightlies in `nightly/`), `build` the one for a nightly without one. The commands
    are argument lists: no shell reads a version. `uv` installs Pythons that the machine does not have. Raises VersionError if a version is
    malformed, or if it needs an index and there is none.
    """
    if python is not None and not _PYTHON.fullmatch(python):
        raise VersionError(f"{python[:40]!r} is no Python version: use for example 3.12")
    if torch is not None and not _TORCH.fullmatch(torch):
        raise VersionError(f"{torch[:40]!r} is no torch version: use for example 2.13.0, 2.13.0+cpu or nightly")
    install = ["uv", "pip", "install", "--quiet", "--python", str(where / "bin" / "python")]
    return [
        ["uv", "venv", "--quiet", "--seed", "--python", python or own_python, str(where)],
        [*install, *_torch(torch or own_torch, own_torch, index, build)],
        # separately: PyTorch's index could have different ones than people use
        [*install, "numpy", "pytest"],
    ]


def _torch(wanted: str | None, own: str | None, index: str, build: str) -> list[str]:
    """The requirement, and where to find it: only plain releases are on the default index."""
    if wanted is None:
        return ["torch"]
    found = _TORCH.fullmatch(wanted)
    if found is None:  # ours, from a custom distribution: the default index has to know it
        return [f"torch=={wanted}"]
    nightly = found["version"] == "nightly" or (found["dev"] or "").startswith(".dev")
    requirement = "torch" if found["version"] == "nightly" else f"torch=={wanted}"
    if not index and wanted == own:  # wherever it came from, it may come from there again
        return [f"torch=={wanted}"]
    if (nightly or found["build"]) and not index:
        raise VersionError(f"torch {wanted} is not on the default index: the workflow's input `torch-index` names PyTorch's own")
    if nightly:
        return ["--index", f"{index}/nightly/{found['build'] or build}", "--prerelease", "allow", requirement]
    if found["build"]:
        return ["--index", f"{index}/{found['build']}", requirement]
    return [requirement]


def build_of(version: str | None) -> str | None:
    """The build that a `version` of torch names after its plus, such as `cu126`."""
    found = _TORCH.fullmatch(version or "")
    return found["build"] if found else None
