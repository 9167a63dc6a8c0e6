"""What people write, read."""

from __future__ import annotations

import argparse

import pytest

from bot.units import cuda_arch


@pytest.mark.parametrize(("text", "number"), [("90", 90), ("120", 120)])
def test_cuda_arch(text: str, number: int) -> None:
    assert cuda_arch(text) == number


@pytest.mark.parametrize("text", ["", "9.0", "sm_90", "91", "-90", "90 x"])
def test_no_cuda_arch(text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError):
        cuda_arch(text)
