"""`.pt2` files: exported programs, and AOTInductor packages. Only the names in them are read here: loading one runs code."""

from __future__ import annotations

import zipfile

from bot.engine.inputs.taken import NotUnderstood, Place, Taken

_LOAD = """\
import torch

program = torch.export.load({path!r})
"""
_GIVEN = """\
given = torch.load({path!r}, weights_only=True)
args, kwargs = given if isinstance(given, (tuple, list)) and len(given) == 2 and isinstance(given[1], dict) else (given, {{}})
args = () if isinstance(args, dict) else tuple(args) if isinstance(args, (tuple, list)) else (args,)
kwargs = given if isinstance(given, dict) else kwargs
"""
# Of a program without example inputs: random ones of its signature.
_OWN = """\
from torch._dynamo.testing import rand_strided


def size(number):
    return number if isinstance(number, int) else number.node.hint


def drawn(value):
    if isinstance(value, torch.Tensor):
        return rand_strided(tuple(map(size, value.shape)), tuple(map(size, value.stride())), value.dtype, value.device)
    return size(value) if isinstance(value, torch.SymInt) else value


torch.manual_seed(0)
inputs = program.example_inputs
if inputs is None:
    values = {node.name: node.meta.get("val") for node in program.graph.nodes if node.op == "placeholder"}
    flat = [drawn(values[name]) if name in values else name for name in program.graph_signature.user_inputs]
    inputs = torch.utils._pytree.tree_unflatten(flat, program.call_spec.in_spec)
args, kwargs = inputs
"""
_RUN = """\
with torch.no_grad():
    torch.compile(program.module())(*args, **kwargs)
    path = torch._inductor.aoti_compile_and_package(program)
    torch._inductor.aoti_load_package(path)(*args, **kwargs)
"""


def read(place: Place) -> Taken:
    """The program in the `.pt2` file at `place`.

    Raises:
        NotUnderstood: it holds no exported program.
    """
    try:
        with zipfile.ZipFile(place.path) as archive:
            names = archive.namelist()
    except (zipfile.BadZipFile, OSError, ValueError) as error:
        raise NotUnderstood(f"a .pt2 file that is no archive: {error}") from error
    # a file of torch.save has the same shape, with its own name in front
    inside = [*names, *(name.partition("/")[2] for name in names)]
    compiled = any(name.startswith("data/aotinductor/") or name.endswith(".wrapper.so") for name in inside)
    program = any(name == "serialized_exported_program.json" or (name.startswith("models/") and name.endswith(".json")) for name in inside)
    if not program and compiled:
        raise NotUnderstood(
            "an AOTInductor package: it holds compiled code but not the program, so there is nothing in it that can be reduced;"
            " give the exported program that it was made from (torch.export.save), or the script"
        )
    if not program:
        raise NotUnderstood("a file of tensors, or an archive, in which there is no exported program (torch.export.save): give the script")
    if place.inputs is not None:
        inputs, told = _GIVEN.format(path=str(place.inputs.resolve())), f"its inputs are read from {place.inputs.name}"
    else:
        inputs = _OWN
        told = "its inputs are its example inputs; where it has none, random ones of its signature (--inputs FILE.pt gives others)"
    notes = (told, *(["the compiled code in it is not used: the program is compiled anew"] if compiled else []))
    detail = "an AOTInductor package with its program" if compiled else "an exported program"
    text = _LOAD.format(path=str(place.path.resolve())) + inputs + _RUN
    read = (place.path.resolve(), *([place.inputs.resolve()] if place.inputs is not None else []))
    return Taken("package" if compiled else "exported_program", detail, text, notes, read)
