"""Leaving the compiler early: no candidate pays for a phase that the signature does not need.

A healthy candidate spends 70-92 % of its time in the C++ compiler. Where the failure shows before that, the search stops
there; the proof always takes the whole way.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any


class PhasePassed(BaseException):
    """The last phase in which the signature can show itself was passed. Not an Exception: nothing may swallow it."""


LOWERED = ("pre_grad", "aot_autograd", "joint", "post_grad", "inductor_lowering")
GENERATED = ("inductor_codegen",)
COMPILED = ("cpp_compile", "triton_compile")


def stop_after(phase: str | None) -> None:
    """Arrange that the first graph which gets past `phase` ends the run with `PhasePassed`; None: no early end."""
    if phase is None:
        return
    lowering = importlib.import_module("torch._inductor.graph").GraphLowering
    if phase in LOWERED:
        _replace(lowering, "codegen", _leave)
        _replace(lowering, "codegen_with_cpp_wrapper", _leave)
    elif phase in GENERATED:
        _replace(lowering, "codegen", _leave_after(lowering.codegen))
        _replace(lowering, "codegen_with_cpp_wrapper", _leave_after(lowering.codegen_with_cpp_wrapper))
    elif phase in COMPILED:
        _replace(lowering, "compile_to_module", _leave_after(lowering.compile_to_module))


def _replace(owner: Any, name: str, function: Callable[..., Any]) -> None:
    if not hasattr(owner, name):
        raise AttributeError(f"this torch has no {owner.__name__}.{name}: bot/inside/rungs.py must follow it")
    setattr(owner, name, function)


def _leave(*_: Any, **__: Any) -> Any:
    raise PhasePassed


def _leave_after(function: Callable[..., Any]) -> Callable[..., Any]:
    def run(*args: Any, **kwargs: Any) -> Any:
        function(*args, **kwargs)
        raise PhasePassed

    return run
