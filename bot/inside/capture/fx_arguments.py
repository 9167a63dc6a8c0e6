"""Converts the values of a graph to its JSON form (see `fx_form`): arguments of its nodes, and inputs.

An input is what a placeholder stood for in the failing run.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from typing import Any

import torch
import torch.fx

from .fx_form import Form
from .fx_targets import Unreadable, code_of
from .fx_values import hint, is_fake, is_plain, meta_of, symbol, value_of

_SYMPY = {"Add": "add", "Mul": "mul", "Pow": "pow", "FloorDiv": "floordiv", "CleanDiv": "floordiv", "PythonMod": "mod", "Mod": "mod"}


class Symbols:
    """For each symbolic size in a `form`, the value that holds it or computes it."""

    def __init__(self, form: Form) -> None:
        self._form = form
        self._found: dict[str, Any] = {}  # text of a size -> a reference, or the name and dimension of an input

    def note(self, known: Any, reference: Any) -> None:
        """Record a `reference` to a value; `known` is its symbolic size, or a tensor with such sizes."""
        text = symbol(known)
        if text is not None:
            self._found.setdefault(text, reference)

    def note_sizes(self, known: Any, name: str) -> None:
        """Record an input called `name`: `known` itself, and if it is a tensor, its sizes."""
        self.note(known, {"$ref": name})
        if isinstance(known, torch.Tensor) and is_plain(known):
            for dim, size in enumerate(known.shape):
                self.note(size, (name, dim))

    def express(self, expr: Any, number: Any) -> Any:
        """For the sympy expression `expr`: the input that holds it, or nodes that compute it, or, if it cannot be expressed, the `number`
        it had."""
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
        # Sympy puts constants first; people write them last.
        parts = sorted(expr.args, key=lambda a: bool(a.is_Integer)) if word in ("add", "mul") else list(expr.args)
        values = [self.express(part, None) for part in parts]
        if any(value is None for value in values):
            return None
        made = values[0]
        for value in values[1:]:
            made = self._form.add_node("function", f"operator.{word}", [made, value], {}, {"kind": "int"}, word)
        return made


class Arguments:
    """Encodes arguments and adds inputs for a `form`; `body` adds a graph under a name and returns a reference to it."""

    def __init__(self, form: Form, body: Callable[[torch.fx.GraphModule, str], Any]) -> None:
        self._form = form
        self._body = body
        self.symbols = Symbols(form)

    def encode(self, value: Any, env: Mapping[torch.fx.Node, Any] | None = None) -> Any:
        """The argument `value` in JSON form; `env` maps nodes to their encoded values. Raises `Unreadable`."""
        if isinstance(value, torch.fx.Node):
            return (env or {})[value]
        if value is None or isinstance(value, (bool, str)):
            return value
        if isinstance(value, (torch.SymInt, torch.SymFloat, torch.SymBool)):
            return self.symbols.express(value.node.expr, hint(value))
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

    def unknown(self, node: torch.fx.Node) -> Any:
        """A reference to an input for the placeholder `node` of a body, where any value will do."""
        known = known_value(node)
        self.symbols.note_sizes(known, node.name)
        return self._form.add_input(node.name, {"meta": meta_of(known), "value": {"kind": "randn"}})

    def placeholder(self, node: torch.fx.Node, example: Any, *, keyword_name: str | None = None, plain: bool = False) -> Any:
        """The encoded value for the placeholder `node` with the value `example` (None: as the graph knows it): an input, a constant, or a
        number.

        `keyword_name` is the keyword that passes it; a `plain` one is an input even if a module owns it. Raises `Unreadable`.
        """
        known = known_value(node)
        known = example if known is None else known
        data = known if example is None else example
        self.symbols.note_sizes(known, node.name)
        if _is_wrapped_number(node, known):
            return self._number_in_a_tensor(node, data)
        if isinstance(known, torch.Tensor):
            if not is_plain(known):
                raise Unreadable(f"input {node.name} is a {type(known).__name__} of layout {known.layout}")
            if not plain and not self._form.below_autograd and _held_by_module(node, data):
                parameter = isinstance(data, torch.nn.Parameter)
                return self._form.add_constant(short_name(_source(node) or node.name), data, parameter=parameter, known=known)
            return self._form.add_input(node.name, self._tensor_input(node.name, known, data, keyword_name))
        if isinstance(known, (int, float, bool, torch.SymInt, torch.SymFloat, torch.SymBool)):
            number = hint(data)
            entry: dict[str, Any] = {"meta": meta_of(known), "value": {"kind": "literal", "args": [self.text(number)]}}
            if keyword_name:
                entry["keyword"] = keyword_name
            return self._form.add_input(node.name, entry)
        if not node.users:
            return self._form.add_input(node.name, {"meta": {"kind": "other"}, "value": {"kind": "literal", "args": ["None"]}})
        raise Unreadable(f"input {node.name} is a {type(known).__name__}")

    def _tensor_input(self, name: str, known: torch.Tensor, data: Any, keyword_name: str | None) -> dict[str, Any]:
        source = data if isinstance(data, torch.Tensor) and _fits(data, known) else known
        meta = meta_of(known)
        if source.shape:  # a later call of the graph may have had different sizes than the first
            meta["shape"] = [hint(size) for size in source.shape]
        if source is not known and not is_fake(source):
            meta["stride"] = [int(s) for s in source.stride()] or meta.get("stride", [])
            meta = {k: v for k, v in meta.items() if v != []}
        entry: dict[str, Any] = {"meta": meta, "value": value_of(self._form.prefix + name, source, self._form.blob_dir)}
        if source.requires_grad and not self._form.below_autograd:
            entry["requires_grad"] = True
            if not source.is_leaf:
                entry["leaf"] = False
        if keyword_name:
            entry["keyword"] = keyword_name
        return entry

    def _number_in_a_tensor(self, node: torch.fx.Node, data: Any) -> Any:
        # Dynamo passes a Python float as a tensor and reads it back with `.item()`; the script passes the float.
        if not isinstance(data, torch.Tensor) or is_fake(data):
            raise Unreadable(f"input {node.name} is a Python number of unknown value")
        number = data.item()
        if (_source(node) or "").startswith("L["):
            entry = {"meta": meta_of(number), "value": {"kind": "literal", "args": [self.text(number)]}}
            return self._form.add_input(node.name, entry)
        return self.encode(number)


def _fits(data: torch.Tensor, known: torch.Tensor) -> bool:
    """Whether the graph accepts `data` for the input that it knows as `known`: sizes that are not symbolic must be equal."""
    # Hints are compared: comparing a symbolic size itself would make the compiler specialize on it.
    pairs = zip(data.shape, known.shape, strict=False)
    return data.dim() == known.dim() and all(hint(one) == hint(two) or isinstance(two, torch.SymInt) for one, two in pairs)


def known_value(node: torch.fx.Node) -> Any:
    """What the graph knows about the value of a `node`; None if nothing."""
    for key in ("val", "example_value"):
        if key in node.meta:
            return node.meta[key]
    return None


def _source(node: torch.fx.Node) -> str | None:
    """How Dynamo reached an input (`L['self']._modules['fc']._parameters['weight']`), if that is still recorded."""
    source = getattr(node.meta.get("grapharg"), "source", None) or getattr(node, "_dynamo_source", None)
    name = getattr(source, "name", None)  # a property now, a method before 2.10
    found = name() if callable(name) else name
    return found if isinstance(found, str) else None


def _held_by_module(node: torch.fx.Node, data: Any) -> bool:
    if isinstance(data, torch.nn.Parameter):
        return True
    return bool(re.search(r"\._(parameters|buffers)\[[^\]]*\]$", _source(node) or ""))


def _is_wrapped_number(node: torch.fx.Node, known: Any) -> bool:
    wrapped = getattr(node.meta.get("grapharg"), "pass_arg_as_tensor", False)
    return (
        bool(wrapped)
        and isinstance(known, torch.Tensor)
        and known.dim() == 0
        and all(user.op == "call_method" and user.target == "item" for user in node.users)
    )


def short_name(source: str) -> str:
    """A name for a `source`: `fc_weight` for `L['self']._modules['fc']._parameters['weight']` or for `fc.weight`."""
    if "[" not in source:
        return source.replace(".", "_")
    parts = re.findall(r"\['([^']*)'\]|\.([A-Za-z]\w*)", source)
    words = [a or b for a, b in parts]
    named = [w for w in words[1:] if w and not w.isdigit()]
    return "_".join(named[-2:]) or "constant"
