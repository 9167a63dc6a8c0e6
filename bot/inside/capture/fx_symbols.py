"""Symbolic sizes of a graph, told by what holds them or computes them."""

from __future__ import annotations

from typing import Any

import torch

from .fx_form import Form
from .fx_values import is_plain, symbol

_SYMPY = {"Add": "add", "Mul": "mul", "Pow": "pow", "FloorDiv": "floordiv", "CleanDiv": "floordiv", "PythonMod": "mod", "Mod": "mod"}


class Symbols:
    """What stands for each symbolic size in a `form`."""

    def __init__(self, form: Form) -> None:
        self._form = form
        self._found: dict[str, Any] = {}  # text of a size -> a reference, or the name and dimension of an input

    def note(self, known: Any, reference: Any) -> None:
        """A `reference` to a value, of which `known` says that it is a symbolic size, or a tensor with such sizes."""
        text = symbol(known)
        if text is not None:
            self._found.setdefault(text, reference)

    def note_sizes(self, known: Any, name: str) -> None:
        """An input called `name`: what `known` is, and where it is a tensor, its sizes."""
        self.note(known, {"$ref": name})
        if isinstance(known, torch.Tensor) and is_plain(known):
            for dim, size in enumerate(known.shape):
                self.note(size, (name, dim))

    def express(self, expr: Any, number: Any) -> Any:
        """For the sympy expression `expr`: the input that holds it, or nodes that compute it, or (out of words) the `number` it had."""
        known = self._found.get(str(expr))
        if isinstance(known, tuple):
            name, dim = known
            meta = {"kind": "int", "symbols": [str(expr)]}
            made = self._form.add_node("function", "torch.ops.aten.sym_size.int", [{"$ref": name}, dim], {}, meta, "sym_size")
            self._found[str(expr)] = made
            return made
        if known is not None:
            return known
        if getattr(expr, "is_Integer", False):
            return int(expr)
        made = self._compute(expr)
        if made is None:
            return number
        self._found[str(expr)] = made
        return made

    def _compute(self, expr: Any) -> Any:
        word = _SYMPY.get(type(expr).__name__)
        if word is None or len(expr.args) < 2 or (word == "pow" and not (expr.args[1].is_Integer and expr.args[1] > 0)):
            return None
        # Constants come first in sympy's order; people write them last.
        parts = sorted(expr.args, key=lambda a: bool(a.is_Integer)) if word in ("add", "mul") else list(expr.args)
        values = [self.express(part, None) for part in parts]
        if any(value is None for value in values):
            return None
        made = values[0]
        for value in values[1:]:
            made = self._form.add_node("function", f"operator.{word}", [made, value], {}, {"kind": "int"}, word)
        return made
