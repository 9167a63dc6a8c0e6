"""Which GPUs of a machine questions may be spread over. Does not call the driver: a parent that did could not fork any more.

Standard library only. The driver describes each GPU in a file below `/proc/driver/nvidia/gpus` (NVIDIA's documentation of its Linux
driver, "The /proc filesystem interface").
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

DRIVER = Path("/proc/driver/nvidia/gpus")
DEVICES = Path("/dev")
VISIBLE = "CUDA_VISIBLE_DEVICES"


def alike(env: Mapping[str, str] = os.environ, driver: Path = DRIVER, devices: Path = DEVICES) -> tuple[str, ...]:
    """Values of `CUDA_VISIBLE_DEVICES`, one for each GPU that programs with `env` see, if there are several of the same model; otherwise
    none. `driver` is where the driver describes them, `devices` where their device files are."""
    try:
        models = [_model(path) for path in driver.glob("*/information")]
    except OSError:
        return ()
    nodes = [path for path in devices.glob("nvidia*") if path.name.removeprefix("nvidia").isdigit()]
    if None in models or len(set(models)) != 1 or len(nodes) != len(models):
        return ()
    listed = env.get(VISIBLE)
    seen = [str(number) for number in range(len(models))] if listed is None else [one.strip() for one in listed.split(",") if one.strip()]
    return tuple(seen) if len(seen) > 1 else ()


def _model(path: Path) -> str | None:
    for line in path.read_text(encoding="utf-8", errors="replace").splitlines():
        name, _, value = line.partition(":")
        if name.strip() == "Model":
            return value.strip()
    return None
