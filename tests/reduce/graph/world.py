"""A small world of operators with known shapes, and an oracle over it that costs nothing and checks what it is asked."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

from hypothesis import strategies as st

from bot.models.failure import Verdict
from bot.reduce.candidate import BudgetSpent, Candidate
from bot.reduce.graph.form import Graph, Input, Meta, Node, Program, Ref, contiguous_stride, refs
from tests.reduce.graph.free_oracle import FreeOracle, Predicate

ATEN = "torch.ops.aten."
UNARY = ("relu", "sin", "cos", "exp", "tanh", "sigmoid")


def tensor(*shape: int, dtype: str = "float32") -> Meta:
    return Meta("tensor", shape, contiguous_stride(shape), dtype)


def op(name: str, target: str, *args: object, meta: Meta, **kwargs: object) -> Node:
    full = target if target.startswith(("torch.", "operator.")) else f"{ATEN}{target}"
    return Node(name, "function", full, tuple(args), tuple(kwargs.items()), meta)  # type: ignore[arg-type]


def word(node: Node) -> str:
    parts = node.target.split(".")
    return parts[3] if node.target.startswith(ATEN) else parts[-1]


def words(program: Program) -> list[str]:
    return [word(n) for n in program.graph.nodes]


def result(node: Node, metas: dict[str, Meta]) -> Meta | None:
    """What the operator gives, or None where the call is illegal."""
    name = word(node)
    operands = [metas[arg.name] for arg in node.args if isinstance(arg, Ref)]
    rest = [arg for arg in node.args if not isinstance(arg, Ref)]
    shapes = [m.shape for m in operands]
    dtype = operands[0].dtype if operands else "float32"
    if name in UNARY or name.startswith("op"):
        return tensor(*shapes[0], dtype=dtype) if all(s == shapes[0] for s in shapes) else None
    if name in ("add", "mul"):
        if len(shapes) == 1:
            return tensor(*shapes[0], dtype=dtype)
        return tensor(*shapes[0], dtype=dtype) if shapes[0] == shapes[1] and operands[0].dtype == operands[1].dtype else None
    if name in ("mm", "matmul"):
        (a, b) = shapes
        return tensor(a[0], b[1], dtype=dtype) if len(a) == len(b) == 2 and a[1] == b[0] else None
    if name == "t":
        return tensor(*shapes[0][::-1], dtype=dtype) if len(shapes[0]) == 2 else None
    if name in ("view", "reshape"):
        size = list(rest[0]) if rest and isinstance(rest[0], (list, tuple)) else list(rest)
        if -1 in size:
            others = -math.prod(size)
            if size.count(-1) > 1 or others == 0 or math.prod(shapes[0]) % others:
                return None
            size[size.index(-1)] = math.prod(shapes[0]) // others
        return tensor(*size, dtype=dtype) if math.prod(size) == math.prod(shapes[0]) else None
    if name == "halves":
        if shapes[0][0] % 2:
            return None
        half = tensor(shapes[0][0] // 2, *shapes[0][1:], dtype=dtype)
        return Meta("other", items=(half, half))
    if name == "getitem":
        items = operands[0].items
        return items[rest[0]] if items and rest and isinstance(rest[0], int) and rest[0] < len(items) else None
    raise AssertionError(f"no such operator in this world: {node.target}")


def infer(graph: Graph) -> dict[str, Meta] | None:
    """What every value is, or None for a program that does not run."""
    metas = {i.name: i.meta for i in (*graph.inputs, *graph.constants)}
    for node in graph.nodes:
        if any(name not in metas for name in node.uses()):
            return None
        found = result(node, metas)
        if found is None:
            return None
        metas[node.name] = found
    return metas


def ill_formed(program: Program) -> str | None:
    """What is wrong with a candidate's form."""
    graph = program.graph
    known = [i.name for i in (*graph.inputs, *graph.constants)] + [name for name, _ in graph.bodies]
    for node in graph.nodes:
        missing = set(node.uses()) - set(known)
        if missing:
            return f"{node.name} uses {missing} before it is defined"
        known.append(node.name)
    if len(known) != len(set(known)):
        return "a name is defined twice"
    outputs = list(refs(graph.output))
    if not outputs or not set(outputs) <= set(known):
        return f"outputs {outputs} do not exist"
    unused = {i.name for i in (*graph.inputs, *graph.constants)} - {u for n in graph.nodes for u in n.uses()} - set(outputs)
    return f"unused inputs {unused}" if unused else None


