"""Errors of a GPU's kernels, which show at some later call: where they are raised says nothing about where they come from."""

from __future__ import annotations

import re

from bot.models.failure import Kind, Signature

# torch's class for an error of a device. Triton's launcher and Inductor's own raise the same errors as a RuntimeError: whose call comes
# next is chance.
CLASS = "AcceleratorError"
# What cudaGetErrorString and hipGetErrorString say of errors that end the context. An error of a call's own arguments, or of a GPU that
# is full, is raised where it belongs.
_STICKY = re.compile(
    r"(?:\b(?P<api>CUDA|HIP)(?: driver)? error|\bTriton Error \[(?P<launcher>CUDA|HIP)\]): "
    r"(?P<what>an illegal (?:memory access|instruction)[\w ]*"
    r"|misaligned address|device-side assert triggered|unspecified launch failure|invalid (?:program counter|address space)"
    r"|hardware stack error|operation not supported on global/shared address space|the launch timed out and was terminated)",
    re.IGNORECASE,
)


def sticky_error(message: str) -> str | None:
    """What the `message` of an exception says of a kernel that was launched before, in torch's words; None where it says no such thing."""
    found = _STICKY.search(message)
    return f"{found['api'] or found['launcher']} error: {found['what'].strip()}" if found else None


def is_asynchronous(failure: Signature) -> bool:
    """Whether the `failure` is an error of a kernel that was launched before, perhaps long before."""
    return failure.kind is Kind.EXCEPTION and sticky_error(failure.message) is not None
