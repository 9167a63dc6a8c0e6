"""Describes the values inside `Repro.forward`, and exports it, by running the script without the compiler."""

from __future__ import annotations

import builtins
import functools
import os
from types import FrameType
from typing import Any

import torch

from ..capture.fx_values import meta_of
from ..capture.literals import device_text
from ..eager import compiler_out, lifetimes
from ..program import format_error, run_watched
from ..protocol import RETURNED, Facts, Question, ValueMeta

# The function that sees values which are deleted before `forward` returns.
_ON_DELETE = "_torch_minify_on_delete"


def describe(path: str, question: Question) -> Facts:
    """Facts for a `question`: the script at `path` under the eager control, with `values`: each local of the first call of `forward`, by
    name."""
    compiler_out.take_out()
    found: dict[str, ValueMeta] = {}

    def on_delete(name: str, value: Any) -> None:
        if RETURNED not in found:
            found[name] = meta(value)

    def watch(frame: FrameType, event: str, result: Any) -> None:
        code = frame.f_code
        if event == "return" and code.co_name == "forward" and code.co_filename == path and RETURNED not in found:
            found.update({name: meta(value) for name, value in frame.f_locals.items() if name != "self"})
            found[RETURNED] = meta(result)

    setattr(builtins, _ON_DELETE, on_delete)
    facts = run_watched(path, question.argv, watch, functools.partial(lifetimes.shortened, on_delete=_ON_DELETE))
    return {**facts, "values": found}


def export(path: str, question: Question) -> Facts:
    """Save `Repro` of the script at `path` with its inputs as an exported program in the file `question.save`; returns the facts of how
    that went."""
    target = question.save
    assert target is not None
    export_original, save = torch.export.export, torch.export.save
    compiler_out.take_out()
    found: list[tuple[Any, tuple[Any, ...], dict[str, Any]]] = []

    def watch(frame: FrameType, event: str, _: Any) -> None:
        code = frame.f_code
        if event == "call" and code.co_name == "forward" and code.co_filename == path and not found:
            held, names = frame.f_locals, code.co_varnames
            keywords = names[code.co_argcount : code.co_argcount + code.co_kwonlyargcount]
            found.append((held["self"], tuple(held[n] for n in names[1 : code.co_argcount]), {n: held[n] for n in keywords}))

    facts = run_watched(path, question.argv, watch)
    if not found:
        return {**facts, "status": "raised", "text": facts.get("text") or "the script does not call Repro"}
    module, arguments, keywords = found[0]
    try:
        exported = export_original(module, arguments, keywords)
        # for readers without torch; the directory in which the script ran is private
        with open(os.path.splitext(target)[0] + ".txt", "w", encoding="utf-8") as file:
            file.write(str(exported).replace(os.path.join(os.path.dirname(path), ""), "") + "\n")
        _forget_places(exported)
        save(exported, target)
    except Exception as error:
        return {"status": "raised", "text": format_error(error)}
    return {"status": "ok", "text": ""}


def _forget_places(exported: Any) -> None:
    """Remove the source locations from a program: the saved file would contain paths of this machine."""
    for module in exported.graph_module.modules():
        for node in module.graph.nodes if isinstance(module, torch.fx.GraphModule) else ():
            node.meta.pop("stack_trace", None)


def meta(value: Any) -> ValueMeta:
    """The metadata of `value`, as in `bot.reduce.graph.form.Meta`."""
    if isinstance(value, torch.Tensor):
        strided = value.layout == torch.strided
        return {
            "kind": "tensor",
            "shape": [int(d) for d in value.shape],
            "stride": [int(d) for d in value.stride()] if strided else [],
            "dtype": str(value.dtype).removeprefix("torch."),
            "device": device_text(value.device),
        }
    if isinstance(value, (tuple, list)):
        return {"kind": "other", "items": [meta(item) for item in value]}
    number: Any = meta_of(value)
    return number
