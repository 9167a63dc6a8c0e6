"""What FX knows about values: shapes, hints of symbolic sizes, and the data itself."""

from __future__ import annotations

import ctypes
import math
import os
import re
import struct
from typing import Any

import torch

from . import literals
from .fx_targets import Unreadable
from .literals import device_text

# Tensors of up to this many elements are written as literals.
LITERAL = 64

# Maximum number of bytes of a tensor that are dumped; larger ones become random, since no script could contain them. It has to stay below 2
# GiB, since `ctypes.string_at` takes a C int.
MOST_DATA = 1 << 30

# Data-dependent sizes have no hint; any small number makes a legal tensor.
_UNBACKED = 4


def hint(value: Any) -> Any:
    """The number that the symbolic `value` (a size, float or bool) had in the failing run; a plain number is returned unchanged."""
    if not isinstance(value, (torch.SymInt, torch.SymFloat, torch.SymBool)):
        return value
    for attribute in ("hint", "_hint"):
        try:
            found = getattr(value.node, attribute, None)
        except Exception:  # an unbacked size has no hint, and each torch version raises a different exception
            found = None
        if found is not None:
            return found
    guess: type = {torch.SymInt: int, torch.SymFloat: float}.get(type(value), bool)
    return guess(_UNBACKED)


def symbol(value: Any) -> str | None:
    """Text of the expression of a symbolic `value`; None for a number."""
    if not isinstance(value, (torch.SymInt, torch.SymFloat, torch.SymBool)):
        return None
    expr = value.node.expr
    return None if getattr(expr, "is_number", False) else str(expr)


def is_fake(tensor: torch.Tensor) -> bool:
    """Whether the `tensor` has no data."""
    fake = getattr(torch._subclasses, "FakeTensor", ())
    return isinstance(tensor, fake) or tensor.device.type == "meta" or torch._is_functional_tensor(tensor)


def is_plain(tensor: torch.Tensor) -> bool:
    """Whether the `tensor` is strided memory of one dtype: no subclass with inner tensors, not sparse, not quantized."""
    wrapper = getattr(torch.utils._python_dispatch, "is_traceable_wrapper_subclass", lambda _: False)
    return tensor.layout == torch.strided and not wrapper(tensor) and not tensor.is_quantized and not tensor.is_nested


def meta_of(value: Any) -> dict[str, Any]:
    """The metadata of `value`, as in `bot.reduce.graph.form.Meta`."""
    if isinstance(value, torch.Tensor):
        if not is_plain(value):
            return {"kind": "other"}
        sizes = list(value.shape)
        return _sparse_dict(
            kind="tensor",
            shape=[int(hint(d)) for d in sizes],
            stride=[int(hint(d)) for d in value.stride()],
            dtype=str(value.dtype).removeprefix("torch."),
            device=device_text(value.device),
            dynamic=[i for i, d in enumerate(sizes) if symbol(d)],
            symbols=[symbol(d) for d in sizes] if any(symbol(d) for d in sizes) else [],
        )
    if isinstance(value, (bool, torch.SymBool)):
        return {"kind": "bool"}
    if isinstance(value, (int, torch.SymInt)):
        return _sparse_dict(kind="int", symbols=[symbol(value)] if symbol(value) else [])
    if isinstance(value, (float, torch.SymFloat)):
        return {"kind": "float"}
    if isinstance(value, (tuple, list)):
        return {"kind": "other", "items": [meta_of(item) for item in value]}
    return {"kind": "other"}


def _sparse_dict(**entries: Any) -> dict[str, Any]:
    # An empty shape (of a scalar) is the same as a missing one.
    return {key: value for key, value in entries.items() if value != []}


def value_of(name: str, tensor: torch.Tensor, blob_dir: str | None) -> dict[str, Any]:
    """How a script makes a tensor equal to `tensor`, as `bot.reduce.graph.form.Value`; the data goes to `blob_dir`, under `name`, unless
    there is none or more than `MOST_DATA`."""
    if is_fake(tensor) or tensor.numel() * tensor.element_size() > MOST_DATA:
        return _without_data(tensor.dtype)
    if blob_dir is not None:
        return {"kind": "blob", "args": [dump(name, tensor, blob_dir)]}
    if tensor.numel() <= LITERAL and literal_dtype(tensor.dtype):
        return {"kind": "literal", "args": [literal(tensor.detach().cpu().tolist(), str(tensor.dtype))]}
    return _without_data(tensor.dtype)


def literal_dtype(dtype: torch.dtype) -> bool:
    """Whether `tolist` and `torch.tensor` support the `dtype`: in some versions they do not for the small floats and the packed types."""
    return re.fullmatch(r"torch\.(float(16|32|64)|bfloat16|complex(64|128)|u?int8|int(16|32|64)|bool)", str(dtype)) is not None


def _without_data(dtype: torch.dtype) -> dict[str, Any]:
    if dtype.is_floating_point or dtype.is_complex:
        return {"kind": "randn"}
    if dtype == torch.bool:
        return {"kind": "randint", "args": [0, 2]}
    # An index of zero is legal if there is anything to index.
    return {"kind": "zeros"}


def dump(name: str, tensor: torch.Tensor, blob_dir: str) -> str:
    """Writes the elements of a `tensor`, in index order and contiguous, to `blob_dir/name.bin`, and returns that path."""
    # Without dispatch: a mode that is active in the caller must not see this copy.
    with torch.no_grad(), torch._C._DisableTorchDispatch():
        flat = tensor.detach().resolve_conj().resolve_neg().cpu().contiguous()
        size = flat.numel() * flat.element_size()
        data = ctypes.string_at(flat.data_ptr(), size) if size else b""
    path = os.path.join(blob_dir, f"{name}.bin")
    with open(path, "wb") as file:
        file.write(data)
    return path


def literal(value: Any, dtype: str) -> str:
    """The `value`, nested lists of numbers of this `dtype`, as Python text; special values as `torch.inf` and `torch.nan`."""
    if isinstance(value, list):
        return "[" + ", ".join(literal(item, dtype) for item in value) + "]"
    if isinstance(value, float) and math.isfinite(value) and dtype == "torch.float32":
        return _short(value)
    if value is None or isinstance(value, (bool, int)):
        return repr(value)
    if isinstance(value, (float, complex)):
        return literals.number(value)
    raise Unreadable(f"an element of type {type(value).__name__}")


def _short(value: float) -> str:
    # The shortest decimal that gives the same float32.
    packed = struct.pack("f", value)
    for digits in range(1, 10):
        text = repr(float(f"{value:.{digits}g}"))
        try:
            if struct.pack("f", float(text)) == packed:
                return text
        except OverflowError:  # rounded up past the largest float32
            continue
    return repr(value)
