"""Python text that makes a program's inputs and constants, one expression each."""

from __future__ import annotations

import base64
import math
import struct
import zlib
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from bot.reduce.graph.form import Graph, Input, Meta, Program, Value, contiguous_stride
from bot.reduce.graph.printer.expressions import number
from bot.reduce.graph.rewrite import map_inputs

# Tensors of up to this many elements are written as literals.
LITERAL = 64

# Values whose elements have fixed positions: they cannot be laid out in any order.
_ORDERED = ("arange", "literal", "blob")

_FLOATS = ("float16", "bfloat16", "float32", "float64")
_COMPLEX = ("complex32", "complex64", "complex128")
_INTS = ("uint8", "int8", "int16", "int32", "int64")
# The `struct` format of each dtype.
_LETTERS = dict(zip((*_INTS, "bool", "float16", "float32", "float64"), "Bbhiq?efd", strict=True))


def make(item: Input, *, dtype_default: str | None = "float32") -> str:
    """The expression for the input or constant `item`.

    `dtype_default` is torch's default dtype where the script runs; with None (unknown) every dtype is written out.
    """
    value = item.value
    if value.kind == "expr":
        return str(value.args[0])
    if not item.meta.is_tensor:
        return str(value.args[0]) if value.args else {"int": "0", "float": "0.0", "bool": "False"}.get(item.meta.kind, "None")
    meta = item.meta
    kind = value.kind if meta.elements else "zeros"
    value = replace(value, kind=_possible(kind, meta.dtype))
    grad = item.requires_grad and not item.parameter and meta.dtype.startswith(("float", "bfloat", "complex"))
    base = _Factory(value, meta, dtype_default)
    plain = meta.stride == contiguous_stride(meta.shape) or not meta.shape
    if plain:
        made = base(meta.shape, grad)
        return made if item.leaf or not grad else f"{made} * 1"
    if grad and not item.leaf:
        # a view of a leaf is not a leaf, and keeps the strides, which `* 1` would not
        return _strided(partial(base, grad=True), value.kind, meta)
    return _strided(base, value.kind, meta) + (".requires_grad_()" if grad else "")


def recorded_dtype(value: Value, meta: Meta) -> str:
    """The dtype in which the dump in `value` was recorded; that of `meta` unless it was changed since."""
    return str(value.args[1]) if len(value.args) > 1 else meta.dtype


def _possible(kind: str, dtype: str) -> str:
    if kind in ("randn", "rand") and dtype not in (*_FLOATS, *_COMPLEX) and not dtype.startswith("float"):
        return "zeros"
    return kind


class _Factory:
    """Writes a contiguous tensor of one value kind, dtype and device, in any shape."""

    def __init__(self, value: Value, meta: Meta, dtype_default: str | None) -> None:
        self.value = value
        self.meta = meta
        self.dtype_default = dtype_default

    def __call__(self, shape: tuple[int, ...], grad: bool = False) -> str:
        kind, args, dtype = self.value.kind, self.value.args, self.meta.dtype
        sizes = ", ".join(str(d) for d in shape) if shape else "()"
        if kind in ("randn", "rand", "zeros", "ones"):
            if dtype.startswith(("float8", "float4")):
                return f"torch.{kind}({sizes}{self._options('float32', 'float32')}).to(torch.{dtype})"
            return f"torch.{kind}({sizes}{self._options(self.dtype_default, dtype, grad)})"
        if kind == "randint":
            low, high = args or (0, 2)
            return f"torch.randint({low}, {high}, {_tuple(shape)}{self._options('int64', dtype, grad)})"
        if kind == "full":
            fill = args[0] if isinstance(args[0], str) else number(args[0]) if isinstance(args[0], float) else repr(args[0])
            natural = {"True": "bool", "False": "bool"}.get(fill, "int64" if fill.lstrip("-").isdigit() else self.dtype_default)
            return f"torch.full({_tuple(shape)}, {fill}{self._options(natural, dtype, grad)})"
        if kind == "arange":
            flat = len(shape) == 1
            made = f"torch.arange({math.prod(shape)}{self._options('int64', dtype, grad and flat)})"
            return made if flat else made + _reshape(shape) + (".requires_grad_()" if grad else "")
        if kind == "literal":
            shown = str(args[0])
            return f"torch.tensor({shown}{self._options(_natural(shown, self.dtype_default), dtype, grad)})"
        if kind == "blob":
            return self._read(f'open("{args[0]}", "rb").read()', shape) + (".requires_grad_()" if grad else "")
        raise ValueError(f"no such kind of value: {kind}")

    def packed(self, expression: str) -> str:
        """The tensor for an `expression` that gives its raw bytes."""
        return self._read(expression, self.meta.shape)

    def _read(self, expression: str, shape: tuple[int, ...]) -> str:
        dtype = recorded_dtype(self.value, self.meta)
        made = f"torch.frombuffer(bytearray({expression}), dtype=torch.{dtype})"
        made += "" if len(shape) == 1 else _reshape(shape)
        made += "" if dtype == self.meta.dtype else f".to(torch.{self.meta.dtype})"
        return made if self.meta.device == "cpu" else f'{made}.to("{self.meta.device}")'

    def _options(self, natural: str | None, dtype: str, grad: bool = False) -> str:
        found = "" if dtype == natural else f", dtype=torch.{dtype}"
        found += "" if self.meta.device == "cpu" else f', device="{self.meta.device}"'
        return found + (", requires_grad=True" if grad else "")


