"""The JSON form of a graph under construction: `bot.reduce.graph.form.Graph` as `bot.reduce.graph.codec` reads it.

Values that JSON cannot express are one-key objects: `{"$ref": name}`, `{"$code": text}`, `{"$slice": [a, b, c]}`, `{"$tuple": [...]}`,
`{"$map": [[key, value], ...]}`. A plain list is a list.
"""

from __future__ import annotations

import keyword
import re
from collections.abc import Sequence
from typing import Any

import torch

from .fx_targets import Unreadable
from .fx_values import is_plain, meta_of, value_of


class Form:
    """One graph under construction; each body of a higher-order operation has its own.

    `blob_dir` is where inputs are dumped, or None; for `below_autograd` see `fx_reader.read_graph`; `prefix` keeps the blob names of
    different bodies apart.
    """

    def __init__(self, blob_dir: str | None, below_autograd: bool, prefix: str = "") -> None:
        self.blob_dir = blob_dir
        self.below_autograd = below_autograd
        self.prefix = prefix
        self.inputs: list[dict[str, Any]] = []
        self.nodes: list[dict[str, Any]] = []
        self.constants: list[dict[str, Any]] = []
        self.bodies: list[list[Any]] = []
        self.held: dict[int, Any] = {}  # id of a module's tensor or body -> its reference
        self._taken: set[str] = set()

    def result(self, output: Any) -> dict[str, Any]:
        """The whole graph with this `output`."""
        parts = {"inputs": self.inputs, "nodes": self.nodes, "output": output, "constants": self.constants, "bodies": self.bodies}
        return {key: value for key, value in parts.items() if value or key in ("inputs", "nodes", "output")}

    def add_input(self, name: str, entry: dict[str, Any]) -> Any:
        """Add the input `entry` under this `name`, or a similar one; returns a reference to it."""
        name = self.fresh(name)
        self.inputs.append({"name": name, **entry})
        return {"$ref": name}

    def add_node(
        self, op: str, target: str, args: list[Any], kwargs: dict[str, Any], meta: Any, name: str, writes: Sequence[int | str] = ()
    ) -> Any:
        """Add a node; returns a reference to it. `op`, `target`, `args`, `kwargs`, `meta`, `name` and `writes` are the fields of
        `bot.reduce.graph.form.Node`; the name may change."""
        name = self.fresh(name)
        entry: dict[str, Any] = {"name": name, "op": op, "target": target, "args": args, "meta": meta}
        if kwargs:
            entry["kwargs"] = [[key, value] for key, value in kwargs.items()]
        if writes:
            entry["writes"] = list(writes)
        self.nodes.append(entry)
        return {"$ref": name}

    def add_constant(self, name: str, tensor: Any, *, parameter: bool, known: torch.Tensor | None = None) -> Any:
        """Add a `tensor` that the module owns, only once, under this `name` or a similar one; returns a reference to it.

        `known` is its value in the graph, `parameter` whether it is a parameter. Raises `Unreadable`.
        """
        known = tensor if known is None else known
        if not isinstance(tensor, torch.Tensor) or not is_plain(tensor):
            raise Unreadable(f"the module holds {name}, a {type(tensor).__name__}")
        if id(tensor) in self.held:
            return self.held[id(tensor)]
        name = self.fresh(name)
        entry: dict[str, Any] = {"name": name, "meta": meta_of(known), "value": value_of(self.prefix + name, tensor, self.blob_dir)}
        if tensor.requires_grad and not self.below_autograd:
            entry["requires_grad"] = True
        if parameter:
            entry["parameter"] = True
        self.constants.append(entry)
        self.held[id(tensor)] = {"$ref": name}
        return self.held[id(tensor)]

    def fresh(self, name: str) -> str:
        """A Python name similar to `name` that is unused in the graph."""
        base = re.sub(r"\W", "_", name)
        base = f"_{base}" if base[:1].isdigit() or not base or keyword.iskeyword(base) else base
        found, i = base, 0
        while found in self._taken:
            i += 1
            found = f"{base}_{i}"
        self._taken.add(found)
        return found


def is_ref(value: Any) -> bool:
    """Whether `value` is a reference."""
    return isinstance(value, dict) and "$ref" in value
