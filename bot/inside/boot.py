"""The entry point inside the user's interpreter: `python boot.py ROLE ...`.

It registers this package under a separate name. Thus our site-packages do not get onto the user's path, and a user's module called `bot`
or `inside` is not hidden.
"""

from __future__ import annotations

import gc
import importlib
import importlib.util
import os
import sys

PACKAGE = "torch_minify_inside"
HERE = os.path.dirname(os.path.abspath(__file__))
# The module of each role.
ROLES = {"server": "server", "spare": "spare", "capture": "capture.main", "control": "eager.main", "bytecode": "bytecode"}


def load_package() -> None:
    """Make the sibling modules importable as `torch_minify_inside.*`."""
    spec = importlib.util.spec_from_file_location(PACKAGE, os.path.join(HERE, "__init__.py"), submodule_search_locations=[HERE])
    if spec is None or spec.loader is None:
        raise ImportError(f"cannot load {HERE}")
    module = importlib.util.module_from_spec(spec)
    sys.modules[PACKAGE] = module
    spec.loader.exec_module(module)


def main() -> None:
    """Run one role. Garbage is not collected before a program runs: see `program.collect`."""
    gc.disable()
    sys.path[:] = [p for p in sys.path if os.path.abspath(p or ".") != HERE]
    load_package()
    role, *arguments = sys.argv[1:]
    importlib.import_module(f"{PACKAGE}.{ROLES[role]}").main(arguments)


if __name__ == "__main__":
    main()
