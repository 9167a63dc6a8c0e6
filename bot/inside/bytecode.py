"""Writes the bytecode of torch and its imports below PYTHONPYCACHEPREFIX: `python boot.py bytecode SECONDS [PACKAGE ...]`.

With this variable, Python looks for bytecode only there, even for the standard library. Existing bytecode is copied, and the rest is
compiled on all cores. It stops after the given seconds; whatever is missing then is compiled when it is imported, as before.
"""

from __future__ import annotations

import importlib.util
import os
import py_compile
import shutil
import sys
import sysconfig
import time
from collections.abc import Iterator

# What the first compile imports, the slowest to compile first.
PACKAGES = (
    "torch", "sympy", "triton", "networkx", "numpy", "mpmath", "jinja2", "packaging", "filelock", "torchgen", "functorch", "markupsafe",
    "typing_extensions", "setuptools",
)  # fmt: skip
_SKIPPED = frozenset({"tests", "test", "testing", "idlelib", "lib2to3", "ensurepip", "__pycache__", "site-packages", "dist-packages"})


def sources(names: list[str]) -> Iterator[str]:
    """The Python source files of the packages and modules with these `names`, without their tests."""
    for name in names:
        try:
            spec = importlib.util.find_spec(name)
        except (ImportError, ValueError, AttributeError):
            continue
        if spec is not None and spec.submodule_search_locations:
            for place in spec.submodule_search_locations:
                yield from below(place)
        elif spec is not None and (spec.origin or "").endswith(".py"):
            yield str(spec.origin)


def below(directory: str) -> Iterator[str]:
    """The Python source files below the `directory`, without tests."""
    for folder, directories, files in os.walk(directory):
        directories[:] = sorted(name for name in directories if name not in _SKIPPED)
        yield from (os.path.join(folder, name) for name in sorted(files) if name.endswith(".py"))


def write(source: str) -> None:
    """Write the bytecode of the file `source`, unless it cannot be read or compiled."""
    target = importlib.util.cache_from_source(source)
    beside = _beside(source)
    try:
        os.makedirs(os.path.dirname(target), exist_ok=True)
        if os.path.isfile(beside):
            # Python itself checks whether it belongs to this source; in one step, since importing half a file is an error
            shutil.copyfile(beside, f"{target}.{os.getpid()}")
            os.replace(f"{target}.{os.getpid()}", target)
        else:
            py_compile.compile(source, cfile=target, quiet=2)
    except (OSError, ValueError, RecursionError):
        return


def _beside(source: str) -> str:
    """Where the bytecode of a source file is without the variable."""
    folder, name = os.path.split(source)
    return os.path.join(folder, "__pycache__", f"{name.removesuffix('.py')}.{sys.implementation.cache_tag}.pyc")


def main(arguments: list[str]) -> None:
    """Write the bytecode; the module's docstring describes the `arguments`."""
    until = time.monotonic() + float(arguments[0])
    os.umask(0o022)
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    # most important first, since time may run out: what every process imports, torch, what the program names
    library, own = sysconfig.get_path("stdlib"), os.path.dirname(os.path.abspath(__file__))
    files = list(dict.fromkeys([*below(own), *below(library), *sources([*PACKAGES, *arguments[1:]])]))
    children = []
    for share in range(cores):
        child = os.fork()
        if not child:
            for source in files[share::cores]:
                if time.monotonic() >= until:
                    break
                write(source)
            os._exit(0)
        children.append(child)
    for child in children:
        os.waitpid(child, 0)
