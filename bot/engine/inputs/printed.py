"""Turns Dynamo's graphs, as torch prints them into a trace (`dynamo_output_graph`), into the form in which torch dumps them.

A compilation that fails in AOTAutograd, or in a custom backend, leaves no other graph in a trace. Each input is annotated with its dtype,
shape, strides and device.
"""

from __future__ import annotations

import ast
import re
import textwrap

from bot.engine.inputs.bodies import source

# The abbreviations of torch.utils._dtype_abbrs, with the bytes of one element.
_DTYPES = {
    "bf16": ("bfloat16", 2), "f64": ("float64", 8), "f32": ("float32", 4), "f16": ("float16", 2), "c32": ("complex32", 4),
    "c64": ("complex64", 8), "c128": ("complex128", 16), "i8": ("int8", 1), "i16": ("int16", 2), "i32": ("int32", 4), "i64": ("int64", 8),
    "b8": ("bool", 1), "u8": ("uint8", 1), "u16": ("uint16", 2), "u32": ("uint32", 4), "u64": ("uint64", 8),
}  # fmt: skip
_TENSOR = re.compile(r"(?P<dtype>[a-z]+\d+)\[(?P<shape>[\d, ]*)\]\[(?P<strides>[\d, ]*)\](?P<device>[a-z]+(?::\d+)?)\Z")
_BACKEND = re.compile(r"backend='([\w.]{1,80})' raised")
_SCRIPT = """\
import torch

{graph}
def load_args(reader):
{inputs}
load_args._version = 0
if __name__ == '__main__':
    from torch._dynamo.repro.after_dynamo import run_repro
    run_repro(mod, load_args, accuracy=False, command='run', save_dir=None, autocast=False, backend={backend!r})
"""


def as_dump(printed: str, said: str) -> str | None:
    """The `printed` graph as a dumped script; None if its inputs are not all tensors of known sizes, or if it uses modules of the program.
    `said` is how its compilation failed, which may name the backend."""
    try:
        tree = ast.parse(textwrap.dedent(printed))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    outer = next((node for node in tree.body if isinstance(node, ast.ClassDef)), None)
    forward = next((n for n in outer.body if isinstance(n, ast.FunctionDef) and n.name == "forward"), None) if outer else None
    if outer is None or forward is None or _uses_others(outer):
        return None
    lines: list[str] = []
    for argument in forward.args.args[1:]:
        made = _input(argument, len(lines) // 2)
        if made is None:
            return None
        lines += made
    backend = match[1] if (match := _BACKEND.search(said)) else "inductor"
    graph = source(outer).replace(f"class body_{outer.name}(", "class Repro(", 1)
    return _SCRIPT.format(graph=graph, inputs="\n".join(f"    {line}" for line in lines or ["pass"]), backend=backend)


def _uses_others(outer: ast.ClassDef) -> bool:
    """Whether a graph reads an attribute that is not one of the classes nested in it."""
    known = {node.name for node in ast.walk(outer) if isinstance(node, ast.ClassDef)}
    read = (n for n in ast.walk(outer) if isinstance(n, ast.Attribute) and isinstance(n.value, ast.Name) and n.value.id == "self")
    return any(node.attr not in known for node in read)


def _input(argument: ast.arg, number: int) -> list[str] | None:
    """The two lines of `load_args` that make an input, as torch writes them."""
    said = argument.annotation.value if isinstance(argument.annotation, ast.Constant) else None
    found = _TENSOR.match(said) if isinstance(said, str) else None
    if found is None or found["dtype"] not in _DTYPES:
        return None
    dtype, size = _DTYPES[found["dtype"]]
    shape, strides = (tuple(int(n) for n in found[name].split(",") if n.strip()) for name in ("shape", "strides"))
    if len(shape) != len(strides):
        return None
    elements = 0 if 0 in shape else 1 + sum((n - 1) * step for n, step in zip(shape, strides, strict=True))
    device = f"torch.device({found['device']!r})"
    trains = "_parameters_" in argument.arg and dtype.startswith(("float", "bfloat"))
    return [
        f"buf{number} = reader.storage(None, {elements * size}, device={device}, dtype_hint=torch.{dtype})",
        f"reader.tensor(buf{number}, {shape}, {strides}, dtype=torch.{dtype}, requires_grad={trains}, is_leaf=True)  # {argument.arg}",
    ]
