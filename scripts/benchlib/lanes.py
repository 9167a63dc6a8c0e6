"""What each of several lanes has of the machine: CPUs, and a GPU."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

VISIBLE = "CUDA_VISIBLE_DEVICES"
# CPUs, and variables that name the GPU.
Share = tuple[set[int], dict[str, str]]


def gpus(env: Mapping[str, str] = os.environ, devices: Path = Path("/dev")) -> tuple[str, ...]:
    """Names for `CUDA_VISIBLE_DEVICES` of the GPUs that programs of `env` may use; `devices` is where their device files are."""
    listed = env.get(VISIBLE)
    if listed is not None:
        return tuple(one for one in listed.split(",") if one)
    numbers = [path.name.removeprefix("nvidia") for path in devices.glob("nvidia[0-9]*")]
    return tuple(str(number) for number in range(len([one for one in numbers if one.isdigit()])))


def shared(lanes: int, cpus: Sequence[int], devices: Sequence[str]) -> list[Share]:
    """For each of the `lanes` its CPUs and its GPU of these `devices`, as an environment: CPUs are dealt out, GPUs taken in turn. Where
    there are more lanes than CPUs they share all of them, and a single lane has everything."""
    return [
        (
            set(cpus[lane::lanes]) if lanes <= len(cpus) else set(cpus),
            {VISIBLE: devices[lane % len(devices)]} if devices and lanes > 1 else {},
        )
        for lane in range(lanes)
    ]
