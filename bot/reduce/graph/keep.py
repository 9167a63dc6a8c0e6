"""Builds the program that keeps some operations of a graph and drops the rest.

A use of a dropped value has to become something else. Four policies:

* CUT: a new input with the metadata recorded for that value;
* CONNECT: the latest kept ancestor of the same shape and dtype, else CUT. It keeps "a feeds b" when everything between a and b is dropped,
  which cutting alone cannot do (PyTorch's minifier gets stuck there);
* ANY: the latest kept ancestor of any shape, else CUT; the caller re-propagates shapes;
* GIVEN: CONNECT, but in place of a new input one of the program's own of that shape and dtype from which the value is computed: its
  numbers may be needed.

Values that cannot be inputs of a script are special: a known number becomes a literal, and an untyped object (such as the handle of a
context) keeps its producer.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import replace
from enum import Enum

from bot.reduce.graph.form import Arg, Graph, Input, Meta, Node, Program, Ref, Value, is_launch, is_op, refs
from bot.reduce.graph.numbers import known_numbers
from bot.reduce.graph.rewrite import drop_unused, rename_in

_NON_NEGATIVE_NAMES = (
    "abs exp exp2 relu relu6 sigmoid softmax _softmax softplus square sqrt rsqrt var var_mean norm linalg_vector_norm hardsigmoid rand"
)
_NON_NEGATIVE = frozenset(_NON_NEGATIVE_NAMES.split())
_INDEX_USERS = ("index", "gather", "scatter", "embedding", "take", "nll", "one_hot", "cross_entropy")
_OVERWRITES = ("index_put", "_unsafe_index_put", "index_copy", "setitem")


class Policy(Enum):
    """What a use of a dropped value becomes."""

    CUT = "cut"
    CONNECT = "connect"
    ANY = "any"
    GIVEN = "given"


def is_getitem(node: Node) -> bool:
    """Whether `node` takes an item of another value."""
    return node.op == "function" and node.target.rsplit(".", 1)[-1] == "getitem"


def units(graph: Graph) -> list[str]:
    """Names of the nodes of `graph` that can be kept or dropped, in order.

    Items of tuple results, and sizes, are kept or dropped with the value they belong to.
    """
    metas = graph.metas()
    return [n.name for n in graph.nodes if is_op(n) or (is_getitem(n) and _indexes_tensor(n, metas))]


def _indexes_tensor(node: Node, metas: dict[str, Meta]) -> bool:
    first = node.args[0] if node.args else None
    return isinstance(first, Ref) and first.name in metas and metas[first.name].is_tensor


def keep_only(
    program: Program,
    keep: Collection[str],
    policy: Policy = Policy.CONNECT,
    exposable: frozenset[str] | None = None,
    *,
    sinks_only: bool = False,
) -> Program | None:
    """The `program` reduced to the operations in `keep` (names from `units`), or None if that is not a valid program.

    `policy` decides what uses of the others become. Outputs are the kept ones among the original outputs (with `sinks_only`: those without
    users) and each kept value without a user. With `exposable`, only these and the original outputs may be outputs, and operations that
    then feed no output are dropped.
    """
    return _Builder(program, keep, policy, exposable, sinks_only).build()


class _Builder:
    def __init__(self, program: Program, keep: Collection[str], policy: Policy, exposable: frozenset[str] | None, sinks_only: bool) -> None:
        self.program = program
        self.graph = program.graph
        self.policy = policy
        self.exposable = exposable
        self.sinks_only = sinks_only
        self.index = {n.name: i for i, n in enumerate(self.graph.nodes)}
        self.metas = self.graph.metas()
        self.numbers = known_numbers(self.graph)
        self.droppable = set(units(self.graph))
        self.kept = self._close(set(keep) & self.droppable)

    def _close(self, keep: set[str]) -> set[str]:
        """The kept nodes, plus the items, sizes and objects that come along."""
        nodes = self.graph.nodes
        wanted = set(keep)
        for node in reversed(nodes):
            if node.name in wanted:
                wanted.update(u for u in node.uses() if u in self.index and self._comes_along(nodes[self.index[u]], keep))
        # The items of a tuple are kept if nothing else uses the result.
        shown = {used for name in wanted for used in nodes[self.index[name]].uses()}
        for node in nodes:
            source = node.args[0] if node.args else None
            item = is_getitem(node) and node.name not in self.droppable
            if item and isinstance(source, Ref) and source.name in wanted and source.name not in shown:
                wanted.add(node.name)
        # Without the operation that fills it, an empty tensor holds garbage.
        for node in nodes:
            filled = set(_maybe_written(node)) & wanted & self.index.keys()
            if any(_is_empty(nodes[self.index[name]]) for name in filled):
                wanted.add(node.name)
        return wanted

    def _comes_along(self, node: Node, keep: set[str]) -> bool:
        if node.name not in self.droppable and self._available(node, keep):
            return True
        if node.meta.is_number:
            return node.name not in self.numbers
        return node.meta.kind == "other" and not node.meta.items

    def _available(self, node: Node, keep: set[str]) -> bool:
        """Whether everything that an item or a size is taken from is there."""
        for used in node.uses():
            if used in self.index and used not in keep:
                source = self.graph.nodes[self.index[used]]
                if used in self.droppable or not self._available(source, keep):
                    return False
        return True

    def build(self) -> Program | None:
        nodes = self.graph.nodes
        order = [n for n in nodes if n.name in self.kept]
        if not order:
            return None
        stand_in = self._stand_ins(order)
        if stand_in is None:
            return None
        kept = [rename_in(n, stand_in) if not stand_in.keys().isdisjoint(n.uses()) else n for n in order]
        output, kept = self._output(kept)
        if output is None:
            return None
        return self.program.with_graph(self._finish(kept, output, stand_in))

    def _stand_ins(self, order: list[Node]) -> dict[str, Arg] | None:
        """What each dropped value that a kept node uses becomes."""
        boundary = [used for n in order for used in n.uses() if used in self.index and used not in self.kept]
        ancestors = self._kept_ancestors(boundary) if self.policy is not Policy.CUT else {}
        stand_in: dict[str, Arg] = {}
        for name in boundary:
            if name in stand_in:
                continue
            meta = self.metas[name]
            near = ancestors.get(name, {}).get(() if self.policy is Policy.ANY else _key(meta))
            own = self._given(name) if self.policy is Policy.GIVEN and near is None else None
            if near is not None and meta.is_tensor:
                stand_in[name] = Ref(self.graph.nodes[near].name)
            elif own is not None and meta.is_tensor:
                stand_in[name] = Ref(own)
            elif name in self.numbers:
                stand_in[name] = self.numbers[name]
            elif meta.is_tensor:
                stand_in[name] = Ref(name)
            elif meta.items and all(item.is_tensor for item in meta.items):
                stand_in[name] = tuple(Ref(f"{name}_{i}") for i in range(len(meta.items)))
            else:
                return None
        return stand_in

    def _kept_ancestors(self, boundary: Iterable[str]) -> dict[str, dict[tuple[object, ...], int]]:
        """For each dropped value: by shape and dtype, the latest kept ancestor reachable through dropped values only."""
        nodes = self.graph.nodes
        region: set[int] = set()
        stack = [self.index[name] for name in boundary]
        while stack:
            i = stack.pop()
            if i in region:
                continue
            region.add(i)
            stack.extend(self.index[u] for u in nodes[i].uses() if u in self.index and u not in self.kept)
        found: dict[str, dict[tuple[object, ...], int]] = {}
        for i in sorted(region):
            best: dict[tuple[object, ...], int] = {}
            for used in nodes[i].uses():
                if used in self.kept and self.metas[used].is_tensor:
                    for key in (_key(self.metas[used]), ()):
                        best[key] = max(best.get(key, -1), self.index[used])
                for key, at in found.get(used, {}).items():
                    best[key] = max(best.get(key, -1), at)
            found[nodes[i].name] = best
        return found

    def _given(self, name: str) -> str | None:
        """The first input like the dropped value `name` from which that is computed, through dropped values only."""
        stack, seen = [name], {name}
        reached: set[str] = set()
        while stack:
            for used in self.graph.nodes[self.index[stack.pop()]].uses():
                if used not in self.index:
                    reached.add(used)
                elif used not in self.kept and used not in seen:
                    seen.add(used)
                    stack.append(used)
        wanted = _key(self.metas[name])
        return next((one.name for one in self.graph.inputs if one.name in reached and _key(one.meta) == wanted), None)

    def _output(self, kept: list[Node]) -> tuple[Arg, list[Node]]:
        """The output (None if nothing can be returned), and the nodes it needs."""
        names = {n.name for n in kept}
        used = {name for n in kept for name in n.uses()}
        before = list(dict.fromkeys(refs(self.graph.output)))
        stay = [] if self.sinks_only else [name for name in before if name in names or (name not in self.index and name in used)]
        allowed = None if self.exposable is None else self.exposable | set(before)
        needed = set(stay)
        new: list[str] = []
        alive: list[Node] = []
        for n in reversed(kept):
            if n.name not in needed and not _acts(n):
                if not _shows(n) or (allowed is not None and n.name not in allowed):
                    continue
                new.append(n.name)
            alive.append(n)
            needed.update(n.uses())
        alive.reverse()
        if not new and len(stay) == len(before):
            return self.graph.output, alive
        if not stay and not new and allowed is None:  # what only writes returns nothing: return what it may have written
            given = [name for n in alive for name in _maybe_written(n)]
            new = [name for name in given if self.metas.get(name, Meta()).is_tensor][-1:]
        outputs = [Ref(name) for name in (*stay, *reversed(new))]
        if not outputs:
            return None, alive
        return outputs[0] if len(outputs) == 1 else tuple(outputs), alive

    def _finish(self, kept: list[Node], output: Arg, stand_in: dict[str, Arg]) -> Graph:
        users: dict[str, list[Node]] = {}
        for n in kept:
            for name in n.uses():
                users.setdefault(name, []).append(n)
        used = {*users, *refs(output)}
        new: list[Input] = []
        for name in stand_in:
            meta = self.metas[name]
            producer = self.graph.nodes[self.index[name]]
            if meta.is_tensor and name in used:
                new.append(self._cut_input(name, meta, producer, users.get(name, [])))
            for i, item in enumerate(meta.items):
                if f"{name}_{i}" in used:
                    new.append(self._cut_input(f"{name}_{i}", item, producer, users.get(f"{name}_{i}", [])))
        graph = self.graph
        return drop_unused(replace(graph, inputs=(*graph.inputs, *new), nodes=tuple(kept), output=output))

    def _cut_input(self, name: str, meta: Meta, producer: Node, users: list[Node]) -> Input:
        floating = is_floating(meta.dtype)
        value = fresh_value(meta, producer.target, users, varied=self.program.recipe.accuracy)
        return Input(name, meta, value, requires_grad=self.program.recipe.needs_gradients and floating)


def _maybe_written(node: Node) -> Iterator[str]:
    """Names of the values that `node` writes, as far as its schema tells; of a launch, whatever it uses."""
    return node.uses() if is_launch(node) else node.written()


def _is_empty(node: Node) -> bool:
    return any(word.startswith(("empty", "new_empty")) for word in node.target.split("."))


def is_floating(dtype: str) -> bool:
    """Whether values of `dtype` can have gradients."""
    return dtype.startswith(("float", "bfloat", "complex"))


def fresh_value(meta: Meta, producer: str, users: Iterable[Node] = (), *, varied: bool = False) -> Value:
    """How to make a value with this `meta` for the result of the dropped operation `producer`, legal for the nodes in `users` if possible.

    Results that are never negative stay so (a logarithm may follow); an index is 0, which is always in bounds. With `varied`, integers
    cover the range of a byte, since wrong numbers show at its ends; and an index to write at has no duplicates, since those would leave
    the result undefined.
    """
    users = list(users)
    if is_floating(meta.dtype):
        words = producer.split(".")
        return Value("rand") if any(word in _NON_NEGATIVE for word in words) else Value("randn")
    if varied and len(meta.shape) == 1 and any(map(_overwrites, users)):
        return Value("arange")
    if any(part in user.target for user in users for part in _INDEX_USERS):
        return Value("zeros")
    if not varied or meta.dtype == "bool":
        return Value("randint", (0, 2))
    return Value("randint", (-128, 128) if meta.dtype == "int8" else (0, 256))


def _overwrites(node: Node) -> bool:
    """Whether `node` writes to given indices without accumulating."""
    adds = True in node.args[3:] or dict(node.kwargs).get("accumulate") is True
    return not adds and any(word.removesuffix("_") in _OVERWRITES for word in node.target.split("."))


def _shows(node: Node) -> bool:
    """Whether the result of `node` can be returned."""
    return node.meta.is_tensor or bool(node.meta.items) or node.meta.is_number


def _acts(node: Node) -> bool:
    """Whether `node` is kept for its side effect: it returns nothing, or changes its operand."""
    if node.writes or (node.meta.kind == "other" and not node.meta.items):
        return True
    return any(word.endswith("_") and not word.startswith("_") for word in node.target.split("."))


def _key(meta: Meta) -> tuple[object, ...]:
    return (meta.shape, meta.dtype, meta.device)