def _tuple(shape: tuple[int, ...]) -> str:
    return f"({shape[0]},)" if len(shape) == 1 else "(" + ", ".join(str(d) for d in shape) + ")"


def _reshape(shape: tuple[int, ...]) -> str:
    return f".reshape({', '.join(str(d) for d in shape) or '()'})"


def _natural(literal: str, dtype_default: str | None) -> str | None:
    """The dtype that torch infers for a literal."""
    if "True" in literal or "False" in literal:
        return "bool"
    if "j" in literal or "complex" in literal:
        return None
    return dtype_default if any(mark in literal for mark in (".", "e", "inf", "nan")) else "int64"


def _strided(base: Callable[[tuple[int, ...]], str], kind: str, meta: Meta) -> str:
    """The same elements with the given strides, by the simplest operation that gives exactly these strides."""
    shape, stride, ordered = meta.shape, meta.stride, kind in _ORDERED
    for form, last in ((4, "channels_last"), (5, "channels_last_3d")):
        if len(shape) == form and stride == _channels_last(shape) and 1 not in shape:
            return f"{base(shape)}.to(memory_format=torch.{last})"
    if len(shape) == len(stride):
        spread = tuple(1 if step == 0 and size > 1 else size for size, step in zip(shape, stride, strict=True))
        steps = contiguous_stride(spread)
        if spread != shape and all(a == b or (b == 0 and size > 1) for a, b, size in zip(steps, stride, shape, strict=True)):
            first = ", ".join(":1" if size != now else ":" for size, now in zip(shape, spread, strict=True))
            narrow = f"{base(shape)}[{first}]" if ordered else base(spread)
            return f"{narrow}.expand{_tuple(shape) if len(shape) > 1 else f'({shape[0]})'}"
        order = tuple(sorted(range(len(shape)), key=lambda d: (-stride[d], d)))
        inner = tuple(shape[d] for d in order)
        # with a dimension of one element, `.contiguous()` may be a no-op that keeps odd strides
        if tuple(stride[d] for d in order) == contiguous_stride(inner) and not (ordered and 1 in shape):
            back = tuple(order.index(d) for d in range(len(shape)))
            turn = ".t()" if order == (1, 0) else f".permute{back}"
            there = "" if not ordered else (turn if order == (1, 0) else f".permute{order}") + ".contiguous()"
            return f"{base(shape) if ordered else base(inner)}{there}{turn}"
    if not ordered:
        extent = 1 + sum((size - 1) * step for size, step in zip(shape, stride, strict=True))
        return f"{base((extent,))}.as_strided({_tuple(shape)}, {_tuple(stride)})"
    once = tuple(1 if step == 0 else size for size, step in zip(shape, stride, strict=True))
    if _overlaps(once, stride):
        return base(shape)
    options = f"dtype=torch.{meta.dtype}" + ("" if meta.device == "cpu" else f', device="{meta.device}"')
    if once == shape:
        return f"torch.empty_strided({_tuple(shape)}, {_tuple(stride)}, {options}).copy_({base(shape)})"
    first = ", ".join(":1" if size != now else ":" for size, now in zip(shape, once, strict=True))
    return f"torch.empty_strided({_tuple(once)}, {_tuple(stride)}, {options}).copy_({base(shape)}[{first}]).expand({_tuple(shape)})"


def _channels_last(shape: tuple[int, ...]) -> tuple[int, ...]:
    n, c, *rest = shape
    inner = contiguous_stride((n, *rest, c))
    return (inner[0], 1, *inner[1:-1])


def _overlaps(shape: tuple[int, ...], stride: tuple[int, ...]) -> bool:
    reach = 0
    for step, size in sorted((step, size) for step, size in zip(stride, shape, strict=True) if size > 1):
        if step <= reach:
            return True
        reach += step * (size - 1)
    return False


def embed_blobs(program: Program) -> Program:
    """The `program` with every raw dump embedded in the script itself.

    Constant data becomes zeros, ones, full or arange; up to 64 elements become a literal; the rest becomes compressed text.
    """
    return program.with_graph(_all_embedded(program.graph))