class World(FreeOracle):
    """The free oracle, with shapes; refuses ill-formed questions, and spends its budget after `budget` queries."""

    def __init__(self, predicate: Predicate, budget: int | None = None) -> None:
        super().__init__(predicate)
        self.budget = budget
        self.origins: list[str] = []
        self.shown = 0

    def ask(self, candidate: Candidate) -> Verdict:
        if candidate.text not in self.memo:
            if self.budget is not None and self.queries >= self.budget:
                raise BudgetSpent
            program = self.programs[candidate.text]
            wrong = ill_formed(program)
            assert wrong is None, f"{candidate.origin}: {wrong}\n{candidate.text}"
            metas = infer(program.graph)
            if metas is None:
                self.memo[candidate.text] = Verdict.INVALID
                return Verdict.INVALID
            stale = {n.name for n in program.graph.nodes if plain(n.meta) != plain(metas[n.name])}
            assert not stale, f"{candidate.origin}: stale metadata of {stale}\n{candidate.text}"
            self.origins.append(candidate.origin)
        return super().ask(candidate)

    def shapes(self, text: str) -> dict[str, Meta] | None:
        self.shown += 1
        return infer(self.programs[text].graph)


def plain(meta: Meta) -> tuple[object, ...]:
    return (meta.kind, meta.shape, meta.dtype, tuple(plain(item) for item in meta.items))


def with_metas(program: Program) -> Program:
    """The program with its nodes' metadata filled in."""
    metas = infer(program.graph)
    assert metas is not None
    return program.with_graph(replace(program.graph, nodes=tuple(replace(n, meta=metas[n.name]) for n in program.graph.nodes)))


@st.composite
def programs(draw: Callable[..., int], most: int = 14) -> Program:
    """Random programs of this world: every operation is used or returned."""
    shapes = [(4, 6), (6, 4), (6, 6)]
    inputs = tuple(Input(f"p{i}", tensor(*shape)) for i, shape in enumerate(shapes))
    metas = {i.name: i.meta for i in inputs}
    nodes: list[Node] = []
    for i in range(draw(st.integers(2, most))):
        tensors = [name for name, meta in metas.items() if meta.kind == "tensor"]
        target = draw(st.sampled_from((*UNARY, "add", "mm", "t", "view", "halves")))
        first = draw(st.sampled_from(tensors))
        shape = metas[first].shape
        args: tuple[object, ...] = (Ref(first),)
        if target in ("add", "mm"):
            fits = [n for n in tensors if (metas[n].shape == shape if target == "add" else metas[n].shape[0] == shape[1])]
            if not fits:
                continue
            args = (Ref(first), Ref(draw(st.sampled_from(fits))))
        elif target == "view":
            args = (Ref(first), [shape[1], shape[0]])
        elif target == "halves" and shape[0] % 2:
            continue
        found = result(op(f"n{i}", target, *args, meta=Meta()), metas)
        assert found is not None
        node = op(f"n{i}", f"{target}.default", *args, meta=found)
        metas[node.name] = found
        nodes.append(node)
        for j, item in enumerate(found.items):
            piece = op(f"n{i}_{j}", "operator.getitem", Ref(node.name), j, meta=item)
            nodes.append(piece)
            metas[piece.name] = item
    if not nodes:
        nodes = [op("n0", "relu.default", Ref("p0"), meta=metas["p0"])]
    used = {name for n in nodes for name in n.uses()}
    ends = [n.name for n in nodes if n.name not in used]
    needed = tuple(i for i in inputs if i.name in used)
    return Program(Graph(needed, tuple(nodes), tuple(Ref(name) for name in ends)))
