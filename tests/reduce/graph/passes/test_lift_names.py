"""Names that torch and its operators have in common."""

from __future__ import annotations

from bot.reduce.graph.passes.lift_names import TORCH_FUNCTIONS


def test_the_names_are_those_that_torch_has() -> None:
    assert {"relu", "mm", "mean", "softmax", "where", "cat"} <= TORCH_FUNCTIONS
    assert not {"_softmax", "convolution_backward", "cudnn_convolution"} & TORCH_FUNCTIONS
