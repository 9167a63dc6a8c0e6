"""The graph reducer: drives the passes to a fixed point.

Order: guesses, a few bodies alone, outputs, operations, bodies (alone, then smaller); then everything simplified at once (one query
where nothing of it matters), sizes, inputs, values, arguments, simpler operations, the compiler's settings; back to operations if
anything changed; marks instead of dynamic sizes, and the readable form last. `docs/reduction.md` says why, and what it costs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from bot.models.failure import Verdict
from bot.reduce.candidate import BudgetSpent, Candidate
from bot.reduce.distance import distance
from bot.reduce.graph.edits import Edit, applied, apply
from bot.reduce.graph.form import Program
from bot.reduce.graph.incumbent import Incumbent, Neighbor
from bot.reduce.graph.oracle import GraphOracle
from bot.reduce.graph.passes import (
    arguments,
    bodies,
    contiguous,
    dtypes,
    dynamic,
    guesses,
    inputs,
    lift,
    memory,
    ops,
    outputs,
    promote,
    recipe,
    simplify_ops,
    sizes,
    values,
)
from bot.reduce.graph.passes.resize import sizes_of

_MOST_NEIGHBORS = 40


@dataclass(frozen=True)
class Reduced:
    """What a search ended with.

    `nearest_passing`: a candidate that passes and is one edit away from the final program (its `origin` is the pass that made the
    edit), in the same form: as readable operations it was not asked. `fixed_point` is False when the budget ended the search.
    """

    program: Program
    candidate: Candidate
    nearest_passing: Candidate | None
    fixed_point: bool


@dataclass(frozen=True)
class Numerics:
    """What a search has to respect where numbers decide the failure; by default they do not.

    `exposable`: the only names that may become outputs besides the original ones; None: any. `chain`: the operations whose values are
    wrong: each program that is asked has one of them; None: they are not known. `keep_seed`: the failure depends on the numbers, so the
    script has to go on seeding. `seed_last`: it may depend on them, so a script that does not seed is run several times: this is asked
    once, at the end.
    """

    exposable: frozenset[str] | None = None
    chain: frozenset[str] | None = None
    keep_seed: bool = False
    seed_last: bool = False


def reduce_program(
    program: Program,
    oracle: GraphOracle,
    render: Callable[[Program], str],
    *,
    guesses: Sequence[frozenset[str]] = (),
    numerics: Numerics = Numerics(),
    allowed: int | None = None,
    on_accept: Callable[[Program, Candidate], None] = lambda _program, _candidate: None,
    settle: Callable[[str], Callable[[], bool]] = lambda _text: lambda: True,
    ends_well: Callable[[str], bool] = lambda _text: True,
) -> Reduced:
    """The smallest program found that is SAME for `oracle`, starting from one that the caller has verified to be.

    Args:
        program: where the search begins.
        oracle: whom the search asks.
        render: prints a program as the script that is asked.
        guesses: sets of node names that the failure names, asked before any search.
        numerics: what numbers have to do with the failure.
        allowed: bytes of a GPU that the failing run might take, where it ran out of them; None: it fails by something else.
        on_accept: called at each accepted step.
        settle: told the smallest program once the guesses were asked; what it returns is called when the passes came to their end,
            and says whether the answers count: a failure that shows now and then may have hidden. By default it always shows.
        ends_well: whether a script that passes does so all the way: what the script says of its static form has to hold for whoever
            runs that.

    Never raises `BudgetSpent`: what was found until then is the result.
    """
    incumbent = Incumbent(program, oracle, render, numerics.exposable, on_accept, numerics.chain)
    search = _Search(incumbent, numerics, memory.Memory(allowed) if allowed else None, settle, ends_well)
    try:
        search.run(guesses)
        fixed_point = True
    except BudgetSpent:
        fixed_point = False
    nearest = None
    try:
        nearest = search.nearest_passing()
    except BudgetSpent:
        fixed_point = False
    return Reduced(incumbent.shown, incumbent.candidate, nearest, fixed_point)


class _Search:
    def __init__(
        self,
        incumbent: Incumbent,
        numerics: Numerics,
        room: memory.Memory | None,
        settle: Callable[[str], Callable[[], bool]],
        ends_well: Callable[[str], bool],
    ) -> None:
        self.incumbent = incumbent
        self.settle = settle
        self.ends_well = ends_well
        self.numerics = numerics
        self.room = room
        self.around: list[Neighbor] | None = None  # of the smallest program, before it was made readable
        self.plain: Candidate = incumbent.candidate
        self.readable = False

    def run(self, guessed: Sequence[frozenset[str]]) -> None:
        incumbent = self.incumbent
        if self.room is not None:
            self.room.run(incumbent)
        # where the numbers matter, simple ones mostly hide the failure
        guesses.run(incumbent, guessed, self._finer if self.numerics.keep_seed else self._smaller)
        steady = self.settle(incumbent.candidate.text)
        self._whole()
        if not steady():
            incumbent.forget()
            guesses.run(incumbent, guessed)
            self._whole()
        if self.room is not None:
            self.room.loosen(incumbent)
        dynamic.run(incumbent)
        self.plain = incumbent.candidate
        self.around = list(incumbent.neighbors)
        self.readable = lift.run(incumbent)
        if self.numerics.seed_last and not self.numerics.keep_seed:
            apply(incumbent, recipe.seed(incumbent.program), "seed")
        dynamic.explain(incumbent, self.ends_well)

    def _whole(self) -> None:
        """Everything but the guesses, to a fixed point."""
        incumbent = self.incumbent
        promote.few(incumbent)
        outputs.sinks(incumbent)
        ops.run(incumbent)
        if promote.run(incumbent):
            ops.run(incumbent)
        bodies.run(incumbent)
        incumbent.offer(self._smallest(incumbent.program), "batch")
        while True:
            before = incumbent.key
            apply(incumbent, self._batch(incumbent.program), "batch")
            values.special(incumbent)
            if self.room is not None:
                self.room.run(incumbent)
            if not memory.is_capped(incumbent.program):  # with a cap, a smaller size alone makes room
                sizes.run(incumbent)
            for one in (inputs, outputs, values, arguments, simplify_ops):
                one.run(incumbent)
            apply(incumbent, recipe.settings(incumbent.program), "settings")
            if incumbent.key == before and not ops.neighbors(incumbent):
                break
            ops.run(incumbent)
            bodies.run(incumbent)

    def _finer(self, program: Program) -> Iterator[Program | None]:
        """The program in float32 where it is in half precision, as which a small error of one operation mostly passes."""
        finer = dtypes.in_float32(program)
        yield finer and self.incumbent.legal(finer)

    def _smaller(self, program: Program) -> Iterator[Program | None]:
        """The program as small as its operations allow, then as small as most failures allow: many need a size above 1."""
        yield self._smallest(program)
        yield self._simplified(program)

    def _simplified(self, program: Program) -> Program | None:
        """A program without all that most failures do not need, where that is legal."""
        return self.incumbent.legal(applied(program, self._batch(program)))

    def _smallest(self, program: Program) -> Program:
        """What is left where operations alone matter: simplified, each size 1, equal inputs merged, as far as that is legal."""
        ones = sizes.everything_one(self.incumbent, applied(program, self._batch(program, sized=False)))
        if ones is None:
            small = self._simplified(program) or program
            ones = sizes.everything_one(self.incumbent, small) or small
        return applied(ones, inputs.edits(ones))

    def _batch(self, program: Program, *, sized: bool = True) -> list[Edit]:
        """Everything that most failures do not need, sizes only where `sized`; what is most often needed stands last, so that one half is
        right."""
        found: list[Edit] = [*values.edits(program), *contiguous.edits(program)]
        if sized and any(size > 2 for size in sizes_of(program)):
            found.append(lambda changed: sizes.everything_small(self.incumbent, changed))
        return [
            *found,
            *arguments.edits(program),
            *dtypes.edits(program),
            *recipe.edits(program, keep_seed=self.numerics.keep_seed or self.numerics.seed_last),
        ]

    def nearest_passing(self) -> Candidate | None:
        """Of the rejected programs one edit away, the one most like the final program among those that pass."""
        around = self.incumbent.neighbors if self.around is None else self.around
        lines = self.plain.text.splitlines()
        for neighbor in sorted(around, key=lambda n: (distance(lines, n.candidate.text), n.candidate.text))[:_MOST_NEIGHBORS]:
            # asked before, so this is no query
            if self.incumbent.oracle.ask(neighbor.candidate) is Verdict.PASSES:
                shown = lift.lift(neighbor.program) if self.readable else neighbor.program
                return self.incumbent.candidate_of(shown, neighbor.candidate.origin)
        return None
