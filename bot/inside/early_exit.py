"""Leaves the compiler early: no candidate pays for a phase that the signature does not need.

A healthy candidate spends 70-92 % of its time in the C++ compiler. If the failure shows before that, the search stops there; the proof
always runs everything. If Dynamo fails, nothing that it traced is compiled: its graphs run as they are, so that those after a graph break
are traced as well.
"""

from __future__ import annotations

import importlib
import os
import shlex
import types
from collections.abc import Callable
from typing import Any

from .protocol import PhasePassed
from .shortcuts import function_at, shortcut

TRACED = ("dynamo",)
EXPORTED = ("export",)
PASSES = ("pre_grad", "aot_autograd", "joint", "post_grad")
LOWERED = ("inductor_lowering",)
GENERATED = ("inductor_codegen",)
COMPILED = ("cpp_compile", "triton_compile")


def stop_after(phase: str | None) -> None:
    """Make the first graph that gets past `phase` end the run with `PhasePassed`; past Dynamo it runs uncompiled. None: do nothing."""
    if phase is not None:
        with shortcut(f"leaving the compiler after {phase}"):
            _arrange(phase)


def _arrange(phase: str) -> None:
    if phase in TRACED:
        output_graph: Any = importlib.import_module("torch._dynamo.output_graph").OutputGraph
        _replace(output_graph, "call_user_compiler", _as_it_is, "self", "gm")
        return
    if phase in EXPORTED:
        _replace(importlib.import_module("torch._inductor.compile_fx"), "compile_fx_aot", _leave)
        return
    lowering = importlib.import_module("torch._inductor.graph").GraphLowering
    if phase in PASSES:
        _replace(lowering, "run", _leave)
    elif phase in (*LOWERED, *GENERATED):
        for name in ("codegen", "codegen_with_cpp_wrapper"):
            _replace(lowering, name, _leave if phase in LOWERED else _leave_after(getattr(lowering, name)))
    elif phase in COMPILED:
        _replace(lowering, "compile_to_module", _leave_after(lowering.compile_to_module))
        _check_only()


def _check_only() -> None:
    """Only check C++ for errors, without making an object file. A package ends the run where it would be linked; a kernel that is compiled
    separately is not loaded, and the run ends when the last one has been checked."""
    builder: Any = importlib.import_module("torch._inductor.cpp_builder")
    codecache: Any = importlib.import_module("torch._inductor.codecache")
    compiler, kernels = codecache.AotCodeCompiler, codecache.CppCodeCache
    run, build = function_at(builder, "_run_compile_cmd", "cmd_line", "cwd"), compiler.compile
    load = function_at(kernels, "_load_library", "path", "key").__func__
    packaging = False

    def compile_package(*args: Any, **kwargs: Any) -> Any:
        nonlocal packaging
        packaging = True
        return build(*args, **kwargs)

    def check(cmd_line: str, cwd: str) -> None:
        words = shlex.split(cmd_line)
        sources = [word for word in words if word.endswith((".cpp", ".cc"))]
        if "-E" in words or "c++-header" in words:
            run(cmd_line, cwd)
        elif sources:
            output = words.index("-o")
            run(shlex.join([*words[:output], *words[output + 2 :], "-fsyntax-only"]), cwd)
        elif packaging:
            raise PhasePassed

    def load_library(cache: Any, path: str, key: str) -> Any:
        return load(cache, path, key) if os.path.exists(path) else _Unloaded(key)

    compiler.compile = compile_package
    kernels._load_library = classmethod(load_library)
    builder._run_compile_cmd = check


class _Unloaded(types.ModuleType):
    """Stands for a library that was only checked; nothing in it is called before the run ends."""

    def __getattr__(self, name: str) -> Any:
        return _leave


def _replace(owner: Any, name: str, function: Callable[..., Any], *parameters: str) -> None:
    function_at(owner, name, *parameters)
    setattr(owner, name, function)


def _as_it_is(_output: Any, gm: Any, *_: Any, **__: Any) -> Any:
    return gm.forward


def _leave(*_: Any, **__: Any) -> Any:
    raise PhasePassed


def _leave_after(function: Callable[..., Any]) -> Callable[..., Any]:
    def run(*args: Any, **kwargs: Any) -> Any:
        function(*args, **kwargs)
        raise PhasePassed

    return run
