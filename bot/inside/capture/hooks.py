"""The three hook points, the same as those of PyTorch's own minifiers: between Dynamo and a backend, before Inductor, around AOTInductor.

Each graph that passes goes to the tracker.
"""

from __future__ import annotations

import contextlib
import copy
import functools
import importlib
import os
import shutil
from collections.abc import Callable, Sequence
from typing import Any

import torch

from ..eager import accuracy
from ..shortcuts import shortcut
from . import kernel_pool, recipe
from .afterwards import MOST, Afterwards
from .captured_graph import CapturedGraph
from .tracker import Tracker

# What `dynamic=` of torch.compile sets while it compiles.
_SET_BY_DYNAMIC = ("torch._dynamo.config.assume_static_by_default", "torch._dynamo.config.automatic_dynamic_shapes")


def install(tracker: Tracker) -> None:
    """Install the `tracker` at the hook points of this torch. Raises AttributeError if one is not where this module expects it."""
    _torch_compile(tracker)
    _dynamo(tracker)
    _inductor(tracker)
    _aot_inductor(tracker)
    _decompositions(tracker)


def _torch_compile(tracker: Tracker) -> None:
    original = torch.compile

    @functools.wraps(original)
    def recorded(model: Any = None, **kwargs: Any) -> Any:
        saved, tracker.kwargs = tracker.kwargs, kwargs
        tracker.reached()
        try:
            return original(model, **kwargs)
        finally:
            tracker.kwargs = saved

    torch.compile = recorded


def _current_recipe(kwargs: dict[str, Any] | None, compiler: str | None = None) -> dict[str, Any]:
    """How the current graph is being compiled: by a call of torch.compile with these keywords (None: by this compiler), under torch's
    settings."""
    if kwargs is None:
        kwargs = {"backend": compiler} if compiler and compiler != "inductor" else {}
    backend = kwargs.get("backend")
    return {
        "backend": None if backend is None or backend == "inductor" else recipe.described(backend),
        "mode": kwargs.get("mode"),
        "options": {key: recipe.described(value) for key, value in (kwargs.get("options") or {}).items()},
        "dynamic": kwargs.get("dynamic"),
        "fullgraph": bool(kwargs.get("fullgraph")),
        "config": recipe.config_entries(),
        "contexts": recipe.contexts(),
        "setup": recipe.setup(),
        "custom_backend_passes": recipe.backend_passes(),
    }


def _dynamo(tracker: Tracker) -> None:
    after_dynamo: Any = importlib.import_module("torch._dynamo.repro.after_dynamo")

    class Hook(after_dynamo.WrapBackendDebug):
        def __init__(self, backend: Any, name: str | None, kwargs: dict[str, Any] | None) -> None:
            super().__init__(backend, name)
            self._compile_kwargs = kwargs

        def __call__(self, gm: Any, example_inputs: list[Any], **kwargs: Any) -> Any:
            how = _current_recipe(self._compile_kwargs, self._compiler_name)
            if how["dynamic"] is not None:
                how["config"] = {name: held for name, held in how["config"].items() if name not in _SET_BY_DYNAMIC}
            backend = functools.partial(self._torchdynamo_orig_backend, **kwargs)
            region = CapturedGraph("dynamo", snapshot(gm), example_inputs, how, self._compiler_name or "backend", backend=backend)
            tracker.dynamo = region
            with tracker.watching(region, "compile", beforehand=tracker.beforehand):
                compiled = super().__call__(gm, example_inputs, **kwargs)
            return tracker.first_call(region, compiled, boxed=False)

    def wrap(backend: Any, name: str | None) -> Any:
        return Hook(backend, name, tracker.kwargs)

    if not hasattr(after_dynamo, "wrap_backend_debug"):
        raise AttributeError("this torch has no after_dynamo.wrap_backend_debug: bot/inside/capture/hooks.py must follow it")
    after_dynamo.wrap_backend_debug = wrap


def _inductor(tracker: Tracker) -> None:
    compile_fx: Any = importlib.import_module("torch._inductor.compile_fx")
    original = compile_fx.wrap_compiler_debug

    def wrap(inner: Callable[..., Any], compiler_name: str) -> Callable[..., Any]:
        wrapped = original(inner, compiler_name)

        @functools.wraps(inner)
        def compile_inner(gm: Any, example_inputs: Sequence[Any], *args: Any, **kwargs: Any) -> Any:
            outer = tracker.dynamo
            how = outer.recipe if outer is not None else _current_recipe(None)
            region = CapturedGraph("aot", snapshot(gm), list(example_inputs), how, compiler_name, backward=bool(kwargs.get("is_backward")))
            if tracker.aoti:  # the user sees the package fail, not this graph
                return wrapped(gm, example_inputs, *args, **kwargs)
            tracker.blame.forget()
            if kernel_pool.is_of_use(example_inputs):
                with shortcut("compiling kernels side by side"):
                    kernel_pool.begin()
            with tracker.watching(region, "compile", beforehand=tracker.beforehand):
                compiled = wrapped(gm, example_inputs, *args, **kwargs)
            if isinstance(compiled, str) or not callable(compiled):
                return compiled
            call = tracker.first_call(region, compiled, boxed=True)
            call._boxed_call = True  # type: ignore[attr-defined]
            return call

        return compile_inner

    compile_fx.wrap_compiler_debug = wrap


