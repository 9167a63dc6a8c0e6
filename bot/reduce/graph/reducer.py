"""The graph reducer: runs the passes to a fixed point.

Order: guesses, a few bodies alone, outputs, operations, bodies (alone, then smaller); then everything simplified at once (one query if
none of it matters), sizes, inputs, values, arguments, simpler operations, the compiler's settings; back to operations if anything changed;
at the end, marks instead of dynamic sizes, and the readable form. `docs/reduction.md` says why, and what it costs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from bot.models.failure import Verdict
from bot.reduce.candidate import NO_CHECKS, BudgetSpent, Candidate, Checks
from bot.reduce.distance import distance
from bot.reduce.graph.edits import GraphEdit, applied, apply
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
    """The result of a search.

    `nearest_passing`: a candidate that passes and is one edit away from the final program (its `origin` is the pass that made the edit),
    in the same form as it; its readable form itself was not run. `fixed_point` is False if the budget ended the search.
    """

    program: Program
    candidate: Candidate
    nearest_passing: Candidate | None
    fixed_point: bool


@dataclass(frozen=True)
class Numerics:
    """What a search has to respect if the failure depends on numbers; by default it does not.

    `exposable`: the only names that may become outputs besides the original ones (None: any). `chain`: the operations whose values are
    wrong; each program that is asked contains one of them (None: not known). `keep_seed`: the failure depends on the numbers, so the
    script must keep seeding. `seed_last`: it may depend on them; dropping the seed is tried once, at the end, because a script that does
    not seed is run several times.
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
    checks: Checks = NO_CHECKS,
) -> Reduced:
    """The smallest program found that is SAME for `oracle`, starting from one that the caller has verified to be SAME.

    Args:
        program: where the search begins.
        oracle: judges the candidates.
        render: prints a program as the script that is asked.
        guesses: sets of node names that the failure names, asked before any search.
        numerics: how the failure depends on numbers.
        allowed: bytes of GPU memory that the failing run could use, if it ran out of memory; None for any other failure.
        on_accept: called at each accepted step.
        checks: what is asked besides verdicts. Only `settle` and `ends_well` are.

    Never raises `BudgetSpent`: the result is what was found until then.
    """
    incumbent = Incumbent(program, oracle, render, numerics.exposable, on_accept, numerics.chain)
    search = _Search(incumbent, numerics, memory.Memory(allowed) if allowed else None, checks)
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
    def __init__(self, incumbent: Incumbent, numerics: Numerics, room: memory.Memory | None, checks: Checks) -> None:
        self.incumbent = incumbent
        self.checks = checks
        self.numerics = numerics
        self.room = room
        self.around: list[Neighbor] | None = None  # those of the smallest program, before it was made readable
        self.plain: Candidate = incumbent.candidate
        self.readable = False

    def run(self, guessed: Sequence[frozenset[str]]) -> None:
        incumbent = self.incumbent
        if self.room is not None:
            self.room.run(incumbent)
        # if the numbers matter, simple ones usually hide the failure
        guesses.run(incumbent, guessed, self._finer if self.numerics.keep_seed else self._smaller)
        steady = self.checks.settle(incumbent.candidate.text)
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
        dynamic.explain(incumbent, self.checks.ends_well)

    def _whole(self) -> None:
        """Everything except the guesses, to a fixed point."""
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
            if not memory.is_capped(incumbent.program):  # with a cap, smaller sizes alone make room
                sizes.run(incumbent)
            for one in (inputs, outputs, values, arguments, simplify_ops):
                one.run(incumbent)
            apply(incumbent, recipe.settings(incumbent.program), "settings")
            if incumbent.key == before and not ops.neighbors(incumbent):
                break
            ops.run(incumbent)
            bodies.run(incumbent)

    def _finer(self, program: Program) -> Iterator[Program | None]:
        """The program in float32 if it is in half precision, where a small error of one operation usually passes."""
        finer = dtypes.in_float32(program)
        yield finer and self.incumbent.legal(finer)

    def _smaller(self, program: Program) -> Iterator[Program | None]:
        """The program as small as its operations allow, then as small as most failures allow: many need a size above 1."""
        yield self._smallest(program)
        yield self._simplified(program)

    def _simplified(self, program: Program) -> Program | None:
        """The program without everything that most failures do not need, if that is legal."""
        return self.incumbent.legal(applied(program, self._batch(program)))

    def _smallest(self, program: Program) -> Program:
        """What is left if only operations matter: simplified, every size 1, equal inputs merged, as far as that is legal."""
        ones = sizes.everything_one(self.incumbent, applied(program, self._batch(program, sized=False)))
        if ones is None:
            small = self._simplified(program) or program
            ones = sizes.everything_one(self.incumbent, small) or small
        return applied(ones, inputs.edits(ones))

    def _batch(self, program: Program, *, sized: bool = True) -> list[GraphEdit]:
        """Edits that drop everything most failures do not need (sizes only if `sized`). What is needed most often comes last, so that the
        first half can go as a whole."""
        found: list[GraphEdit] = [*values.edits(program), *contiguous.edits(program)]
        if sized and any(size > 2 for size in sizes_of(program)):
            found.append(lambda changed: sizes.everything_small(self.incumbent, changed))
        return [
            *found,
            *arguments.edits(program),
            *dtypes.edits(program),
            *recipe.edits(program, keep_seed=self.numerics.keep_seed or self.numerics.seed_last),
        ]

    def nearest_passing(self) -> Candidate | None:
        """Among the rejected programs one edit away that pass, the one most like the final program."""
        around = self.incumbent.neighbors if self.around is None else self.around
        lines = self.plain.text.splitlines()
        for neighbor in sorted(around, key=lambda n: (distance(lines, n.candidate.text), n.candidate.text))[:_MOST_NEIGHBORS]:
            # the answer is known, so this costs no query
            if self.incumbent.oracle.ask(neighbor.candidate) is Verdict.PASSES:
                shown = lift.lift(neighbor.program) if self.readable else neighbor.program
                return self.incumbent.candidate_of(shown, neighbor.candidate.origin)
        return None
