"""Runs what the compiler rejects in eager: the program as it would continue if there had been no compiler exception to catch."""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable
from types import FunctionType
from typing import Any

from .escaped import Escaped


def install(escaped: Escaped) -> None:
    """Make each function that `torch.compile` returns call the user's own if the compiler raises an exception that `escaped` recorded."""
    context: Any = importlib.import_module("torch._dynamo.eval_frame").OptimizeContext
    original = context.__call__

    @functools.wraps(original)
    def call(self: Any, fn: Any) -> Any:
        compiled = original(self, fn)
        # a module is called through a function that is made in the same way
        return _falling_back(compiled, fn, escaped) if isinstance(compiled, FunctionType) else compiled

    context.__call__ = call


def _falling_back(compiled: Callable[..., Any], fn: Callable[..., Any], escaped: Escaped) -> Callable[..., Any]:
    @functools.wraps(compiled)
    def run(*args: Any, **kwargs: Any) -> Any:
        try:
            return compiled(*args, **kwargs)
        except Exception as error:
            if not escaped.forget(error):
                raise
        return fn(*args, **kwargs)

    return run
