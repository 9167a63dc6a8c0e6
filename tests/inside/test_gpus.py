"""Several GPUs, as NVIDIA's driver describes them."""

from __future__ import annotations

from pathlib import Path

import pytest

from bot.inside.gpus import VISIBLE, alike

# as driver 580 writes it
INFORMATION = """Model: \t\t {model}
IRQ:   \t\t 181
GPU UUID: \t GPU-b7c7c3c9-ff78-2384-df26-bb99d902224c
Video BIOS: \t 96.00.a5.00.01
Bus Type: \t PCIe
"""
H100, A100 = "NVIDIA H100 80GB HBM3", "NVIDIA A100-SXM4-80GB"


def machine(directory: Path, *models: str, nodes: int | None = None) -> tuple[Path, Path]:
    """Where the driver describes so many GPUs, and their device files."""
    driver, devices = directory / "gpus", directory / "dev"
    devices.mkdir()
    for number, model in enumerate(models):
        (driver / f"0000:{number:02d}:00.0").mkdir(parents=True)
        (driver / f"0000:{number:02d}:00.0" / "information").write_text(INFORMATION.format(model=model))
    for number in range(len(models) if nodes is None else nodes):
        (devices / f"nvidia{number}").touch()
    for other in ("nvidiactl", "nvidia-uvm", "null"):
        (devices / other).touch()
    return driver, devices


@pytest.mark.parametrize(
    ("models", "visible", "found"),
    [
        ([H100, H100], None, ("0", "1")),
        ([H100] * 3, "2, 0", ("2", "0")),
        ([H100] * 3, "GPU-b7c7c3c9,GPU-5aa84f5a", ("GPU-b7c7c3c9", "GPU-5aa84f5a")),
        ([H100, H100], "1", ()),
        ([H100, H100], "", ()),
        ([H100], None, ()),
        ([H100, A100], None, ()),
        ([], None, ()),
    ],
)
def test_several_of_one_model(models: list[str], visible: str | None, found: tuple[str, ...], tmp_path: Path) -> None:
    assert alike({} if visible is None else {VISIBLE: visible}, *machine(tmp_path, *models)) == found


def test_a_container_that_got_one_of_them(tmp_path: Path) -> None:
    assert alike({}, *machine(tmp_path, H100, H100, nodes=1)) == ()


def test_what_cannot_be_read_is_none(tmp_path: Path) -> None:
    driver, devices = machine(tmp_path, H100, H100)
    (driver / "0000:00:00.0" / "information").write_text("IRQ: 4\n")
    assert alike({}, driver, devices) == ()
    (driver / "0000:00:00.0" / "information").unlink()
    (driver / "0000:00:00.0" / "information").mkdir()
    assert alike({}, driver, devices) == ()
