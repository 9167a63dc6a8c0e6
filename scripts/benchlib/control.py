# ruff: noqa: ARG001, ARG005 - stand-ins take what the real functions take
"""`control.py SCRIPT`: runs a script with the compiler taken out, and says at its end how often the script asked for it.

What would be compiled stays what it is. An exported program is the module that went in, run once in eager where the exporter
traces it. What is saved or packaged is kept in this process, and is there again when its path is loaded. What torch itself
compiles inside an eager call stays as it is. Not the product's control: this one checks the product.
"""

import atexit
import contextlib
import copy
import inspect
import os
import pydoc
import runpy
import sys
import tempfile
from collections import namedtuple
from collections.abc import Callable
from typing import Any
from unittest.mock import MagicMock

import torch
import torch._dynamo
import torch.utils._pytree

INSIDE = os.path.dirname(torch.__file__) + os.sep
calls = 0


def instead(real: Callable[..., Any], other: Callable[..., Any]) -> Callable[..., Any]:
    """`other` where the script calls, which is counted; `real` where torch does, and where `other` says NotImplemented."""

    def call(*args: Any, **kwargs: Any) -> Any:
        global calls
        if sys._getframe(1).f_code.co_filename.startswith(INSIDE):
            return real(*args, **kwargs)
        calls += 1
        given = other(*args, **kwargs)
        return real(*args, **kwargs) if given is NotImplemented else given

    return call


def run_once(function: Any, args: Any, kwargs: Any) -> None:
    """What eager cannot run is no bug of an exporter. Runs on copies, and no random number is used up."""
    args, kwargs = torch.utils._pytree.tree_map_only(torch.Tensor, torch.clone, (tuple(args or ()), dict(kwargs or {})))
    with contextlib.suppress(Exception):  # not every module can be copied
        function = copy.deepcopy(function)
    with torch.random.fork_rng():
        function(*args, **kwargs)


# --- compilers of functions and of graphs


def identity(model: Any = None, *args: Any, **options: Any) -> Any:
    """As torch.compile is called: with a function or graph first, or as a decorator with options only."""
    return model if model is not None else lambda function: function


def optimize(*args: Any, **kwargs: Any) -> Callable[..., Any]:
    """As torch._dynamo.optimize is called: with a backend. What it gives takes the function."""
    return identity


Traced = namedtuple("Traced", "graph_module guards")
OPTIONS = set(inspect.signature(torch._dynamo.export).parameters)


def trace(f: Any, *args: Any, **kwargs: Any) -> Any:
    """As torch._dynamo.export is called: with the function's arguments, or without; what it gives then takes them."""

    def traced(*args: Any, **kwargs: Any) -> Traced:
        run_once(f, args, kwargs)
        return Traced(f, MagicMock())

    given = {name: value for name, value in kwargs.items() if name not in OPTIONS}
    return traced(*args, **given) if args or given else traced


# --- exported programs


class Exported:
    """Stands for an exported program. Its graph, and what else only an exporter makes, can be looked at and is empty."""

    def __init__(self, module: Any, args: Any, kwargs: Any) -> None:
        self.original, self.example_inputs = module, (tuple(args or ()), dict(kwargs or {}))
        self.graph_module = MagicMock(side_effect=module)

    def module(self, *args: Any, **kwargs: Any) -> Any:
        """The module that was exported."""
        return self.original

    def run_decompositions(self, *args: Any, **kwargs: Any) -> "Exported":
        """Itself; this asks the exporter too."""
        global calls
        calls += 1
        return self

    @property
    def state_dict(self) -> dict[str, Any]:
        """A module has a method of that name."""
        return dict(self.original.state_dict())

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self.original, name) if name in ("parameters", "named_parameters", "buffers", "named_buffers") else MagicMock()


def export(mod: Any, args: Any = (), kwargs: Any = None, *rest: Any, **options: Any) -> Exported:
    """As torch.export.export is called."""
    run_once(mod, args, kwargs)
    return Exported(mod, args, kwargs)


def unflatten(module: Any, *args: Any, **kwargs: Any) -> Any:
    """As torch.export.unflatten is called: what went in never was flat."""
    return module.module() if isinstance(module, Exported) else NotImplemented


# --- what is saved and loaded

stored: dict[Any, Any] = {}
made = tempfile.TemporaryDirectory(prefix="bench-control-", ignore_cleanup_errors=True)  # of packages that were given no path


def place(file: Any) -> Any:
    """What a file is known by: its path, or the stream where it has none."""
    path = getattr(file, "name", file)
    return os.path.realpath(path) if isinstance(path, (str, os.PathLike)) else file


