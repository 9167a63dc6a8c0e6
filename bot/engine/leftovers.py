"""The last step on a graph: removes those of the user's own statements that its failure does not need."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from bot.engine.state import SearchResult
from bot.models.failure import Kind, Phase
from bot.oracle.oracle import ScriptOracle
from bot.reduce.candidate import BudgetSpent, Candidate
from bot.reduce.graph.form import Program
from bot.reduce.graph.passes.dynamic import explained
from bot.reduce.graph.printer.script import lines, render
from bot.reduce.graph.size import size_key
from bot.reduce.source.preamble import drop_statements
from bot.reduce.source.shorter import own_names, shorter_calls

# The most candidates, for each this many lines, that leave out statements of the user's definitions: slicing removed most of them.
MOST_LEFTOVERS, OF_LINES = 40, 20
# Where another compiler rejects generated code: its first error hides those that follow.
_REJECTED = (Phase.CPP_COMPILE, Phase.TRITON_COMPILE)


def without_leftovers(result: SearchResult, oracle: ScriptOracle, accept: Callable[[SearchResult], None]) -> tuple[SearchResult, bool]:
    """The `result` with only those of the user's own statements, and of the arguments in calls of the user's objects, that the `oracle`
    says the failure needs, and whether there was enough time. Each step is passed to `accept`."""
    program = result.program
    if program is None or not program.preamble:
        return result, True
    best, asked = result, 0
    most = MOST_LEFTOVERS * (1 + lines(program.preamble) // OF_LINES)

    def ask(programs: Sequence[Program]) -> int | None:
        nonlocal best, asked
        asked += len(programs)
        if asked > most:
            return None
        texts = [render(smaller) for smaller in programs]
        sizes = [size_key(smaller, text)[0] for smaller, text in zip(programs, texts, strict=True)]
        index = oracle.first([Candidate(text, "preamble", size) for text, size in zip(texts, sizes, strict=True)])
        if index is not None:
            best = result.step(texts[index], programs[index])
            accept(best)
        return index

    try:
        used = program
        while (shorter := _with_shorter_uses(used)) and (found := ask(shorter)) is not None:
            used = shorter[found]
        # numbers or code are wrong because of what the user's lowering returns; one that returns nothing is wrong in another way
        said = result.reference
        returning = said is not None and (said.kind is Kind.ACCURACY or said.phase in _REJECTED)
        kept = drop_statements(used.preamble, lambda texts: ask([replace(used, preamble=text) for text in texts]), returning=returning)
        smaller = replace(used, preamble=kept)
        if smaller != program:
            told = explained(smaller, oracle, render, oracle.passes)
            best = result.step(render(told), told)
            if told != smaller:
                accept(best)
        return best, True
    except BudgetSpent:
        return best, False


def _with_shorter_uses(program: Program) -> list[Program]:
    """The program with a shorter call of what the preamble defines, where the recipe uses it: `Chain(A())` for `Chain(A(), B())`."""
    own, recipe = own_names(program.preamble), program.recipe
    found = [replace(recipe, backend=shorter) for shorter in shorter_calls(recipe.backend or "", own)]
    for i, line in enumerate(recipe.setup):
        found += [replace(recipe, setup=(*recipe.setup[:i], shorter, *recipe.setup[i + 1 :])) for shorter in shorter_calls(line, own)]
    for field in ("config", "options"):
        entries: tuple[tuple[str, str], ...] = getattr(recipe, field)
        for i, (name, value) in enumerate(entries):
            for shorter in shorter_calls(value, own):
                changed: dict[str, Any] = {field: (*entries[:i], (name, shorter), *entries[i + 1 :])}
                found.append(replace(recipe, **changed))
    return [replace(program, recipe=one) for one in found]
