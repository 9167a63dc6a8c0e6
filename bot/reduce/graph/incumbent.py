"""The smallest program known so far, and the only way to replace it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from bot.models.failure import Verdict
from bot.reduce.candidate import Candidate
from bot.reduce.graph.form import Meta, Program, Ref, refs
from bot.reduce.graph.keep import Policy, keep_only
from bot.reduce.graph.naming import canonical
from bot.reduce.graph.oracle import GraphOracle
from bot.reduce.graph.size import size_key

Key = tuple[tuple[int, ...], str]
Structure = tuple[tuple[tuple[str, tuple[str, ...]], ...], tuple[str, ...]]

# The name under which `GraphOracle.shapes` describes the return value: the last operation may be inlined in the return statement.
_RETURNED = "return"


@dataclass(frozen=True)
class Neighbor:
    """A program one edit away from the smallest one, with the original graph's names."""

    program: Program
    candidate: Candidate


class Incumbent:
    """Holds the smallest program that is SAME; passes offer it smaller ones.

    An offer is asked only if it is strictly smaller and its text has not been asked before. The offers rejected since the last acceptance
    are the neighbors; one that passes is worth showing.
    Passes see the names of the original graph, since guesses and `exposable` refer to them. Scripts are printed with canonical names, so
    that programs which differ only in names are one candidate.

    `oracle` is asked about the text that `render` prints. `exposable` names the values that may become outputs (None: any). `on_accept`
    gets each accepted `program` as it is shown. A program without any operation of the `chain` is not asked (None: no such restriction; it
    is also ignored if operations are in bodies, whose names are separate).
    """

    def __init__(
        self,
        program: Program,
        oracle: GraphOracle,
        render: Callable[[Program], str],
        exposable: frozenset[str] | None = None,
        on_accept: Callable[[Program, Candidate], None] = lambda _program, _candidate: None,
        chain: frozenset[str] | None = None,
    ) -> None:
        self.oracle = oracle
        self.render = render
        self.exposable = exposable
        self._chain = chain if chain and not program.graph.bodies else None
        self._on_accept = on_accept
        self._rejected: set[str] = set()
        self._structures: set[Structure] = set()
        self._elements: int | None = None  # input elements at the first rejection since the last retry
        self._legal: dict[str, dict[str, Meta] | None] = {}
        self.neighbors: list[Neighbor] = []
        text = render(program)
        self.program = self.shown = program
        self.candidate = Candidate(text, "start", size_key(program, text)[0])

    def candidate_of(self, program: Program, origin: str) -> Candidate:
        """The `program` as a question to the oracle; `origin` is the pass that asks."""
        text = self.render(under_canonical_names(program))
        return Candidate(text, origin, size_key(program, text)[0])

    def forget(self) -> None:
        """Allows everything rejected so far to be asked again."""
        self._rejected.clear()
        self._structures.clear()
        self._elements = None
        self.neighbors = []

    @property
    def key(self) -> Key:
        """The size of the smallest program."""
        return self.candidate.size, self.candidate.text

    def offer(self, program: Program | None, origin: str, *, any_size: bool = False) -> bool:
        """Takes the `program` of the pass `origin` if it is smaller and SAME. With `any_size` it need not be smaller (only for the last
        steps)."""
        return self.offer_first([program], origin, any_size=any_size) is not None

    def offer_first(self, programs: Iterable[Program | None], origin: str, *, any_size: bool = False) -> int | None:
        """Takes the first of `programs` that is smaller and SAME, and returns its index; None stands for no program.

        `origin` and `any_size` are as in `offer`. The iterable is consumed lazily, as many programs at a time as are tried at once: with a
        single worker, programs after the first that is SAME cost nothing. So a pass may offer whatever it would offer next if everything
        were refused.
        """
        together: list[tuple[int, Neighbor]] = []
        for number, program in enumerate(programs):
            candidate = None if program is None else self._askable(program, origin, any_size)
            if program is None or candidate is None or any(candidate.text == other.candidate.text for _, other in together):
                continue
            together.append((number, Neighbor(program, candidate)))
            if len(together) == getattr(self.oracle, "jobs", 1):
                taken = self._asked(together)
                if taken is not None:
                    return taken
                together = []
        return self._asked(together)

    def _askable(self, program: Program, origin: str, any_size: bool) -> Candidate | None:
        """The question, unless its answer is known or does not matter."""
        if self._chain is not None and self._chain.isdisjoint(node.name for node in program.graph.nodes):
            return None
        candidate = self.candidate_of(program, origin)
        if candidate.text == self.candidate.text or (not any_size and (candidate.size, candidate.text) >= self.key):
            return None
        if candidate.text in self._rejected:
            self._add_neighbor(Neighbor(program, candidate))
            return None
        return candidate

    def _asked(self, offers: Sequence[tuple[int, Neighbor]]) -> int | None:
        """Asks all at once and takes the first that is SAME; returns its number."""
        if len(offers) == 1:
            index = 0 if self.oracle.ask(offers[0][1].candidate) is Verdict.SAME else None
        else:
            index = self.oracle.first([offer.candidate for _, offer in offers]) if offers else None
        for _, refused in offers[:index]:
            self._rejected.add(refused.candidate.text)
            self._add_neighbor(refused)
        if index is None:
            return None
        number, taken = offers[index]
        self.program, self.shown, self.candidate = taken.program, under_canonical_names(taken.program), taken.candidate
        self.neighbors = []
        self._on_accept(self.shown, self.candidate)
        return number

    def _add_neighbor(self, refused: Neighbor) -> None:
        # each text once, the latest at the end
        self.neighbors = [*(other for other in self.neighbors if other.candidate.text != refused.candidate.text), refused]

    @property
    def elements(self) -> int:
        """Number of elements in the inputs of the smallest program."""
        return self.candidate.size[1]

    @property
    def is_doubtful(self) -> bool:
        """Whether operations were rejected at other input sizes, for which a compiler may behave differently."""
        return self._elements not in (None, self.elements)

    def doubted(self) -> None:
        """Records that the operations were asked with the current sizes."""
        self._elements = self.elements

    def offer_structures(self, programs: Iterable[Program | None], origin: str, *, sharing: bool = False) -> int | None:
        """Like `offer_first` with `programs` and `origin`, for programs that differ from the smallest one in their operations.

        A rejected combination of operations is not asked again if only sizes, values or arguments have changed since: that would cost a
        query for each operation in each round, and would almost never succeed. With `sharing`, which operations share an input counts as a
        difference.
        """
        keys: list[Structure | None] = []

        def new() -> Iterator[Program | None]:
            known: set[Structure | None] = set(self._structures)
            for program in programs:
                key = None if program is None else structure(program, sharing)
                keys.append(key)
                yield None if key in known else program
                known.add(key)

        taken = self.offer_first(new(), origin)
        refused = {key for key in keys[:taken] if key is not None}
        self._structures |= refused
        if refused and self._elements is None:
            self._elements = self.elements
        return taken

    def keep(self, names: Sequence[str] | set[str], policy: Policy = Policy.CONNECT) -> Program | None:
        """The smallest program reduced to the operations called `names`, by `policy`."""
        return keep_only(self.program, names, policy, self.exposable)

    def legal(self, program: Program) -> Program | None:
        """The `program` with its actual metadata, or None if it does not run in eager."""
        shown = under_canonical_names(program)
        text = self.render(shown)
        if text in self._rejected:
            return program
        if text not in self._legal:
            self._legal[text] = self.oracle.shapes(text)
        metas = self._legal[text]
        return None if metas is None else refreshed(program, shown, metas)


