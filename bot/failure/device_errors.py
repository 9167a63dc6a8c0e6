"""Errors of a GPU's kernels, which show at some later call: where they are raised says nothing about where they come from."""

from __future__ import annotations

import re

from bot.models.failure import Kind, Signature

# What cudaGetErrorString and hipGetErrorString say of errors that end the context. An error of a call's own arguments, or of a GPU that
# is full, is raised where it belongs.
_STICKY = re.compile(
    r"\b(?:CUDA|HIP) error: (?:an illegal (?:memory access|instruction)|misaligned address|device-side assert|unspecified launch failure"
    r"|invalid (?:program counter|address space)|hardware stack error|an assertion|operation not supported on global/shared address space"
    r"|the launch timed out)",
    re.IGNORECASE,
)


def is_sticky(message: str) -> bool:
    """Whether the `message` of an exception speaks of an error of a kernel that was launched before."""
    return _STICKY.search(message) is not None


def is_asynchronous(failure: Signature) -> bool:
    """Whether the `failure` is an error of a kernel that was launched before, perhaps long before."""
    return failure.kind is Kind.EXCEPTION and is_sticky(failure.message)
