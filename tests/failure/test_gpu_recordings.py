"""Failures that were recorded on an H200 (torch 2.11, `scripts/gpu-check --record`), read without a GPU."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bot.failure.device_errors import is_asynchronous
from bot.failure.outcome import Outcome
from bot.failure.signature import signature_of
from bot.models.failure import Phase, Signature

RECORDED = Path(__file__).parents[1] / "fixtures" / "gpu" / "h200"
LATE = {
    "device_assert": "device-side assert triggered",
    "illegal_access": "an illegal memory access was encountered",
    "launch_failure": "unspecified launch failure",
    "misaligned": "misaligned address",
}


def read(name: str) -> Signature:
    text = (RECORDED / name / "log.txt").read_text(encoding="utf-8")
    found = signature_of(Outcome(status="raised", text=text), script="program.py")
    assert found is not None
    return found


def recorded(name: str) -> Signature:
    result, alone = RECORDED / name / "result.json", RECORDED / name / "signature.json"
    held = json.loads((result if result.exists() else alone).read_text(encoding="utf-8"))
    return Signature.model_validate(held["signature"] if result.exists() else held)


@pytest.mark.parametrize("name", sorted(path.name for path in RECORDED.iterdir()))
def test_a_log_has_the_signature_that_it_had_there(name: str) -> None:
    found = read(name)
    assert found.same(recorded(name))
    assert found.phase is recorded(name).phase


@pytest.mark.parametrize("name", LATE)
def test_a_late_error_is_known_by_its_words_alone(name: str) -> None:
    found = read(name)
    assert is_asynchronous(found)
    assert (found.exception, found.message, found.frame) == (("AcceleratorError",), f"CUDA error: {LATE[name]}", None)


def test_a_kernel_that_triton_cannot_compile_has_its_phase() -> None:
    # max_autotune: timed before anything was built of it
    names = ("aot_compile", "transformer_663", "backward_only", "max_autotune", "kernel_compile")
    assert {read(name).phase for name in names} == {Phase.TRITON_COMPILE}
    assert read("backward_only").backward
    assert not read("aot_compile").backward
