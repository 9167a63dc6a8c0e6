from __future__ import annotations

import json
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from bot.machine import gpu

SEES_ONE = "GPU 0: NVIDIA made up (UUID: GPU-0)\n"
FOR_CUDA = {"python": "3.12.3", "torch": "2.11.0+cu130", "cuda": "13.0", "gpus": []}
OLD = (
    "CUDA initialization: The NVIDIA driver on your system is too old (found version 11040). Please update your GPU driver by downloading "
    "it. (Triggered internally at CUDAFunctions.cpp:119.)"
)
KEPT = (
    "CUDA initialization: Unexpected error from cudaGetDeviceCount(). Error 802: system not yet initialized (Triggered internally at x:1.)"
)


def test_no_device_files() -> None:
    why = gpu.unseen(devices=[])
    assert why is not None
    assert "--gpus all" in why


def test_no_driver() -> None:
    why = gpu.unseen(run=lambda _: (127, "there is no nvidia-smi"), devices=[Path("/dev/nvidia0")])
    assert why is not None
    assert "NVIDIA_DRIVER_CAPABILITIES" in why
    assert "there is no nvidia-smi" in why


def test_a_gpu() -> None:
    assert gpu.unseen(run=lambda _: (0, "GPU 0: x"), devices=[Path("/dev/nvidia0")]) is None


@pytest.fixture
def one_gpu(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine with one GPU, by its device file and its driver's tool."""
    tool = tmp_path / "nvidia-smi"
    tool.write_text("#!/bin/sh\n", encoding="utf-8")
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(gpu, "gpu_files", lambda: [Path("/dev/nvidia0")])


def missing(facts: dict[str, object]) -> str | None:
    """What is said on that machine of an interpreter with these `facts`."""

    def ask(words: Sequence[str], _: float) -> subprocess.CompletedProcess[str]:
        said = SEES_ONE if words[0] == "nvidia-smi" else json.dumps(facts)
        return subprocess.CompletedProcess(words, 0, said, "")

    return gpu.missing("python", 9.0, ask)


@pytest.mark.usefixtures("one_gpu")
@pytest.mark.parametrize(
    ("facts", "said"),
    [
        ({"torch": "2.13.0+cpu", "cuda": None}, "2.13.0+cpu does not: it was built without CUDA; --python names an interpreter with"),
        (
            {"warned": OLD},
            "does not: The NVIDIA driver on your system is too old (found version 11040); update it, or use a torch built for",
        ),
        (
            {"warned": KEPT},
            "does not: CUDA initialization: Unexpected error from cudaGetDeviceCount(). Error 802: system not yet initialized",
        ),
        ({"visible": ""}, "2.11.0+cu130 does not: CUDA_VISIBLE_DEVICES is '', which hides it; unset that"),
        ({"visible": "7"}, "CUDA_VISIBLE_DEVICES is '7', which hides it"),
        ({"visible": "", "warned": OLD}, "too old"),
        ({}, "2.11.0+cu130 does not: torch.cuda.is_available() is False, with no reason given"),
    ],
)
def test_a_gpu_that_torch_does_not_see(facts: dict[str, object], said: str) -> None:
    why = missing({**FOR_CUDA, **facts})
    assert why is not None
    assert why.startswith("nvidia-smi sees a GPU, but torch ")
    assert said in why
    assert "Triggered" not in why


@pytest.mark.usefixtures("one_gpu")
def test_a_gpu_that_torch_sees() -> None:
    assert missing({**FOR_CUDA, "gpus": ["H200"], "visible": "0"}) is None


@pytest.mark.usefixtures("one_gpu")
def test_an_interpreter_without_torch() -> None:
    why = missing({"python": "3.12.3", "error": "ModuleNotFoundError: No module named 'torch'"})
    assert why == "nvidia-smi sees a GPU, but this interpreter has no torch that works: ModuleNotFoundError: No module named 'torch'"
