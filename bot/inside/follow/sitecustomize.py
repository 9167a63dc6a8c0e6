"""Runs at the start of each Python process that a watched program starts: this directory is on their path; see `children.py`."""

import contextlib
import importlib
import importlib.util
import os
import sys


def _begin() -> None:
    here = os.path.dirname(os.path.abspath(__file__))
    sys.path[:] = [entry for entry in sys.path if os.path.abspath(entry or ".") != here]
    # the one that this module hides, if there is one
    this = sys.modules.pop("sitecustomize")
    with contextlib.suppress(ImportError):
        importlib.import_module("sitecustomize")
    sys.modules.setdefault("sitecustomize", this)
    spec = importlib.util.spec_from_file_location("torch_minify_boot", os.path.join(os.path.dirname(here), "boot.py"))
    if spec is not None and spec.loader is not None:
        boot = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(boot)
        boot.load_package()
        importlib.import_module(f"{boot.PACKAGE}.children").start()


with contextlib.suppress(Exception):  # a fault of ours must not end somebody's program
    _begin()
