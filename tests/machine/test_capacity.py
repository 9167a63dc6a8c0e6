"""What can run at a time."""

from __future__ import annotations

from pathlib import Path

import pytest

from bot.machine.capacity import free_memory, gpus, processors


def test_there_is_a_processor() -> None:
    assert processors() >= 1


def test_each_gpu_has_a_file(tmp_path: Path) -> None:
    """Beside those of the driver itself."""
    assert gpus(tmp_path) == 0
    for name in ("nvidia0", "nvidia1", "nvidiactl", "nvidia-uvm", "nvidia-caps", "null"):
        (tmp_path / name).touch()
    assert gpus(tmp_path) == 2


@pytest.mark.parametrize(
    ("text", "free"),
    [
        ("MemTotal:       24000000 kB\nMemFree:  5 kB\nMemAvailable:   1024 kB\n", 1 << 20),
        ("MemTotal:       24000000 kB\n", None),
        ("MemAvailable: much\n", None),
        ("MemAvailable:\n", None),
    ],
)
def test_free_memory(tmp_path: Path, text: str, free: int | None) -> None:
    (tmp_path / "meminfo").write_text(text)
    assert free_memory(tmp_path / "meminfo") == free
    assert free_memory(tmp_path / "none") is None
