"""Imports libraries of the user's program in the warm parent, where that is safe, so that no child has to.

A package may start a device's runtime or threads when it is imported, and neither survives a fork. Code in the user's own directories is
not a library: it may do anything, and change.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import os
from collections.abc import Iterable, Iterator

from . import warm

# For linear algebra libraries, which otherwise start a thread for each CPU when imported. Their children set it themselves.
_THREADS = ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMEXPR_NUM_THREADS")
_PLACES = ("site-packages", "dist-packages")


class Unsafe(Exception):
    """A library that must not be imported by a parent that forks."""


def load(words: Iterable[str]) -> None:
    """Import the modules that the `words` name (`package.module:name,name`). Raises Unsafe if one is not installed, cannot be imported, or
    leaves something behind that does not survive a fork."""
    before = _threads()
    with _one_thread():
        for word in words:
            module, _, names = word.partition(":")
            _load(module, [name for name in names.split(",") if name])
    if _threads() > before:
        raise Unsafe("a library started threads")
    if warm.runs_device():
        raise Unsafe("a library started a device's runtime")


def _load(module: str, names: Iterable[str]) -> None:
    package = module.partition(".")[0]
    try:
        spec = importlib.util.find_spec(package)
        places = [spec.origin or "", *(spec.submodule_search_locations or ())] if spec else []
        if not any(part in _PLACES for place in places for part in place.split(os.sep)):
            raise Unsafe(f"{package} is not installed here")
        held = importlib.import_module(module)
        for name in names:
            if not hasattr(held, name):
                importlib.import_module(f"{module}.{name}")
    except Exception as error:
        raise Unsafe(f"{module}: {type(error).__name__}: {error}") from error


@contextlib.contextmanager
def _one_thread() -> Iterator[None]:
    added = [name for name in _THREADS if name not in os.environ]
    os.environ.update(dict.fromkeys(added, "1"))
    try:
        yield
    finally:
        for name in added:
            os.environ.pop(name, None)


def _threads() -> int:
    """Number of threads of this process. Raises Unsafe if the system does not tell."""
    try:
        return len(os.listdir("/proc/self/task"))
    except OSError as error:
        raise Unsafe("nobody knows how many threads there are") from error
