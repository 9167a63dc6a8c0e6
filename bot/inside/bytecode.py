"""Writes the bytecode of torch, and of what it imports, below PYTHONPYCACHEPREFIX: `python boot.py bytecode SECONDS [PACKAGE ...]`.

With that variable Python looks there alone, for the standard library too. What has bytecode already is copied, the rest is compiled, on
every core. It ends after so many seconds with what is there by then: what is missing is compiled by whoever imports it, as before.
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
    """The files of Python source of the packages and modules with these `names`, wherever they lie; without their tests."""
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
    """The files of Python source below the `directory`, those of tests apart."""
    for folder, directories, files in os.walk(directory):
        directories[:] = sorted(name for name in directories if name not in _SKIPPED)
        yield from (os.path.join(folder, name) for name in sorted(files) if name.endswith(".py"))


def write(source: str) -> None:
    """Write the bytecode of the file `source`; what cannot be compiled, or read, has none."""
    target = importlib.util.cache_from_source(source)
    beside = _beside(source)
    try:
        os.makedirs(os.path.dirname(target), exist_ok=True)
        if os.path.isfile(beside):
            # Python itself looks whether it is of this source
            # in one step: half a file is an error for whoever imports it
            shutil.copyfile(beside, f"{target}.{os.getpid()}")
            os.replace(f"{target}.{os.getpid()}", target)
        else:
            py_compile.compile(source, cfile=target, quiet=2)
    except (OSError, ValueError, RecursionError):
        return


def _beside(source: str) -> str:
    """Where the bytecode of a file of source lies without the variable."""
    folder, name = os.path.split(source)
    return os.path.join(folder, "__pycache__", f"{name.removesuffix('.py')}.{sys.implementation.cache_tag}.pyc")


def main(arguments: list[str]) -> None:
    """Write the bytecode; the module says which `arguments` there are."""
    until = time.monotonic() + float(arguments[0])
    os.umask(0o022)
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    # in that order, since time may end: what every process imports, torch, what the program names
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
