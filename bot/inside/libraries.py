"""Libraries of the user's program in the warm parent, so that no child imports them anew: where that is safe.

A package may start a device's runtime or threads when it is imported, and neither comes along to a forked child. What lies in the
user's own directories is no library: it may do anything, and change.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import os
from collections.abc import Iterable, Iterator

from . import warm

# Of libraries of linear algebra, which else start a thread for each CPU when they are imported. Their children set it themselves.
_THREADS = ("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMEXPR_NUM_THREADS")
_PLACES = ("site-packages", "dist-packages")


class Unsafe(Exception):
    """A library that the parent of forked children must not import."""


def load(words: Iterable[str]) -> None:
    """Import the modules that the `words` name (`package.module:name,name`). Raises Unsafe where one is not installed, cannot be imported,
    or left behind what does not survive a fork."""
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
    """The threads of this process. Raises Unsafe where the system does not say."""
    try:
        return len(os.listdir("/proc/self/task"))
    except OSError as error:
        raise Unsafe("nobody knows how many threads there are") from error
