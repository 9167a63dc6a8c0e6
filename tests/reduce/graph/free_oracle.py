"""Graphs of any size with an oracle that costs nothing: a predicate on the program that a text was printed from."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import NamedTuple

from bot.models.failure import Verdict
from bot.reduce.candidate import Candidate
from bot.reduce.graph.form import Graph, Input, Meta, Node, Program, Ref, contiguous_stride
from bot.reduce.graph.printer.script import render
from bot.reduce.graph.reducer import reduce_program

META = Meta("tensor", (4, 4), (4, 1), "float32")
NEAR = 8  # operands come from this many values before
APART = 31


def target(i: int) -> str:
    """The i-th operation's own target, so that it is known again under any name."""
    return f"torch.ops.aten.op{i}.default"


def chain(n: int) -> Program:
    """Each operation takes the one before."""
    names = ["x", *(f"n{i}" for i in range(n))]
    nodes = tuple(Node(names[i + 1], "function", target(i), (Ref(names[i]),), (), META) for i in range(n))
    return Program(Graph((Input("x", META),), nodes, Ref(names[-1])))


def mixed(n: int, rng: random.Random) -> Program:
    """Each operation takes one or two of the values just before it."""
    names = ["x", "y"]
    nodes = []
    for i in range(n):
        operands = tuple(Ref(rng.choice(names[-NEAR:])) for _ in range(rng.choice((1, 2))))
        nodes.append(Node(f"n{i}", "function", target(i), operands, (), META))
        names.append(f"n{i}")
    used = {name for node in nodes for name in node.uses()}
    ends = tuple(Ref(node.name) for node in nodes if node.name not in used)
    return Program(Graph((Input("x", META), Input("y", META)), tuple(nodes), ends if len(ends) > 1 else ends[0]))


Predicate = Callable[[Program], bool]


def present(numbers: Sequence[int]) -> Predicate:
    """Fails where all these operations are there."""
    wanted = {target(i) for i in numbers}
    return lambda program: wanted <= {node.target for node in program.graph.nodes}


def fed(first: int, second: int) -> Predicate:
    """Fails where the second operation depends on the first."""

    def holds(program: Program) -> bool:
        tainted: set[str] = set()
        for node in program.graph.nodes:
            if node.target == target(first) or tainted & set(node.uses()):
                tainted.add(node.name)
                if node.target == target(second):
                    return True
        return False

    return holds


class FreeOracle:
    """Judges by a predicate on the program that a text was printed from."""

    def __init__(self, predicate: Predicate) -> None:
        self.predicate = predicate
        self.programs: dict[str, Program] = {}
        self.memo: dict[str, Verdict] = {}
        self.operations: int | None = None  # queries before everything else is simplified at once

    @property
    def queries(self) -> int:
        """Texts that were judged, each once."""
        return len(self.memo)

    def render(self, program: Program) -> str:
        """The script; the program is remembered by it."""
        text = render(program)
        self.programs[text] = program
        return text

    def ask(self, candidate: Candidate) -> Verdict:
        """SAME where the predicate holds, else PASSES."""
        if candidate.origin == "batch" and self.operations is None:
            self.operations = self.queries
        if candidate.text not in self.memo:
            self.memo[candidate.text] = Verdict.SAME if self.predicate(self.programs[candidate.text]) else Verdict.PASSES
        return self.memo[candidate.text]

    def first(self, candidates: Sequence[Candidate]) -> int | None:
        """One after the other, as with a single worker."""
        return next((i for i, candidate in enumerate(candidates) if self.ask(candidate) is Verdict.SAME), None)

    def shapes(self, text: str) -> dict[str, Meta] | None:
        """Everything is legal; each operation gives what the inputs are, if these are equal, else what it gave before."""
        graph = self.programs[text].graph
        shapes = {item.meta.shape for item in graph.inputs}
        if len(shapes) != 1:
            return {}
        (shape,) = shapes
        return {node.name: replace(node.meta, shape=shape, stride=contiguous_stride(shape)) for node in graph.nodes}


class Measured(NamedTuple):
    """What a search took."""

    operations: int  # queries, until these are found
    whole: int  # queries, to the end
    left: int  # operations
    seconds: float  # our own


def measure(program: Program, predicate: Predicate) -> Measured:
    """One search, from the first to the last step."""
    oracle = FreeOracle(predicate)
    started = time.perf_counter()
    found = reduce_program(program, oracle, oracle.render)
    seconds = time.perf_counter() - started
    return Measured(oracle.operations or oracle.queries, oracle.queries + 1, found.program.graph.ops, seconds)


def case(shape: str, n: int, wanted: str, seed: int) -> tuple[Program, Predicate] | None:
    """A graph and what must stay, reproducible; None where this graph has no such operations."""
    rng = random.Random(f"{shape} {n} {wanted} {seed}")
    program = chain(n) if shape == "chain" else mixed(n, rng)
    if wanted != "fed":
        return program, present(rng.sample(range(n), int(wanted)))
    second = rng.randrange(APART, n)
    predicate = fed(second - APART, second)
    return (program, predicate) if predicate(program) else None
