"""Whether this machine can make and load an AOTInductor package at all: that of one relu is tried, once per boot, and remembered.

Some machines cannot: each package dies of SIGSEGV in the driver. What is remembered is for the same interpreter with the same packages, the
same device and the same variables that CUDA, the loader and torch read. It is lost with a boot, which is when a driver changes. Only what
cannot pass is remembered: that the package works, or that a signal ended it. A full disk or a missing compiler is tried again.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import tempfile
from dataclasses import replace
from pathlib import Path

from bot.engine.evidence import verify
from bot.engine.target import Launch
from bot.failure.signature import signature_of
from bot.models.failure import Kind, Signature
from bot.oracle.budget import Budget
from bot.sandbox.files import Scratch
from bot.workers import toolchain
from bot.workers.compile_check import PACKAGE

_LIMIT = 180.0  # seconds for making and loading one
_BOOT = Path("/proc/sys/kernel/random/boot_id")
# The variables on which it depends whether a package can be made and loaded.
_READ = re.compile(r"(?:CUDA|NVIDIA|LD|TORCH|TORCHINDUCTOR|TRITON|AOT_INDUCTOR)_\w+|CC|CXX|PATH|PYTHONPATH")


def fault_of_package(launch: Launch, device: str, budget: Budget, boot: Path = _BOOT) -> Signature | None:
    """How the package of one relu fails on the `device` if it is made and loaded by a program that is started like `launch`; None if it
    works. Takes up to a minute of the `budget`; no time if it is known. `boot` is the file that names the machine's boot."""
    kept = _kept(launch, device, boot)
    if kept is not None:
        with contextlib.suppress(OSError, ValueError, TypeError, KeyError, RecursionError):
            known = json.loads(kept.read_text(encoding="utf-8"))["fault"]
            return None if known is None else Signature.model_validate(known)
    found, whole = _tried(launch, device, budget)
    if kept and whole:
        _keep(kept, None if found is None else found.model_dump(mode="json"))
    return found


def _tried(launch: Launch, device: str, budget: Budget) -> tuple[Signature | None, bool]:
    """How it fails, if it does, and whether it will each time."""
    scratch = launch.box.scratch if launch.box else None
    with Scratch(prefix="torch-minify-package-", dir=scratch) as place:
        os.chmod(place, 0o755)
        script = Path(place, "package.py")
        script.write_text(PACKAGE.format(device=device), encoding="utf-8")
        outcome = verify.run_fresh(replace(launch, argv=(), linked=False), script, timeout=_LIMIT, budget=budget)
    found = signature_of(outcome)
    return found, outcome.status == "ok" or (found is not None and found.kind is Kind.CRASH)


def _kept(launch: Launch, device: str, boot: Path) -> Path | None:
    """The file in which it is remembered; None if nothing is, as outside a sandbox, where the program could write it itself."""
    if launch.box is None or not launch.box.on:
        return None
    try:
        seen = [boot.read_text(encoding="utf-8"), device, launch.box.state_of(launch.python)]
    except OSError:
        return None
    seen += [f"{name}={value}" for name, value in sorted(launch.env.items()) if _READ.fullmatch(name)]
    name = hashlib.sha256("\n".join(seen).encode("utf-8", "surrogateescape")).hexdigest()
    return toolchain.directory().parent / "packages" / f"{name}.json"


def _keep(kept: Path, fault: object) -> None:
    """Write it in one step, since another job may be reading. A place that cannot be written only costs the next job its time."""
    with contextlib.suppress(OSError):
        kept.parent.mkdir(parents=True, exist_ok=True)
        handle, partial = tempfile.mkstemp(dir=kept.parent, suffix=".partial")
        with open(handle, "w", encoding="utf-8") as written:
            json.dump({"fault": fault}, written)
        os.replace(partial, kept)
