"""Inputs of a graph: what a placeholder stood for in the failing run."""

from __future__ import annotations

import re
from typing import Any

import torch
import torch.fx

from .fx_arguments import Arguments
from .fx_form import Form
from .fx_symbols import Symbols
from .fx_targets import Unreadable
from .fx_values import hint, is_fake, is_plain, meta_of, value_of


class Inputs:
    """Adds the inputs to a `form`, and notes the `symbols` that they hold; `arguments` encodes those that are plain values."""

    def __init__(self, form: Form, symbols: Symbols, arguments: Arguments) -> None:
        self._form = form
        self._symbols = symbols
        self._arguments = arguments

    def unknown(self, node: torch.fx.Node) -> Any:
        """A reference to an input for the placeholder `node` of a body: any value will do."""
        known = known_value(node)
        self._symbols.note_sizes(known, node.name)
        return self._form.add_input(node.name, {"meta": meta_of(known), "value": {"kind": "randn"}})

    def placeholder(self, node: torch.fx.Node, example: Any, *, keyword_name: str | None = None, plain: bool = False) -> Any:
        """What stands for the placeholder `node`, whose value was `example` (None: as the graph knows it): an input, a constant, a number.

        `keyword_name` is the keyword that passes it; a `plain` one is an input even where a module holds it. Raises `Unreadable`.
        """
        known = known_value(node)
        known = example if known is None else known
        data = known if example is None else example
        self._symbols.note_sizes(known, node.name)
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
            entry: dict[str, Any] = {"meta": meta_of(known), "value": {"kind": "literal", "args": [self._arguments.text(number)]}}
            if keyword_name:
                entry["keyword"] = keyword_name
            return self._form.add_input(node.name, entry)
        if not node.users:
            return self._form.add_input(node.name, {"meta": {"kind": "other"}, "value": {"kind": "literal", "args": ["None"]}})
        raise Unreadable(f"input {node.name} is a {type(known).__name__}")

    def _tensor_input(self, name: str, known: torch.Tensor, data: Any, keyword_name: str | None) -> dict[str, Any]:
        # Hints are compared: comparing a symbolic size itself would make the compiler specialize on it.
        fits = isinstance(data, torch.Tensor) and [hint(d) for d in data.shape] == [hint(d) for d in known.shape]
        source = data if fits else known
        meta = meta_of(known)
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
            entry = {"meta": meta_of(number), "value": {"kind": "literal", "args": [self._arguments.text(number)]}}
            return self._form.add_input(node.name, entry)
        return self._arguments.encode(number)


def known_value(node: torch.fx.Node) -> Any:
    """What the graph says of the value of a `node`; None where it says nothing."""
    for key in ("val", "example_value"):
        if key in node.meta:
            return node.meta[key]
    return None


def _source(node: torch.fx.Node) -> str | None:
    """How Dynamo reached an input (`L['self']._modules['fc']._parameters['weight']`), where it still says so."""
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
    return bool(wrapped) and isinstance(known, torch.Tensor) and known.dim() == 0 and all(_reads_number(user) for user in node.users)


def _reads_number(user: torch.fx.Node) -> bool:
    return user.op == "call_method" and user.target == "item"


def short_name(source: str) -> str:
    """A name for a `source`: `weight` of `L['self']._modules['fc']._parameters['weight']` or of `fc.weight`; `fc_weight` in the latter."""
    if "[" not in source:
        return source.replace(".", "_")
    parts = re.findall(r"\['([^']*)'\]|\.([A-Za-z]\w*)", source)
    words = [a or b for a, b in parts]
    named = [w for w in words[1:] if w and not w.isdigit()]
    return "_".join(named[-2:]) or "constant"
