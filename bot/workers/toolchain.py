"""What every C++ compile begins with, kept from one compile directory to the next: Inductor's probes of the machine's vector instructions,
and its precompiled header.

In a cold compile directory, the first C++ kernel waits for six small programs and for torch's own header: twelve seconds and seven, in the
capture, in the search and in the proof. No failure depends on them. Inductor names each by its text, the compiler's version, the flags and
torch's version (the header also by all that it includes), so a kept one is found only if it would come out the same; they hold nothing of
any program. Everything else in a compile directory starts cold.
"""

from __future__ import annotations

import contextlib
import json
import math
import os
import shutil
import stat
import tempfile
import threading
import time
from pathlib import Path

import platformdirs

from bot.inside.protocol import HEADERS
from bot.sandbox.files import Scratch, open_plain, read_plain, take_over
from bot.sandbox.sandbox import NoSandbox, Sandbox
from bot.workers import environment
from bot.workers.process import Interrupted, Patience, Wanted, run_process

_MARK = b"_chk_kernel"  # in the name of the one function of each probe
# Inductor keeps headers below the temporary directory, wherever the compile directory is.
_COMPILE = """
import os, tempfile
tempfile.tempdir = os.environ["TORCHINDUCTOR_CACHE_DIR"]
import torch
torch.compile(lambda x: torch.relu(x) + 1)(torch.ones(8))
"""
_LENT = "headers"
_LIMIT = 120.0  # seconds
_STEP = 0.1  # seconds between two checks of whether the job is still wanted
_LARGEST = 4096  # bytes; a kernel of a program is longer
_MOST_HEADERS = 4  # of 150 MB each; the oldest go


def directory() -> Path:
    """Where the probes are kept: below TORCH_MINIFY_CACHE_DIR, or in the user's cache directory."""
    given = os.environ.get("TORCH_MINIFY_CACHE_DIR")
    return (Path(given) if given else platformdirs.user_cache_path("torch-minify")) / "instructions"


def lent_headers(box: Sandbox) -> str:
    """The directory in which processes of the sandbox `box` find precompiled headers, once there are any; empty without a sandbox."""
    return str(box.scratch / _LENT) if box.on else ""


def seed(cache: Path) -> None:
    """Copy the kept probes into the compile directory `cache`. What cannot be read is probed again."""
    for library in directory().glob("*/*.so"):
        with contextlib.suppress(OSError):
            for file in (library.with_suffix(".cpp"), library):
                _copied(file, cache / file.parent.name / file.name)


def make(python: str, box: Sandbox, *, anew: bool = True, wanted: Wanted = None) -> None:
    """Make the probes and the header for the interpreter `python` and keep them, if that was not done before: in the sandbox `box`, by a
    process without a program. From then on, each process of the box finds the header. Without `anew`, it finds what is already kept.

    What a program's process left could be anything, and what is kept runs in the processes of other programs. Raises Interrupted if
    `wanted` returned False.
    """
    mark = directory() / f"{box.state_of(python)}.json"
    if anew and not _whole(mark):
        with Scratch(dir=box.scratch) as place:
            cache = Path(place)
            env = environment.of_nobody(os.environ, cache)
            command, patience = [python, "-c", _COMPILE], Patience(_LIMIT, math.inf)
            outcome = run_process(command, patience, cwd=cache, env=env, wanted=wanted, box=box, write=(cache,))
            if outcome.status == "ok":
                take_over(cache)
                keep(cache)
                names = keep_headers(cache)
                with contextlib.suppress(OSError):
                    mark.parent.mkdir(parents=True, exist_ok=True)
                    mark.write_text(json.dumps(names), encoding="utf-8")
    _lend_headers(_names(mark) or [], box)


