"""Arguments of a graph's nodes in JSON form, see `fx_form`."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import torch
import torch.fx

from .fx_form import Form
from .fx_symbols import Symbols
from .fx_targets import Unreadable, code_of
from .fx_values import hint


class Arguments:
    """Encodes arguments for a `form`; `body` adds a graph under a name and gives the reference to it."""

    def __init__(self, form: Form, symbols: Symbols, body: Callable[[torch.fx.GraphModule, str], Any]) -> None:
        self._form = form
        self._symbols = symbols
        self._body = body

    def encode(self, value: Any, env: Mapping[torch.fx.Node, Any] | None = None) -> Any:
        """The argument `value` in JSON form; `env` says what stands for each node. Raises `Unreadable`."""
        if isinstance(value, torch.fx.Node):
            return (env or {})[value]
        if value is None or isinstance(value, (bool, str)):
            return value
        if isinstance(value, (torch.SymInt, torch.SymFloat, torch.SymBool)):
            return self._symbols.express(value.node.expr, hint(value))
        if type(value) is int or (type(value) is float and math.isfinite(value)):
            return value
        if isinstance(value, slice):
            return {"$slice": [self.encode(part, env) for part in (value.start, value.stop, value.step)]}
        if isinstance(value, tuple):
            return {"$tuple": [self.encode(item, env) for item in value]}
        if isinstance(value, list):
            return [self.encode(item, env) for item in value]
        if isinstance(value, dict):
            if not all(isinstance(key, str) for key in value):
                raise Unreadable("a dict argument whose keys are no strings")
            return {"$map": [[key, self.encode(item, env)] for key, item in value.items()]}
        if isinstance(value, torch.Tensor):
            return self._form.add_constant("tensor_constant", value, parameter=False)
        if isinstance(value, torch.fx.GraphModule):
            return self._body(value, "body")
        text = code_of(value)
        if text is not None:
            return {"$code": text}
        if isinstance(value, int):
            return int(value)
        raise Unreadable(f"an argument of type {type(value).__module__}.{type(value).__qualname__}")

    def text(self, number: Any) -> str:
        """Python text for a `number`."""
        encoded = self.encode(number)
        return str(encoded["$code"]) if isinstance(encoded, dict) else repr(encoded)
