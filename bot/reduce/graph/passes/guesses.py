"""Asks first about the operations that the failure itself names.

Proposes the first guess (a set of node names) with everything else as small as possible. Then, for each guess: these operations alone,
with their operands as inputs; then together with the operations that make their operands. Cost: one query if the first guess is right and
nothing else matters, otherwise that and at most two for each guess. The idea: a lowering error names its operator, and generated code
names the nodes it came from, so the search may be over before it begins.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from bot.reduce.graph.form import Program
from bot.reduce.graph.incumbent import Incumbent
from bot.reduce.graph.keep import Policy, units

_MOST = 8


def run(
    incumbent: Incumbent,
    guesses: Sequence[frozenset[str]],
    smaller: Callable[[Program], Iterable[Program | None]] = lambda _program: (),
) -> bool:
    """Offers the guesses to `incumbent`; returns whether one was SAME. `smaller` yields the forms of the first guess that are asked before
    all others, in its order."""
    graph = incumbent.program.graph
    can = set(units(graph))
    nodes = {n.name: n for n in graph.nodes}
    alone, fed = [], []
    for guess in guesses[:_MOST]:
        names = set(guess) & can
        if not names:  # for an item of a tuple, keep what makes the tuple
            names = {u for g in guess if g in nodes for u in nodes[g].uses()} & can
        if names:
            alone.append(names)
            fed.append(names | ({u for name in names for u in nodes[name].uses()} & can))
    candidates = [incumbent.keep(names, Policy.CUT) for names in alone] + [incumbent.keep(names) for names in fed]
    if candidates and candidates[0] is not None:
        forms = iter(smaller(candidates[0]))
        # alone, even with several workers: it is usually the answer, and the others would only take its processors
        if incumbent.offer(next(forms, None), "guess"):
            return True
        candidates[:0] = forms
    return incumbent.offer_first(candidates, "guess") is not None
