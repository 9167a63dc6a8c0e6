"""The environments of the processes that compile."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

_GRAPH_CACHES = ("TORCHINDUCTOR_FX_GRAPH_CACHE", "TORCHINDUCTOR_AUTOGRAD_CACHE")
_PACKAGE_ROOT = Path(__file__).resolve().parents[2]


def _compiling(env: Mapping[str, str], cache: Path) -> dict[str, str]:
    """`env` with one compile directory, graph caches off so that no hit hides a failure, and what makes a failure readable."""
    return {
        **env,
        "TORCHINDUCTOR_CACHE_DIR": str(cache),
        **dict.fromkeys(_GRAPH_CACHES, "0"),
        "TORCHDYNAMO_VERBOSE": "1",
        "PYTHONFAULTHANDLER": "1",
    }


def of_workers(cache: Path) -> dict[str, str]:
    """For a capture and for warm workers: our environment, with all that makes runs alike. `cache` is the compile directory."""
    return {
        **_compiling(os.environ, cache),
        "TORCHINDUCTOR_COMPILE_THREADS": "1",
        "PYTHONHASHSEED": "0",
        "PYTHONDONTWRITEBYTECODE": "1",
        # a parent that has asked the driver can no longer fork
        "PYTORCH_NVML_BASED_CUDA_CHECK": "1",
    }


def of_nobody(env: Mapping[str, str], cache: Path) -> dict[str, str]:
    """For processes that we run ourselves with a program's interpreter, and whose results we keep: `of_proof` of `env` and `cache`, but
    without a path on which the program could have modules."""
    return {name: value for name, value in of_proof(env, cache).items() if name != "PYTHONPATH"}


def of_proof(env: Mapping[str, str], cache: Path, *, graph_caches: bool = False) -> dict[str, str]:
    """For a script that runs alone: `env` with only what the proof needs, and without our own package on the path.

    `cache` is the compile directory; with `graph_caches`, torch's own are used as they are by default.
    """
    clean = dict(env)
    path = [entry for entry in clean.pop("PYTHONPATH", "").split(os.pathsep) if entry and Path(entry).resolve() != _PACKAGE_ROOT]
    if path:
        clean["PYTHONPATH"] = os.pathsep.join(path)
    found = {**_compiling(clean, cache), "PYTHONUNBUFFERED": "1", "TRITON_CACHE_DIR": str(cache / "triton")}
    return {name: value for name, value in found.items() if not graph_caches or name not in _GRAPH_CACHES}