def keep(content: Any, file: Any = None, suffix: str = ".pt2") -> Any:
    """Keep it for that path or stream, or for a path of its own.

    Where the script would get a file, there is an empty one, which it may look for or delete; what is there already stays as it is.
    """
    if file is None:
        file = os.path.join(made.name, f"{len(stored)}{suffix}")
    if isinstance(file, (str, os.PathLike)):
        with contextlib.suppress(FileExistsError):
            open(file, "xb").close()
        file = os.fspath(file)
    stored[place(file)] = content
    return file


def kept(file: Any) -> Any:
    """What was kept for it. Of any other file the real loader says what it is."""
    return stored.get(place(file), NotImplemented)


def save(ep: Any, f: Any, *args: Any, **kwargs: Any) -> None:
    """As torch.export.save is called."""
    keep(ep, f)


def load(f: Any, *args: Any, **kwargs: Any) -> Any:
    """As torch.export.load is called."""
    return kept(f)


def package(exported_program: Any, *args: Any, package_path: Any = None, **kwargs: Any) -> Any:
    """As aoti_compile_and_package is called."""
    return keep({"model": exported_program.module()}, package_path)


def library(module: Any, args: Any = (), kwargs: Any = None, *rest: Any, **options: Any) -> Any:
    """As aot_compile is called."""
    run_once(module, args, kwargs)
    return keep({"model": module}, suffix=".so")


def repackage(archive_file: Any, aoti_files: Any) -> Any:
    """As package_aoti is called: with what aot_compile gave, for one model or for several with names."""
    files = aoti_files if isinstance(aoti_files, dict) else {"model": aoti_files}
    return keep({name: kept(file)["model"] for name, file in files.items()}, archive_file)


class Package:
    """Stands for a loaded package of AOTInductor."""

    def __init__(self, module: Any) -> None:
        self.original = module

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """What the packaged module gives."""
        return self.original(*args, **kwargs)

    def get_metadata(self) -> dict[str, str]:
        """What a compiler notes: nothing."""
        return {}

    def get_constant_fqns(self) -> list[str]:
        """The names of its tensors."""
        return list(self.original.state_dict())

    def load_constants(self, constants_map: Any, *args: Any, **kwargs: Any) -> None:
        """Other tensors under their names."""
        self.original.load_state_dict(constants_map, strict=False)


def load_package(path: Any, model_name: str = "model", *args: Any, **kwargs: Any) -> Any:
    """As torch._inductor.package.load_package is called."""
    models = kept(path)
    return Package(models[model_name]) if isinstance(models, dict) else NotImplemented


def load_only(path: Any, *args: Any, **kwargs: Any) -> Any:
    """As aoti_load_package and aot_load are called: there is one model."""
    return load_package(path)


# --- what stands where; names that this version of torch does not have are passed over

StandIns = dict[str, Callable[..., Any]]
AOT: StandIns = dict.fromkeys(("aot_function", "aot_module", "aot_module_simplified"), identity)
EXPORTERS: StandIns = dict.fromkeys(("export", "draft_export", "export_for_training", "export_for_inference"), export)
PACKAGES: StandIns = {"package_aoti": repackage, "load_package": load_package}
STAND_INS: dict[str, StandIns] = {
    "torch": {"compile": identity},
    "torch.compiler": {"compile": identity},
    "torch.nn.Module": {"compile": lambda self, *args, **kwargs: None},
    "torch._dynamo": {"optimize": optimize, "optimize_assert": optimize, "export": trace},
    "torch._functorch.aot_autograd": AOT,
    "functorch.compile": AOT,
    "torch._inductor": {
        "compile": identity,
        "standalone_compile": identity,
        "aot_compile": library,
        "aoti_compile_and_package": package,
        "aoti_load_package": load_only,
    },
    "torch._inductor.compile_fx": {"compile_fx": identity},
    "torch._inductor.package": PACKAGES,
    "torch._inductor.package.package": PACKAGES,
    "torch.export": {**EXPORTERS, "unflatten": unflatten, "save": save, "load": load},
    "torch.export._trace": {"_export": export, "_export_for_training": export},
    "torch._export": {"aot_compile": library, "aot_load": load_only},
}
for path, names in STAND_INS.items():
    owner = pydoc.locate(path)
    for name, other in names.items():
        if hasattr(owner, name):
            setattr(owner, name, instead(getattr(owner, name), other))

atexit.register(lambda: print(f"\nbench-control: {calls} calls", flush=True))
script = os.path.abspath(sys.argv[1])
sys.argv = sys.argv[1:]
sys.path[0] = os.path.dirname(script)
runpy.run_path(script, run_name="__main__")
