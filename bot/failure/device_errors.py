"""GPU errors: those of kernels, which show at some later call, so that the place where they are raised says nothing; and those of
memory."""

from __future__ import annotations

import re

from bot.models.failure import Kind, Signature

# torch's class for a device error. Triton's launcher and Inductor's raise the same errors as a RuntimeError: whose call comes next is
# chance.
CLASS = "AcceleratorError"
# What cudaGetErrorString and hipGetErrorString say about errors that end the context. An error in a call's own arguments, or of a full GPU,
# is raised where it belongs.
_STICKY = re.compile(
    r"(?:\b(?P<api>CUDA|HIP)(?: driver)? error|\bTriton Error \[(?P<launcher>CUDA|HIP)\]): "
    r"(?P<what>an illegal (?:memory access|instruction)[\w ]*"
    r"|misaligned address|device-side assert triggered|unspecified launch failure|invalid (?:program counter|address space)"
    r"|hardware stack error|operation not supported on global/shared address space|the launch timed out and was terminated)",
    re.IGNORECASE,
)

# What torch's allocator, the runtime, Triton's launcher and the libraries say about a full GPU. The allocator says how much it may take, if
# that was capped, or else how much there is.
_FULL = re.compile(
    r"\b(?:CUDA|HIP)(?:(?: driver)? error:)? out of memory\b"
    r"|\bTriton Error \[(?:CUDA|HIP)\]: out of memory\b|\b[A-Z]+_STATUS_ALLOC_FAILED\b"
)
_ALLOWED = (re.compile(r"\b([\d.]+) (bytes|[KMGT]iB) allowed\b"), re.compile(r"\btotal capacity of ([\d.]+) (bytes|[KMGT]iB)\b"))
_UNITS = ("bytes", "KiB", "MiB", "GiB", "TiB")


def sticky_error(message: str) -> str | None:
    """The error of a kernel launched earlier that the `message` of an exception reports, in torch's words; None if it reports none."""
    found = _STICKY.search(message)
    return f"{found['api'] or found['launcher']} error: {found['what'].strip()}" if found else None


def is_asynchronous(failure: Signature) -> bool:
    """Whether the `failure` is an error of a kernel that was launched earlier, perhaps much earlier."""
    return failure.kind is Kind.EXCEPTION and sticky_error(failure.message) is not None


def is_out_of_memory(failure: Signature) -> bool:
    """Whether the `failure` is that a GPU has no room for a tensor."""
    return failure.kind is Kind.EXCEPTION and _FULL.search(failure.message) is not None


def allowed_memory(failure: Signature, text: str) -> int | None:
    """Bytes of GPU memory that the allocator was allowed, according to its last error in `text`; None if the `failure` is another one, or
    gives no size."""
    if not is_out_of_memory(failure):
        return None
    full = list(_FULL.finditer(text))
    said = text[full[-1].start() :] if full else ""
    found = next((one for one in (pattern.search(said) for pattern in _ALLOWED) if one), None)
    return int(float(found[1]) * 1024 ** _UNITS.index(found[2])) if found else None
