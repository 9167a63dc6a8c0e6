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
# What else it says of one allocation and of the GPU, whatever NVML knows of its processes.
_SIZE = r"([\d.]+) (bytes|[KMGT]iB)"
_SIZES = re.compile(
    rf"Tried to allocate {_SIZE}\. GPU \d+ has a total capacity of {_SIZE} of which {_SIZE} is free\..{{0,2000}}"
    rf"Of the allocated memory {_SIZE} is allocated by PyTorch\b.{{0,100}} and {_SIZE} is reserved by PyTorch but unallocated"
)
_MINE = re.compile(rf"\bthis process has {_SIZE} memory in use")
# Of less than this part of it, a process may hold more itself than torch knows, where NVML says nothing.
_LEAST_HELD = 8
# Bytes that a process holds besides what torch's allocator does: its context, and what libraries allocate.
_CONTEXT = 1 << 30
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
    return _bytes(found[1], found[2]) if found else None


def held_by_others(text: str) -> int | None:
    """Bytes of GPU memory that other processes hold, according to the last error of torch's allocator in `text`, if the allocation would
    have succeeded without them; otherwise None. What the program's own setting does not allow would not have succeeded."""
    full = list(_FULL.finditer(text))
    said = text[full[-1].start() :] if full else ""
    found = _SIZES.search(said)
    if found is None or _ALLOWED[0].search(found[0]):
        return None
    tried, total, free, allocated, reserved = (_bytes(*found.group(index, index + 1)) for index in range(1, 10, 2))
    mine = _MINE.search(found[0])
    own = max(allocated + reserved + _CONTEXT, _bytes(*mine.groups()) if mine else 0)
    others = total - free - own
    return others if tried + own <= total and others * _LEAST_HELD >= total else None


def _bytes(number: str, unit: str) -> int:
    return int(float(number) * 1024 ** _UNITS.index(unit))