def structure(program: Program, sharing: bool = False) -> Structure:
    """The operations of `program` and their data flow. Inputs count as equal (they are merged later) unless `sharing` tells them apart."""
    inputs = {i.name: f"/{n}" if sharing else "/" for n, i in enumerate(program.graph.sources)}

    def told_apart(names: Iterable[str]) -> tuple[str, ...]:
        return tuple(inputs.get(name, name) for name in names)

    return tuple((n.target, told_apart(n.uses())) for n in program.graph.nodes), told_apart(refs(program.graph.output))


def under_canonical_names(program: Program) -> Program:
    """The `program` with names that depend only on its operations."""
    return program.with_graph(canonical(program.graph))


def refreshed(program: Program, shown: Program, metas: dict[str, Meta]) -> Program:
    """The `program` with updated metadata where it is known; the keys of `metas` are the names in `shown`."""
    graph, output = program.graph, shown.graph.output
    nodes = []
    for node, same in zip(graph.nodes, shown.graph.nodes, strict=True):
        name = _RETURNED if same.name not in metas and output == Ref(same.name) else same.name
        found = metas.get(name)
        # what the run cannot show (symbolic dimensions) stays as recorded
        nodes.append(node if found is None else replace(node, meta=replace(found, dynamic=node.meta.dynamic, symbols=node.meta.symbols)))
    return program.with_graph(replace(graph, nodes=tuple(nodes)))