def _names(mark: Path) -> list[str] | None:
    """What was made, according to the file `mark`; None if nothing was."""
    try:
        names = json.loads(mark.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return [os.path.basename(name) for name in names]


def _whole(mark: Path) -> bool:
    """Whether all that was made is still there: headers of other interpreters may have displaced one."""
    names = _names(mark)
    return names is not None and all((_kept_headers() / name).is_file() for name in names)


class Maker:
    """Runs `make` in its own thread, for the interpreter `python` in the sandbox `box`, with or without `anew`.

    On a slow machine it takes longer than a short job can wait, and an interrupted one is of no use to the next job either. It serves the
    processes that start later. Close it before the directory of the box is removed.
    """

    def __init__(self, python: str, box: Sandbox, *, anew: bool = True) -> None:
        self._closed = threading.Event()
        self._ended: float | None = None
        self._thread = threading.Thread(target=self._work, args=(python, box, anew), daemon=True)
        if box.on:
            self._thread.start()

    def _work(self, python: str, box: Sandbox, anew: bool) -> None:
        try:
            with contextlib.suppress(Interrupted, NoSandbox, OSError):  # it only saves time
                make(python, box, anew=anew, wanted=lambda: not self._closed.is_set())
        finally:
            self._ended = time.monotonic()

    def worked_within(self, seconds: float) -> bool:
        """Whether it was at work in the last `seconds`."""
        if self._thread.ident is None:
            return False
        return self._ended is None or self._ended > time.monotonic() - seconds

    def wait(self, seconds: float, wanted: Wanted = None) -> None:
        """Wait until it is made, for at most this many `seconds`. Raises Interrupted if `wanted` returned False."""
        end = time.monotonic() + seconds
        while self._thread.is_alive() and time.monotonic() < end:
            if wanted is not None and not wanted():
                raise Interrupted
            self._thread.join(min(_STEP, max(0.0, end - time.monotonic())))

    def close(self) -> None:
        """Interrupt it."""
        self._closed.set()
        if self._thread.ident is not None:
            self._thread.join()

    def __enter__(self) -> Maker:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def keep(cache: Path) -> None:
    """Keep the probes of the compile directory `cache`, whose process has ended by itself and ran no program, so what it wrote is complete.

    The interpreter and its packages may be anybody's, and we may read what they may not: no link is followed, and no pipe is waited for.
    """
    for text in cache.glob("??/*.cpp"):
        library = text.with_suffix(".so")
        with contextlib.suppress(OSError):
            if _MARK in read_plain(text, _LARGEST - 1):
                for file in (library, text):
                    _copied(file, directory() / file.parent.name / file.name)


def keep_headers(cache: Path) -> list[str]:
    """Keep the precompiled headers that were made below the temporary directory `cache`, and return their names. See `keep`."""
    names = []
    for compiled in (cache / HEADERS).glob("*.h.*"):
        header = compiled.with_suffix("")
        with contextlib.suppress(OSError):
            if compiled.is_file() and header.is_file() and not compiled.is_symlink() and not header.is_symlink():
                for file in (header, compiled):
                    _copied(file, _kept_headers() / file.name)
                    names.append(file.name)
    with contextlib.suppress(OSError):
        kept = sorted(_kept_headers().glob("*.h.*"), key=lambda path: path.stat().st_mtime)
        for old in kept[:-_MOST_HEADERS]:
            old.unlink()
    return names


def _kept_headers() -> Path:
    return directory().parent / "headers"


def _lend_headers(names: list[str], box: Sandbox) -> None:
    """Let each process of the sandbox `box` find the kept headers with these `names` below its temporary directory."""
    place = box.scratch / _LENT
    for name in names:
        kept, lent = _kept_headers() / name, place / name
        if not lent.exists() and kept.is_file():
            with contextlib.suppress(OSError):
                os.utime(kept)  # those that are not used are removed first
            # the job's own copy: the user's directory may be closed to the accounts of programs, which can only read here
            place.mkdir(exist_ok=True)
            place.chmod(0o755)  # whatever our umask is
            _copied(kept, lent)
            lent.chmod(0o644)
    if place.is_dir():
        # replaced, not changed: another thread may be starting a process, and going through it
        box.links = {**box.links, HEADERS: place}


def _copied(source: Path, target: Path) -> None:
    """Copy in one step, since another job may be reading; a target that exists is the same. Only a plain file is copied. Raises OSError if
    it is not one."""
    with os.fdopen(open_plain(source), "rb") as opened, contextlib.suppress(OSError):
        if target.exists():
            return
        target.parent.mkdir(parents=True, exist_ok=True)
        handle, partial = tempfile.mkstemp(dir=target.parent, suffix=".partial")
        try:
            with open(handle, "wb") as written:
                shutil.copyfileobj(opened, written)
            os.chmod(partial, stat.S_IMODE(os.fstat(opened.fileno()).st_mode))
            os.replace(partial, target)
        except OSError:
            Path(partial).unlink(missing_ok=True)
            raise
