"""Which vector instructions this machine can be compiled for: Inductor's probes, kept from one compile directory to the next.

In a cold compile directory the first C++ kernel waits for six little programs that nobody's failure depends on: twelve seconds, in the
capture and in the proof. Inductor names each by its text, the compiler's version, the flags and torch's version, so a kept one is found
only where it would come out the same; nothing of any program is in them. Everything else in a compile directory starts cold.
"""

from __future__ import annotations

import contextlib
import math
import os
import shutil
import tempfile
from pathlib import Path

import platformdirs

from bot.sandbox.files import Scratch
from bot.sandbox.sandbox import Sandbox
from bot.workers import environment
from bot.workers.process import Patience, run_process

_MARK = b"_chk_kernel"  # in the name of the one function of each probe
_PICK = "from torch._inductor.cpu_vec_isa import pick_vec_isa; pick_vec_isa()"
_LIMIT = 120.0  # seconds
_LARGEST = 4096  # bytes; a kernel of a program is longer


def directory() -> Path:
    """Where they are kept: below TORCH_MINIFY_CACHE_DIR, or the user's directory for caches."""
    given = os.environ.get("TORCH_MINIFY_CACHE_DIR")
    return (Path(given) if given else platformdirs.user_cache_path("torch-minify")) / "instructions"


def seed(cache: Path) -> None:
    """Copy the kept probes into the compile directory `cache`. What cannot be read is probed anew."""
    for library in directory().glob("*/*.so"):
        for file in (library.with_suffix(".cpp"), library):
            _copied(file, cache / file.parent.name / file.name)


def make(python: str, box: Sandbox, most: float = math.inf) -> None:
    """Keep the probes of the interpreter `python`, where it was never asked: compiled in the sandbox `box`, by a process without a program,
    which is cut off after `most` seconds.

    What a program's process left could be anything, and what is kept runs in those of other programs.
    """
    mark = directory() / f"{box.state_of(python)}.made"
    if mark.exists():
        return
    with Scratch(dir=box.scratch) as place:
        cache = Path(place)
        env = environment.of_proof(os.environ, cache)
        outcome = run_process([python, "-c", _PICK], Patience(_LIMIT, most), cwd=cache, env=env, box=box, write=(cache,))
        if outcome.status == "ok":
            keep(cache)
            with contextlib.suppress(OSError):
                mark.parent.mkdir(parents=True, exist_ok=True)
                mark.touch()


def keep(cache: Path) -> None:
    """Keep the probes of the compile directory `cache`, whose process has ended by itself and ran no program: what it wrote is whole."""
    for text in cache.glob("??/*.cpp"):
        library = text.with_suffix(".so")
        with contextlib.suppress(OSError):
            if text.stat().st_size < _LARGEST and _MARK in text.read_bytes() and library.is_file():
                for file in (text, library):
                    _copied(file, directory() / file.parent.name / file.name)


def _copied(source: Path, target: Path) -> None:
    """In one step, since another job may read; what lies there already is the same."""
    with contextlib.suppress(OSError):
        if target.exists():
            return
        target.parent.mkdir(parents=True, exist_ok=True)
        handle, partial = tempfile.mkstemp(dir=target.parent, suffix=".partial")
        os.close(handle)
        try:
            shutil.copy(source, partial)
            os.replace(partial, target)
        except OSError:
            Path(partial).unlink(missing_ok=True)
            raise