def _aot_inductor(tracker: Tracker) -> None:
    inductor: Any = importlib.import_module("torch._inductor")
    compile_original, load_original = inductor.aoti_compile_and_package, inductor.aoti_load_package
    packages: dict[str, CapturedGraph] = {}

    @functools.wraps(compile_original)
    def compile_and_package(exported_program: Any, *args: Any, **kwargs: Any) -> Any:
        tracker.reached()
        region = CapturedGraph("aoti", exported_program, None, _current_recipe({"options": kwargs.get("inductor_configs")}))
        tracker.aoti += 1
        try:
            with tracker.watching(region, "compile", beforehand=tracker.beforehand):
                path = compile_original(exported_program, *args, **kwargs)
        finally:
            tracker.aoti -= 1
        packages[str(path)] = region
        # one call leaves state for the next, and such calls are not compared
        tracker.broke = tracker.broke or _keeps_state(exported_program)
        example = getattr(exported_program, "example_inputs", None)
        if tracker.later is not None:
            _keep_package(tracker.later, region, str(path), os.path.join(tracker.out, f"package-{len(packages)}.pt2"), load_original)
        if tracker.check and example is not None:
            # now, since the program may never load it, or may remove it
            with contextlib.suppress(Exception):  # if it cannot be loaded or called, whoever does so will report it
                _Loaded(tracker, region, load_original(path)).compare(*example)
        return path

    @functools.wraps(load_original)
    def load_package(path: Any, *args: Any, **kwargs: Any) -> Any:
        region = packages.get(str(path))
        if region is None:
            return load_original(path, *args, **kwargs)
        with tracker.watching(region, "run"):
            loaded = load_original(path, *args, **kwargs)
        return _Loaded(tracker, region, loaded)

    inductor.aoti_compile_and_package = compile_and_package
    inductor.aoti_load_package = load_package


def _decompositions(tracker: Tracker) -> None:
    """Record functions that a program passes to an exported program as decompositions; no table of torch's contains them."""
    program: Any = importlib.import_module("torch.export").ExportedProgram
    original = program.run_decompositions

    @functools.wraps(original)
    def run_decompositions(exported: Any, *args: Any, **kwargs: Any) -> Any:
        table = args[0] if args else kwargs.get("decomp_table")
        with contextlib.suppress(Exception):  # if it is not a table, torch will say so
            tracker.decompositions += [table[key] for key in table] if table else []
        return original(exported, *args, **kwargs)

    program.run_decompositions = run_decompositions


def _keep_package(later: Afterwards, region: CapturedGraph, path: str, copied: str, load: Callable[[str], Any]) -> None:
    """Keep a copy (`copied`) of the package in the file `path` for the end: the program may never load it, or may remove it."""
    example = region.graph.example_inputs
    try:
        if example is None or _keeps_state(region.graph) or os.path.getsize(path) > MOST:
            later.forget()
        else:
            shutil.copyfile(path, copied)
            later.keep_package(region, lambda: load(copied), *example)
    except OSError:  # no room
        later.forget()


def _keeps_state(exported: Any) -> bool:
    """Whether a program writes to its own buffers. Its package can then be compared with it only when both are
    new: a call changes either."""
    signature, graph = getattr(exported, "graph_signature", None), getattr(exported, "graph", None)
    if signature is None or graph is None:
        return False
    held = {*signature.inputs_to_buffers, *signature.inputs_to_parameters}
    return bool(signature.buffers_to_mutate) or any(_origin(value) in held for node in graph.nodes for value in _written(node))


def _written(node: Any) -> list[Any]:
    """The arguments that the operation of a `node` writes to, by its schema."""
    arguments = getattr(getattr(node.target, "_schema", None), "arguments", ())
    return [value for one, value in zip(arguments, node.args, strict=False) if one.alias_info is not None and one.alias_info.is_write]


def _origin(value: Any) -> str:
    """The name of the input that `value` is a view of; if it is not a view, the input that it was first computed from."""
    while isinstance(value, torch.fx.Node) and value.op != "placeholder":
        value = value.args[0] if value.args else None
    return value.name if isinstance(value, torch.fx.Node) else ""


class _Loaded:
    """A loaded package, watched at its first call."""

    def __init__(self, tracker: Tracker, region: CapturedGraph, loaded: Any) -> None:
        self._tracker, self._region, self._loaded, self._worked = tracker, region, loaded, False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loaded, name)

    def compare(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Compare its results for these arguments with those of the exported program."""
        found = accuracy.compare_package(self._region.graph, self._loaded, args, kwargs, self._tracker.rule)
        self._tracker.judged(self._region, found)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if self._worked:
            return self._loaded(*args, **kwargs)
        compares = not _keeps_state(self._region.graph)
        if compares and self._tracker.check:
            self.compare(args, kwargs)
        if compares and self._tracker.later is not None:
            self._tracker.later.keep_package(self._region, lambda: self._loaded, args, kwargs)
        with self._tracker.watching(self._region, "run"):
            result = self._loaded(*args, **kwargs)
        self._worked = True
        return result


def snapshot(gm: Any, copies: dict[Any, Any] | None = None) -> Any:
    """A copy of the current graph `gm`, including the graphs that its higher-order operations call, since the compiler's passes change
    graphs in place. `copies` maps graphs to copies already made."""
    known = {} if copies is None else copies
    copied = torch.fx.GraphModule(gm, copy.deepcopy(gm.graph))
    for name in [node.target for node in copied.graph.nodes if node.op == "get_attr"]:
        body = getattr(copied, name, None)
        if isinstance(body, torch.fx.GraphModule) and body is getattr(gm, name, None):
            if body not in known:
                known[body] = snapshot(body, known)
            setattr(copied, name, known[body])
    return copied