def _all_embedded(graph: Graph) -> Graph:
    return replace(map_inputs(graph, _embedded), bodies=tuple((name, _all_embedded(body)) for name, body in graph.bodies))


def _embedded(item: Input) -> Input:
    if item.value.kind != "blob":
        return item
    data = Path(item.value.args[0]).read_bytes()
    elements = recorded(item, data)
    if elements is not None:
        simple = _uniform(elements, item.meta)
        if simple is not None:
            return replace(item, value=simple)
        if len(elements) <= LITERAL:
            return replace(item, value=Value("literal", (nested(elements, item.meta.shape, item.meta.shape, item.meta.dtype),)))
    packed = base64.b64encode(zlib.compress(data, 9)).decode()
    made = _Factory(item.value, item.meta, None).packed(f'zlib.decompress(base64.b64decode("{packed}"))')
    if item.meta.stride not in ((), contiguous_stride(item.meta.shape)) and not _overlaps(item.meta.shape, item.meta.stride):
        made = f"torch.empty_strided({_tuple(item.meta.shape)}, {_tuple(item.meta.stride)}, dtype=torch.{item.meta.dtype}).copy_({made})"
        made += "" if item.meta.device == "cpu" else f'.to("{item.meta.device}")'
    grad = ".requires_grad_()" if item.requires_grad and not item.parameter else ""
    return replace(item, value=Value("expr", (made + grad + ("" if item.leaf or not grad else " * 1"),)))


def unpack(data: bytes, dtype: str) -> list[Any] | None:
    """The elements of the raw dump `data` as Python numbers; None for a `dtype` that Python has no numbers for."""
    if dtype == "bfloat16":
        return [struct.unpack("<f", b"\0\0" + data[i : i + 2])[0] for i in range(0, len(data), 2)]
    if dtype in ("complex64", "complex128"):
        parts = [v[0] for v in struct.iter_unpack("<f" if dtype == "complex64" else "<d", data)]
        return [complex(a, b) for a, b in zip(parts[::2], parts[1::2], strict=True)]
    letter = _LETTERS.get(dtype)
    return None if letter is None else [v[0] for v in struct.iter_unpack("<" + letter, data)]


def recorded(item: Input, data: bytes) -> list[Any] | None:
    """The elements of `data`, the raw dump of `item`, in the item's dtype; None for a dtype that Python has no numbers for."""
    dtype = recorded_dtype(item.value, item.meta)
    elements = unpack(data, dtype)
    if elements is None or (dtype, item.meta.dtype) != ("float64", "float32"):
        return elements  # every other target dtype holds the recorded numbers exactly
    return [_narrowed(element) for element in elements]


def _narrowed(element: float) -> float:
    try:
        return float(struct.unpack("<f", struct.pack("<f", element))[0])
    except OverflowError:
        return math.copysign(math.inf, element)


def _uniform(elements: list[Any], meta: Meta) -> Value | None:
    if len(elements) > 1 and all(e == elements[0] for e in elements) and not isinstance(elements[0], complex):
        # the sign of zero is data
        signed = {str(e) for e in elements if e == 0}
        if len(signed) > 1 or "-0.0" in signed:
            return None
        if meta.dtype != "bool" and elements[0] in (0, 1):
            return Value("zeros" if elements[0] == 0 else "ones")
        return Value("full", (_scalar(elements[0], meta.dtype),))
    if len(elements) > 2 and meta.dtype in _INTS and elements == list(range(len(elements))):
        return Value("arange")
    return None


def nested(elements: Sequence[Any], whole: Sequence[int], corner: Sequence[int], dtype: str) -> str:
    """Text of nested lists for the `corner` (a shape) of the `elements` of a tensor with shape `whole` and the given `dtype`."""
    if not whole:
        return _scalar(elements[0], dtype)
    step = math.prod(whole[1:])
    rows = (nested(elements[i * step : (i + 1) * step], whole[1:], corner[1:], dtype) for i in range(corner[0]))
    return "[" + ", ".join(rows) + "]"


def _scalar(value: Any, dtype: str) -> str:
    if isinstance(value, complex):
        return number(value)
    if not isinstance(value, float) or value - value != 0:
        return number(value) if isinstance(value, float) else repr(value)
    if dtype in ("float64", "complex128"):
        return repr(value)
    form = {"float16": "<e"}.get(dtype, "<f")
    for digits in range(1, 10):
        shown = repr(float(f"{value:.{digits}g}"))
        try:
            if struct.pack(form, float(shown)) == struct.pack(form, value):
                return shown
        except OverflowError:  # rounded up past the largest number of this dtype
            continue
    return repr(value)
