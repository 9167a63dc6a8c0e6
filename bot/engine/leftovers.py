"""The last step on a graph: those of the user's own statements go that its failure does not need."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from bot.engine.state import SearchResult
from bot.models.failure import Kind
from bot.oracle.oracle import ScriptOracle
from bot.reduce.candidate import BudgetSpent, Candidate
from bot.reduce.graph.passes.dynamic import explained
from bot.reduce.graph.printer.script import render
from bot.reduce.graph.size import size_key
from bot.reduce.source.preamble import drop_statements

# Candidates for leaving out statements of the user's own definitions: most of them were sliced away before.
MOST_LEFTOVERS = 40


def without_leftovers(result: SearchResult, oracle: ScriptOracle, accept: Callable[[SearchResult], None]) -> tuple[SearchResult, bool]:
    """The `result` with only those of the user's own statements that the `oracle` says the failure needs, and whether the time was enough.
    Each step is handed to `accept`."""
    program = result.program
    if program is None or not program.preamble:
        return result, True
    best, asked = result, 0

    def ask(preambles: Sequence[str]) -> int | None:
        nonlocal best, asked
        asked += len(preambles)
        if asked > MOST_LEFTOVERS:
            return None
        programs = [replace(program, preamble=preamble) for preamble in preambles]
        texts = [render(smaller) for smaller in programs]
        sizes = [size_key(smaller, text)[0] for smaller, text in zip(programs, texts, strict=True)]
        index = oracle.first([Candidate(text, "preamble", size) for text, size in zip(texts, sizes, strict=True)])
        if index is not None:
            best = result.step(texts[index], programs[index])
            accept(best)
        return index

    try:
        # numbers are wrong by what a lowering of one's own returns; one that returns nothing is wrong in another way
        returning = result.reference is not None and result.reference.kind is Kind.ACCURACY
        smaller = replace(program, preamble=drop_statements(program.preamble, ask, returning=returning))
        if smaller.preamble != program.preamble:
            said = explained(smaller, oracle, render, oracle.passes)
            best = result.step(render(said), said)
            if said != smaller:
                accept(best)
        return best, True
    except BudgetSpent:
        return best, False
