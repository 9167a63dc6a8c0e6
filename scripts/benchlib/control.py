# ruff: noqa: ARG001, ARG005 - stand-ins take what the real functions take
"""`control.py SCRIPT`: runs a script with the compiler taken out, and says at its end how often the script asked for it.

`torch.compile` becomes the identity, the module of an exported program the module itself, an AOTInductor package too. What
torch itself compiles inside an eager call stays as it is. Not the product's control: this one checks the product.
"""

import atexit
import os
import runpy
import sys
from collections.abc import Callable
from typing import Any

import torch
import torch._inductor

script = os.path.abspath(sys.argv[1])
calls = 0


def instead(real: Callable[..., Any], other: Callable[..., Any]) -> Callable[..., Any]:
    """`other` where the script calls, `real` where torch does."""

    def call(*args: Any, **kwargs: Any) -> Any:
        global calls
        if os.path.abspath(sys._getframe(1).f_code.co_filename) != script:
            return real(*args, **kwargs)
        calls += 1
        return other(*args, **kwargs)

    return call


class Exported:
    """Stands for an exported program."""

    def __init__(self, module: Any) -> None:
        self.graph_module = module

    def module(self, *args: Any, **kwargs: Any) -> Any:
        """The module that was exported."""
        return self.graph_module

    def run_decompositions(self, *args: Any, **kwargs: Any) -> "Exported":
        """Itself."""
        return self


def identity(model: Any = None, **options: Any) -> Any:
    """As torch.compile is called: with a function, or as a decorator with options only."""
    return model if model is not None else lambda function: function


def exported(module: Any, *args: Any, **kwargs: Any) -> Exported:
    """As torch.export.export is called; `mod` is its first argument's name."""
    return Exported(module)


packages: dict[str, Any] = {}


def package(program: Exported, *args: Any, package_path: Any = None, **kwargs: Any) -> str:
    """A name that `load` knows."""
    path = str(package_path or f"package-{len(packages)}.pt2")
    packages[path] = program.module()
    return path


def load(path: Any, *args: Any, **kwargs: Any) -> Any:
    """What was packaged under that name."""
    return packages[str(path)]


real_unflatten = torch.export.unflatten
torch.compile = instead(torch.compile, identity)
torch.nn.Module.compile = instead(torch.nn.Module.compile, lambda self, *args, **kwargs: None)
torch.export.export = instead(torch.export.export, exported)
torch.export.draft_export = instead(torch.export.draft_export, exported)
torch.export.unflatten = lambda program, *args, **kwargs: (
    program.module() if isinstance(program, Exported) else real_unflatten(program, *args, **kwargs)
)
torch._inductor.aoti_compile_and_package = instead(torch._inductor.aoti_compile_and_package, package)
torch._inductor.aoti_load_package = instead(torch._inductor.aoti_load_package, load)
atexit.register(lambda: print(f"\nbench-control: {calls} calls", flush=True))

sys.argv = sys.argv[1:]
sys.path[0] = os.path.dirname(script)
runpy.run_path(script, run_name="__main__")
