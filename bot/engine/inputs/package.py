"""`.pt2` files: exported programs and AOTInductor packages. Only the names in them are read here: loading one runs code."""

from __future__ import annotations

import re
import shutil
import zipfile
from pathlib import Path

from bot.engine.inputs.archive import UNREADABLE
from bot.engine.inputs.taken import NotUnderstood, Place, Taken
from bot.models.result import TakenAs

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
# The example inputs; for a program without them, random ones that match its signature.
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
_COMPILED = """\
with torch.no_grad():
    torch.compile(program.module())(*args, **kwargs)
"""
_PACKAGED = """\
with torch.no_grad():
    path = torch._inductor.aoti_compile_and_package(program)
    torch._inductor.aoti_load_package(path)(*args, **kwargs)
"""
# Compares the compiled code of a package with its program.
_BESIDE = """\
with torch.no_grad():
    found = {loaded}(*args, **kwargs)
    torch.testing.assert_close(found, program.module()(*args, **kwargs), equal_nan=True)
"""
# torch.export.load and aoti_load_package take the model of this name.
_USUAL = "model"
_LOAD_OTHER = """\
import torch
from torch.export.pt2_archive._package import load_pt2

program = load_pt2({path!r}).exported_programs[{name!r}]
"""
_OTHER_CODE = "torch.export.pt2_archive._package.load_pt2({path!r}).aoti_runners[{name!r}]"
_MODEL = re.compile(r"(?:[^/]*/)?models/([^/]+)\.json")
_CODE = re.compile(r"(?:[^/]*/)?data/aotinductor/(?:([^/]+)/)?")


def read(place: Place) -> Taken:
    """The program in the `.pt2` file at `place`; of several, the one with the name of the graph that was asked for. Raises NotUnderstood if
    it holds no exported program, or none of that name."""
    try:
        with zipfile.ZipFile(place.path) as archive:
            names = archive.namelist()
    except UNREADABLE as error:
        raise NotUnderstood(f"a .pt2 file that is no archive: {error}") from error
    # a file of torch.save has the same layout, below its own name
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
    models = [match[1] for name in names if (match := _MODEL.fullmatch(name))]
    name = place.graph or (_USUAL if _USUAL in models or not models else models[0])
    if place.graph is not None and name not in models:
        raise NotUnderstood(f"a .pt2 file without a program {name!r}; it has {', '.join(models) or 'one without a name'}")
    notes = [told]
    if len(models) > 1:
        notes.append(f"its programs: {', '.join(models)}; {name} is taken, --graph chooses")
    path, read, otherwise = place.path.resolve(), [place.path.resolve()], ""
    if compiled:
        notes.append("the program is compiled anew; where that does not fail, the compiled code in the package is run beside it")
        # torch loads the compiled code along with the program, in the eager control as well
        path = _without_code(path, place.scratch / "without_code.pt2")
        code = {match[1] for inside in names if (match := _CODE.match(inside))}
        called = name if name in code else min(filter(None, code), default=_USUAL)
        usual = "torch._inductor.aoti_load_package({path!r})" if called == _USUAL else _OTHER_CODE
        beside = _BESIDE.format(loaded=usual.format(path=str(place.path.resolve()), name=called))
        read.append(path)
    begin = (_LOAD if name == _USUAL else _LOAD_OTHER).format(path=str(path), name=name) + inputs
    if compiled:
        otherwise = begin + beside
    read += [place.inputs.resolve()] if place.inputs is not None else []
    detail = "an AOTInductor package with its program" if compiled else "an exported program"
    taken_as: TakenAs = "package" if compiled else "exported_program"
    return Taken(taken_as, detail, begin + _COMPILED, tuple(notes), tuple(read), then=begin + _PACKAGED, otherwise=otherwise)


def _without_code(path: Path, target: Path) -> Path:
    """Copy the archive `path` to `target` with only its program. Raises NotUnderstood if it is damaged."""
    try:
        with zipfile.ZipFile(path) as archive, zipfile.ZipFile(target, "w") as out:
            for entry in archive.infolist():
                if not _CODE.match(entry.filename):
                    if entry.file_size > entry.compress_size:
                        raise NotUnderstood("a .pt2 file with compressed parts, which torch does not write")
                    with archive.open(entry) as stream, out.open(entry.filename, "w", force_zip64=True) as copy:
                        shutil.copyfileobj(stream, copy, 2**20)
    except UNREADABLE as error:
        raise NotUnderstood(f"a .pt2 file that cannot be read: {error}") from error
    return target
