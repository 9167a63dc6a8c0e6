from __future__ import annotations

from pathlib import Path

import pytest

from bot.machine import doctor, gpu
from bot.sandbox.aside import ask


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


def test_a_torch_without_cuda(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        doctor, "examine", lambda *_: [doctor.Line("torch", "2.13.0+cpu", True, True), doctor.Line("GPU", "none", False, False)]
    )
    monkeypatch.setattr(gpu, "unseen", lambda _: None)
    why = gpu.missing("python", 9.0, ask)
    assert why is not None
    assert "2.13.0+cpu" in why
