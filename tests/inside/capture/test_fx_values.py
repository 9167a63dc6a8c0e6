"""How the data of a tensor is written down."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("torch")

import torch

from bot.inside.capture import fx_values


def test_a_tensor_that_is_too_large_to_write_down_is_drawn(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """More than four gigabytes were once written modulo four gigabytes, and no form of the graph could read them."""
    monkeypatch.setattr(fx_values, "MOST_DATA", 100)
    assert fx_values.value_of("x", torch.ones(25), str(tmp_path))["kind"] == "blob"
    assert (tmp_path / "x.bin").stat().st_size == 100
    assert fx_values.value_of("y", torch.ones(26), str(tmp_path)) == {"kind": "randn"}
    assert fx_values.value_of("z", torch.ones(13, dtype=torch.int64), str(tmp_path)) == {"kind": "zeros"}
    assert [file.name for file in tmp_path.iterdir()] == ["x.bin"]


def test_the_most_that_is_written_down_is_what_can_be_read_at_once() -> None:
    assert fx_values.MOST_DATA < 1 << 31
