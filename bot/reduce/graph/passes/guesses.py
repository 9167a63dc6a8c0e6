"""Asks first what the failure itself names.

Proposes the first guess (a set of node names) with all else as small as it goes; then, for each guess: these alone, with their
operands as inputs; then these with the operations that make their operands. Cost: one query where the first guess is right and nothing
else matters, at most two for each guess and those. The idea is from the
observation that a lowering error names its operator and that generated code names the nodes it came from: a search that is
over before it began.
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
    """Offers the guesses to `incumbent`; says whether one was SAME. `smaller` makes of the first what is asked before all, in its order."""
    graph = incumbent.program.graph
    can = set(units(graph))
    nodes = {n.name: n for n in graph.nodes}
    alone, fed = [], []
    for guess in guesses[:_MOST]:
        names = set(guess) & can
        if not names:  # an item of a tuple stands for what makes it
            names = {u for g in guess if g in nodes for u in nodes[g].uses()} & can
        if names:
            alone.append(names)
            fed.append(names | ({u for name in names for u in nodes[name].uses()} & can))
    candidates = [incumbent.keep(names, Policy.CUT) for names in alone] + [incumbent.keep(names) for names in fed]
    if candidates and candidates[0] is not None:
        forms = iter(smaller(candidates[0]))
        # alone, also where several are asked at once: mostly it is the answer, and the others would only take its processors
        if incumbent.offer(next(forms, None), "guess"):
            return True
        candidates[:0] = forms
    return incumbent.offer_first(candidates, "guess") is not None
